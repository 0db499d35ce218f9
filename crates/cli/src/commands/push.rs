//! `toolcrib push`: copies the program to another machine, with nothing there but ssh and a POSIX shell.

mod program_file;

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use self::program_file::ProgramFile;
use super::OWN_EXECUTABLE;
use crate::args::{Common, PushArgs};
use crate::output;
use crate::ssh::{MARK, PROGRAM_THERE, ScriptOutput, run_script};

/// Shell functions: `say KEY TEXT` prints a line for us, `sum FILE` prints a SHA-256. `p` becomes the path.
const FUNCTIONS: &str = "\
say() { printf '%s %s %s\\n' \"$m\" \"$1\" \"$2\"; }; \
sum() { { sha256sum <\"$1\" || shasum -a 256 <\"$1\" || openssl dgst -sha256 -r <\"$1\"; } 2>/dev/null | cut -c1-64; }; \
m=$1; p=$2; case $p in '~/'*) p=$HOME/${p#??};; esac; ";

/// Tells the platform, the path and the checksum of the program that is there.
const LOOK: &str = "say machine \"$(uname -sm)\"; say path \"$p\"; if [ -f \"$p\" ]; then say sum \"$(sum \"$p\")\"; fi";

/// Stores the input as a temporary file beside the path, checks it, runs it, and renames it.
const STORE: &str = "\
fail() { say failed \"$1\"; exit 1; }; d=$(dirname \"$p\"); mkdir -p \"$d\" || fail directory; \
if [ -d \"$p\" ]; then fail occupied; fi; t=$(mktemp \"$d/.toolcrib.XXXXXX\") || fail write; \
trap 'rm -f \"$t\"' EXIT; trap 'exit 1' HUP INT TERM PIPE; cat >\"$t\" || fail write; s=$(sum \"$t\"); \
if [ -z \"$s\" ]; then fail no-sum; fi; if [ \"$s\" != \"$3\" ]; then fail sum; fi; chmod 755 \"$t\" || fail write; \
v=$(\"$t\" --version 2>&1) || fail \"version $(printf %s \"$v\" | tr '\\n' ' ' | cut -c1-500)\"; \
mv -f \"$t\" \"$p\" || fail rename; say version \"$v\"";

pub(crate) fn push(common: &Common, args: &PushArgs) -> Result<ExitCode, String> {
    let host = &args.host;
    if host.directory.is_some() {
        return Err("push takes no directory; the path of the program is --to PATH".to_owned());
    }
    let to = args.to.as_deref().unwrap_or(PROGRAM_THERE);
    if to.chars().any(char::is_control) || to.is_empty() || to.ends_with('/') {
        return Err("--to is not the path of a file".to_owned());
    }
    let from = args.program.as_deref().unwrap_or(Path::new(OWN_EXECUTABLE));
    let program = ProgramFile::read(from)?;
    let look = run_script(host, &format!("{FUNCTIONS}{LOOK}"), &[MARK, to], b"")?;
    let (Some(uname), Some(path)) = (look.value("machine"), look.value("path")) else {
        return Err(no_answer(&host.destination, &look));
    };
    if !program.is_for(uname) {
        return Err(format!(
            "{} is {uname}, and this program is for Linux {}. Nothing was copied. Download the build for it, and name the \
             program with --program PATH.",
            host.destination, program.machine
        ));
    }
    let is_there = look.value("sum") == Some(&program.sha256);
    let told = |change: &str, words: &str| {
        if output::for_people(common) {
            output::answer(words);
        } else {
            let facts = json!({"host": host.destination, "path": path, "sha256": program.sha256, "result": change});
            output::answer(&facts.to_string());
        }
        Ok(ExitCode::SUCCESS)
    };
    let destination = &host.destination;
    if is_there {
        return told(
            "unchanged",
            &format!("{destination}: {path} is this program already. Nothing was copied."),
        );
    }
    let megabytes = program.bytes.len() as f64 / 1e6;
    if common.dry_run {
        return told(
            "would_copy",
            &format!("{destination}: {megabytes:.1} MB would be copied to {path}."),
        );
    }
    if output::for_people(common) {
        output::note(&format!("Copying {megabytes:.1} MB to {destination}:{path}"));
    }
    let script = format!("{FUNCTIONS}{STORE}");
    let stored = run_script(host, &script, &[MARK, to, &program.sha256], &program.bytes)?;
    match stored.value("version").filter(|_| stored.is_success) {
        Some(version) => told(
            "copied",
            &format!(
                "{destination}: {path} is {version}, with the checksum of this program.\nNext: toolcrib install CLIENT --host \
             {destination}:DIR"
            ),
        ),
        None => Err(refusal(&program, destination, path, &stored)),
    }
}

fn no_answer(destination: &str, output: &ScriptOutput) -> String {
    format!(
        "{destination} has no usable `sh`. Its messages:\n{}",
        if output.messages.trim().is_empty() { "(none)" } else { output.messages.trim() }
    )
}

/// Why the program was not stored.
fn refusal(program: &ProgramFile, destination: &str, path: &str, output: &ScriptOutput) -> String {
    let messages = output.messages.trim();
    let why = match output.value("failed") {
        Some("directory") => format!("its directory cannot be made: {messages}"),
        Some("occupied") => "it is a directory".to_owned(),
        Some("write" | "rename") => format!("it cannot be written: {messages}"),
        Some("no-sum") => {
            "no program there computes SHA-256: it needs sha256sum, shasum or openssl".to_owned()
        }
        Some("sum") => "the copy is damaged or incomplete; try again".to_owned(),
        Some(failed) if failed.starts_with("version") => {
            let said = failed.trim_start_matches("version").trim();
            let step = if program.is_dynamic {
                " It needs the C library of the machine that it was built on. Push a static build (linux-musl) with --program PATH."
            } else {
                ""
            };
            format!("it does not run there: {said}.{step}")
        }
        _ => format!("the connection ended: {messages}"),
    };
    format!("{destination}: {path}: {why}\nNothing was changed there.")
}
