//! The raw operations of `toolcrib run`: their arguments and results as JSON.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolcrib::backend::{
    Backend, Exec, FileStat, ListedEntry, ProcessSignal, ReadBytes, TerminalSize, WriteOptions,
};
use toolcrib::{Dialect, Error, ErrorKind, Format, Runtime, visible_name};

use super::operation_args::{
    ExecArgs, MakeDirectoryArgs, MoveArgs, NoArgs, PathArgs, ReadArgs, RemoveArgs, ResizeArgs,
    RestoreArgs, SignalArgs, StatArgs, ToArgs, ToolsArgs, WriteArgs,
};

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// A decoded operation.
pub(super) enum Operation {
    Exec(Box<Exec>),
    Control { to: Value, control: Control },
    Other(Other),
}

/// Controls a running `exec`.
pub(super) enum Control {
    WriteStdin(Vec<u8>),
    CloseStdin,
    Signal(ProcessSignal),
    Resize(TerminalSize),
}

/// An operation that ends soon.
pub(super) enum Other {
    Read(ReadArgs),
    Write(WriteArgs, Vec<u8>),
    Stat(StatArgs),
    List(PathArgs),
    MakeDirectory(MakeDirectoryArgs),
    Remove(RemoveArgs),
    Move(MoveArgs),
    RealPath(PathArgs),
    Snapshot,
    Restore(RestoreArgs),
    Info,
    Tools(ToolsArgs),
}

/// The result of an operation, and its payload.
pub(super) type OperationResult = Result<(Value, Option<Vec<u8>>), Error>;

const NAMES: &str = "exec, write_stdin, close_stdin, signal, resize, read, write, stat, list, mkdir, remove, move, realpath, snapshot, restore, info, tools, register";

impl Operation {
    /// Decodes the arguments of an operation.
    pub(super) fn decode(
        name: &str,
        args: Value,
        payload: Option<Vec<u8>>,
    ) -> Result<Operation, Error> {
        let takes_payload = matches!(name, "exec" | "write" | "write_stdin");
        if payload.is_some() && !takes_payload {
            return Err(Error::invalid(format!("`{name}` takes no payload")));
        }
        let payload_given = payload.is_some();
        let payload = payload.unwrap_or_default();
        Ok(match name {
            "exec" => {
                Operation::Exec(Box::new(decode::<ExecArgs>(args)?.exec(payload, payload_given)?))
            }
            "write_stdin" => {
                let ToArgs { to } = decode(args)?;
                Operation::Control { to, control: Control::WriteStdin(payload) }
            }
            "close_stdin" => {
                let ToArgs { to } = decode(args)?;
                Operation::Control { to, control: Control::CloseStdin }
            }
            "signal" => {
                let SignalArgs { to, signal } = decode(args)?;
                Operation::Control { to, control: Control::Signal(signal_named(&signal)?) }
            }
            "resize" => {
                let ResizeArgs { to, rows, cols } = decode(args)?;
                let size = TerminalSize { rows, columns: cols };
                Operation::Control { to, control: Control::Resize(size) }
            }
            "read" => Operation::Other(Other::Read(decode(args)?)),
            "write" => Operation::Other(Other::Write(decode(args)?, payload)),
            "stat" => Operation::Other(Other::Stat(decode(args)?)),
            "list" => Operation::Other(Other::List(decode(args)?)),
            "mkdir" => Operation::Other(Other::MakeDirectory(decode(args)?)),
            "remove" => Operation::Other(Other::Remove(decode(args)?)),
            "move" => Operation::Other(Other::Move(decode(args)?)),
            "realpath" => Operation::Other(Other::RealPath(decode(args)?)),
            "restore" => Operation::Other(Other::Restore(decode(args)?)),
            "tools" => Operation::Other(Other::Tools(decode(args)?)),
            "snapshot" => {
                let NoArgs {} = decode(args)?;
                Operation::Other(Other::Snapshot)
            }
            "info" => {
                let NoArgs {} = decode(args)?;
                Operation::Other(Other::Info)
            }
            "register" => {
                return Err(Error::invalid("tools are registered before the first other message")
                    .hint("Nothing was registered."));
            }
            _ => {
                let name: String = name.chars().take(40).collect();
                return Err(Error::invalid(format!("there is no operation `{name}`"))
                    .hint(format!("Operations: {NAMES}.")));
            }
        })
    }
}

