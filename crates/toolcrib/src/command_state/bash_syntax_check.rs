//! Checks the syntax of a script with bash itself, which parses it and runs nothing.

use std::path::Path;
use std::time::Duration;

use toolcrib_exec::{Command, Ending, Exit, Job, Status, Stdin};
use toolcrib_text::{truncate_line, visible_name};

/// bash needs a fraction of this for a long script. If a loaded machine takes longer, the script counts as
/// accepted and runs.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits of bash's message: bytes read, characters shown.
const MAX_BYTES: usize = 4 << 10;
const MAX_CHARS: usize = 300;

/// The script's path. bash opens stdin twice by this path, each time from the beginning.
const INPUT: &str = "/dev/fd/0: ";

/// Limits memory and time. A script may enable extended patterns for its later lines, which `bash -n` does not
/// do, so a script that parses with them is accepted.
const CHECK: &[u8] = b"ulimit -v 1048576; ulimit -t 5
\"$BASH\" --noprofile --norc -n /dev/fd/0 ||
exec \"$BASH\" --noprofile --norc -O extglob -n /dev/fd/0 2>/dev/null";

/// Exit code of bash after a syntax error.
const REJECTED: Exit = Exit::Code(2);

/// The command that makes `bash` parse a script.
pub(super) fn syntax_check(bash: &Path, script: &str) -> Command {
    Command {
        script: CHECK.to_vec(),
        shell: bash.to_owned(),
        directory: "/".into(),
        // With an empty environment, bash prints English messages.
        environment: Vec::new(),
        stdin: Stdin::Content(script.as_bytes().to_vec()),
        separate_streams: false,
    }
}

/// The error message, if bash rejects the script in time.
pub(super) fn read_syntax_check(job: &Job) -> Option<String> {
    let now = job.wait(CHECK_TIMEOUT, |now| now.closed && !now.status.is_running());
    job.end(Ending::Immediate, Status::Killed);
    let rejects = now.ended.is_some_and(|ended| ended.exit == REJECTED);
    let output = job.read(0, MAX_BYTES).1;
    message(&String::from_utf8_lossy(&output)).filter(|_| rejects)
}

/// Lines with the error: `line 1: syntax error near unexpected token `done'`.
fn message(output: &str) -> Option<String> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(INPUT));
    let errors = lines.filter(|line| line.starts_with("line ") && !line.contains(": warning: "));
    let errors: Vec<&str> = errors.take(2).collect();
    let shown = visible_name(truncate_line(&errors.join("; "), MAX_CHARS).as_bytes());
    (!errors.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_line_and_the_token() {
        let output = "/dev/fd/0: line 3: syntax error near unexpected token `done'\n/dev/fd/0: line 3: `done'\n";
        let expected = "line 3: syntax error near unexpected token `done'; line 3: `done'";
        assert_eq!(message(output).as_deref(), Some(expected));
        let warning =
            "/dev/fd/0: line 2: warning: here-document at line 1 delimited by end-of-file\n";
        assert_eq!(message(warning), None);
        assert_eq!(message("bash: xmalloc: cannot allocate 9 bytes\n"), None);
    }
}
