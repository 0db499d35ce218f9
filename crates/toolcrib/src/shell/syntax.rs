//! Whether bash accepts a script: asked of bash itself, which reads the script and runs nothing of it.

use std::path::Path;
use std::time::Duration;

use toolcrib_exec::{Command, Ending, Exit, Job, Status};
use toolcrib_text::{truncate_line, visible_name};

/// Bash reads a long script in a fraction of this. A machine under load takes longer; then the script counts as
/// accepted, and is run.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of bash's words is read, and how much is repeated.
const MAX_BYTES: usize = 4 << 10;
const MAX_CHARS: usize = 300;

/// The file that the script is read from: as its stdin it is opened twice, from the beginning each time.
const INPUT: &str = "/dev/fd/0: ";

/// With bounds on memory and time. A script may switch extended patterns on for its later lines, which `bash -n`
/// does not see: what bash accepts with them counts as accepted.
const CHECK: &[u8] = b"ulimit -v 1048576; ulimit -t 5
\"$BASH\" --noprofile --norc -n /dev/fd/0 ||
exec \"$BASH\" --noprofile --norc -O extglob -n /dev/fd/0 2>/dev/null";

/// What bash exits with after a syntax error.
const REJECTED: Exit = Exit::Code(2);

/// The command that has `bash` read a script.
pub(super) fn syntax_check(bash: &Path, script: &str) -> Command {
    Command {
        script: CHECK.to_vec(),
        shell: bash.to_owned(),
        directory: "/".into(),
        // Without one, bash speaks English.
        environment: Vec::new(),
        stdin: script.as_bytes().to_vec(),
        separate_streams: false,
    }
}

/// What bash said against the script, if it rejects it in time.
pub(super) fn read_syntax_check(job: &Job) -> Option<String> {
    let now = job.wait(PATIENCE, |now| now.closed && !now.status.is_running());
    job.end(Ending::Immediate, Status::Killed);
    let rejects = now.ended.is_some_and(|ended| ended.exit == REJECTED);
    let said = job.read(0, MAX_BYTES).1;
    message(&String::from_utf8_lossy(&said)).filter(|_| rejects)
}

/// The lines that name the error: `line 1: syntax error near unexpected token `done'`.
fn message(said: &str) -> Option<String> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(INPUT));
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
        let said = "/dev/fd/0: line 3: syntax error near unexpected token `done'\n/dev/fd/0: line 3: `done'\n";
        let told = "line 3: syntax error near unexpected token `done'; line 3: `done'";
        assert_eq!(message(said).as_deref(), Some(told));
        let warning =
            "/dev/fd/0: line 2: warning: here-document at line 1 delimited by end-of-file\n";
        assert_eq!(message(warning), None);
        assert_eq!(message("bash: xmalloc: cannot allocate 9 bytes\n"), None);
    }
}