impl Other {
    /// Performs the operation.
    pub(super) fn perform(
        self,
        backend: Backend<'_>,
        runtime: &Runtime,
        dialect: Dialect,
    ) -> OperationResult {
        let result = match self {
            Other::Read(ReadArgs { path, offset, limit }) => {
                let ReadBytes { bytes, size } = backend.read(path, offset, limit)?;
                let eof = offset.saturating_add(bytes.len() as u64) >= size;
                return Ok((json!({"size": size, "eof": eof}), Some(bytes)));
            }
            Other::Write(WriteArgs { path, append, executable }, payload) => {
                let options = WriteOptions { append, executable, mode: None };
                let written = backend.write(path, payload, options)?;
                json!({"created": written.is_new, "change": written.change})
            }
            Other::Stat(StatArgs { path, follow }) => stat_json(&backend.stat(path, follow)?),
            Other::List(PathArgs { path }) => {
                let listing = backend.list(path)?;
                let entries: Vec<Value> = listing.entries.iter().map(entry_json).collect();
                json!({"entries": entries, "truncated": listing.is_truncated})
            }
            Other::MakeDirectory(MakeDirectoryArgs { path, parents, exist_ok }) => {
                let made = backend.make_directory(path, parents, exist_ok)?;
                json!({"created": made.is_new, "change": made.change})
            }
            Other::Remove(RemoveArgs { path, recursive, missing_ok }) => {
                let removed = backend.remove(path, recursive, missing_ok)?;
                json!({"removed": removed.count, "change": removed.change})
            }
            Other::Move(MoveArgs { from, to, overwrite }) => {
                json!({"change": backend.rename(from, to, overwrite)?.change})
            }
            Other::RealPath(PathArgs { path }) => {
                json!({"path": backend.real_path(path)?.to_string_lossy()})
            }
            Other::Snapshot => json!({"snapshot": backend.snapshot()?}),
            Other::Restore(RestoreArgs { snapshot }) => {
                let restored = backend.restore(snapshot)?;
                json!({"undone": restored.undone, "files": restored.files})
            }
            Other::Info => info_json(backend),
            Other::Tools(ToolsArgs { format }) => tools_json(runtime, &format, dialect)?,
        };
        Ok((result, None))
    }
}

/// The result of a command.
pub(super) fn executed_json(executed: &toolcrib::backend::Executed) -> Value {
    json!({
        "exit_code": executed.exit_code,
        "signal": executed.signal,
        "timed_out": executed.timed_out,
        "duration_ms": u64::try_from(executed.duration.as_millis()).unwrap_or(u64::MAX),
        "change": executed.change,
        "refused": executed.refused,
        "notes": executed.notes,
    })
}

fn stat_json(stat: &FileStat) -> Value {
    let mut fields = Map::from_iter([
        ("kind".to_owned(), stat.kind.name().into()),
        ("size".to_owned(), stat.size.into()),
        ("mode".to_owned(), stat.mode.into()),
        ("modified_ns".to_owned(), stat.modified_ns.into()),
    ]);
    if let Some(target) = &stat.target {
        fields.insert("target".to_owned(), target.to_string_lossy().into());
    }
    Value::Object(fields)
}

fn entry_json(entry: &ListedEntry) -> Value {
    json!({"name": entry.name.to_string_lossy(), "kind": entry.kind.name(), "size": entry.size})
}

fn info_json(backend: Backend<'_>) -> Value {
    let info = backend.info();
    let roots: Vec<_> = info.roots.iter().map(|root| root.to_string_lossy()).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "roots": roots,
        "tmp": info.tmp.as_ref().map(|tmp| tmp.to_string_lossy()),
        "sandbox": info.sandbox.map(|(level, name)| json!({"level": level, "name": name})),
        "outer": info.outer,
    })
}

fn tools_json(runtime: &Runtime, format: &str, dialect: Dialect) -> Result<Value, Error> {
    let format = match format {
        "mcp" => Format::Mcp,
        "openai" => Format::OpenAi,
        "anthropic" => Format::Anthropic,
        "gemini" => Format::Gemini,
        other => {
            let other = visible_name(other.as_bytes());
            return Err(Error::invalid(format!("`format`: {other} is not a format of tool lists"))
                .hint("Formats: mcp, openai, anthropic, gemini."));
        }
    };
    let tools: Value = serde_json::from_str(&runtime.catalogue(format, dialect))
        .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    Ok(match tools {
        Value::Object(fields) if fields.contains_key("tools") => Value::Object(fields),
        tools => json!({"tools": tools}),
    })
}

fn signal_named(name: &str) -> Result<ProcessSignal, Error> {
    let wanted = name.strip_prefix("SIG").unwrap_or(name);
    let found = ProcessSignal::NAMES.iter().find(|(known, _)| *known == wanted);
    found.map(|(_, signal)| *signal).ok_or_else(|| {
        let names: Vec<&str> = ProcessSignal::NAMES.iter().map(|(name, _)| *name).collect();
        Error::invalid("`signal` is not a known signal")
            .hint(format!("Signals: {}.", names.join(", ")))
    })
}

fn decode<T: DeserializeOwned>(args: Value) -> Result<T, Error> {
    let args = if args.is_null() { Value::Object(Map::new()) } else { args };
    serde_json::from_value(args)
        .map_err(|error| Error::invalid(format!("`args`: {error}")).hint("Nothing was done."))
}
