//! KillShell: ends a command and its child processes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_exec::{Ending, Status};
use toolcrib_policy::Access;
use toolcrib_text::ExcerptOptions;

use super::changed_files::CHANGED_FILES;
use super::changed_files::Changes;
use super::job_status_text::status_words;
use super::shell_output::{excerpt, masked_note};
use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::message_names::LIST_SHELLS;
use crate::metadata_fields::MetadataField;
use crate::output_notes::{bracketed, escape_note};
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Ends a job and its child processes: SIGTERM, SIGKILL after 2 s.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillShell {
    /// The `bash_id`.
    shell_id: String,
}

/// Two seconds of grace, and more on a slow machine.
const KILL_TIMEOUT: Duration = Duration::from_secs(8);

/// Lines shown of its last output.
const LAST_LINES: usize = 20;

const METADATA: &[MetadataField] = &[
    MetadataField::new(
        "status",
        "string",
        "unless dry run",
        "`pending`, `running`, `completed`, `failed`, `killed` or `timeout`.",
    ),
    MetadataField::new(
        "ended",
        "integer",
        "unless dry run",
        "Number of processes that were ended.",
    ),
];

impl Tool for KillShell {
    const NAME: &'static str = "KillShell";
    const CATEGORY: Category = Category::Execution;
    const HINTS: Hints =
        Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("bash_id", "shell_id"), ("id", "shell_id")];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, CHANGED_FILES];

    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let job = cx.job(&self.shell_id)?;
        let before = job.snapshot();
        if !cx.dry_run() {
            cx.shell()?.end_is_told(job.id());
        }
        if before.all_exited {
            let message = match before.status {
                Status::Killed => format!("{} was already killed.\n", job.id()),
                status => format!("{} had already ended ({}).\n", job.id(), status_words(status)),
            };
            return Ok(Reply::new(message).with("status", before.status.name()).with("ended", 0));
        }
        if cx.dry_run() {
            let running = counted(job.processes().len() as u64, "process");
            return Ok(Reply::new(format!("Would end {}: {running}.\n", job.id())));
        }
        job.end(Ending::Polite, Status::Killed);
        let now = job.wait(KILL_TIMEOUT, |now| now.all_exited && now.closed);
        if !now.all_exited {
            let left: Vec<String> =
                job.processes().into_iter().map(|process| process.name).collect();
            let message =
                format!("{} has processes that did not end: {}", job.id(), left.join(", "));
            return Err(Error::new(ErrorKind::Timeout, message)
                .hint(format!("They may wait for a disk or belong to another user. {LIST_SHELLS} shows when they are gone.")));
        }
        let read_to = cx.shell()?.read_positions(job.id()).output.min(now.written);
        let (last, masked) = excerpt(
            &*job,
            &cx.secrets(),
            read_to..now.written,
            ExcerptOptions {
                whole_chars: cx.limits().reply_chars / 4,
                chars: cx.limits().reply_chars / 4,
                line_chars: cx.limits().line_chars,
                head_lines: None,
                tail_lines: Some(LAST_LINES),
                folds: false,
            },
        );
        let ended = match now.force_killed {
            0 => counted(now.killed, "process"),
            force_killed => {
                let all = counted(now.killed, "process");
                format!("{all}, {force_killed} with SIGKILL, as SIGTERM had no effect")
            }
        };
        let output = match last.lines {
            0 if read_to > 0 => "It had no new output.\n".to_owned(),
            0 => "It had no output.\n".to_owned(),
            _ => format!("Its last output:\n{}", last.text),
        };
        let changes = Changes::of_job(cx, &job)?;
        let mut text = format!("Ended {}: {ended}. {output}", job.id());
        text.extend(masked_note(masked).map(bracketed));
        text.extend(escape_note([last.text.as_str()]).map(|(note, _)| bracketed(note)));
        text.push_str(&changes.text());
        let reply = Reply::new(text).with("status", now.status.name()).with("ended", now.killed);
        Ok(reply.with_all(changes.facts()))
    }
}
