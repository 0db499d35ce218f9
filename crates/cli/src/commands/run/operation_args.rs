//! The arguments of the raw operations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolcrib::Error;
use toolcrib::backend::{Exec, ProcessStdin, Program, TerminalSize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecArgs {
    pub(super) argv: Option<Vec<String>>,
    pub(super) shell: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) stdin: Option<String>,
    pub(super) pty: Option<PtyArgs>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PtyArgs {
    #[serde(default = "default_rows")]
    pub(super) rows: u16,
    #[serde(default = "default_columns")]
    pub(super) cols: u16,
}

fn default_rows() -> u16 {
    24
}

fn default_columns() -> u16 {
    80
}

impl ExecArgs {
    pub(super) fn exec(self, payload: Vec<u8>, payload_given: bool) -> Result<Exec, Error> {
        let program = match (self.argv, self.shell) {
            (Some(argv), None) => Program::Arguments(argv),
            (None, Some(shell)) => Program::Shell(shell),
            _ => {
                return Err(
                    Error::invalid("give either `argv` or `shell`").hint("Nothing was run.")
                );
            }
        };
        let stdin = match (self.stdin.as_deref(), self.pty) {
            (_, Some(_)) if payload_given => {
                return Err(Error::invalid("a command with `pty` takes no payload")
                    .hint("Nothing was run. Use write_stdin."));
            }
            (None | Some("open"), Some(PtyArgs { rows, cols })) => {
                ProcessStdin::Terminal(TerminalSize { rows, columns: cols })
            }
            (Some("open"), None) if !payload_given => ProcessStdin::Open,
            (None | Some("none"), None) => ProcessStdin::Content(payload),
            _ => {
                return Err(Error::invalid(
                    "`stdin` must be \"none\", or \"open\" without a payload",
                )
                .hint("Nothing was run."));
            }
        };
        Ok(Exec {
            directory: self.cwd,
            environment: self.env.unwrap_or_default(),
            stdin,
            timeout: self.timeout_ms.map(Duration::from_millis),
            ..Exec::new(program)
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArgs {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToArgs {
    pub(super) to: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalArgs {
    pub(super) to: Value,
    pub(super) signal: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResizeArgs {
    pub(super) to: Value,
    pub(super) rows: u16,
    pub(super) cols: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathArgs {
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) offset: u64,
    pub(super) limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) append: bool,
    pub(super) executable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatArgs {
    pub(super) path: PathBuf,
    #[serde(default = "yes")]
    pub(super) follow: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MakeDirectoryArgs {
    pub(super) path: PathBuf,
    #[serde(default = "yes")]
    pub(super) parents: bool,
    #[serde(default = "yes")]
    pub(super) exist_ok: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveArgs {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) recursive: bool,
    #[serde(default)]
    pub(super) missing_ok: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArgs {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    #[serde(default)]
    pub(super) overwrite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreArgs {
    pub(super) snapshot: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsArgs {
    #[serde(default = "default_format")]
    pub(super) format: String,
}

fn default_format() -> String {
    "mcp".to_owned()
}

fn yes() -> bool {
    true
}
