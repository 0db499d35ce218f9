//! ListShells: lists the jobs of a session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_policy::Access;
use toolcrib_text::{visible, visible_name};

use super::job_status_text::{state_and_duration, unix_seconds};
use crate::cx::Cx;
use crate::error::Error;
use crate::metadata_fields::MetadataField;
use crate::phrases::{counted, one_line};
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Lists the jobs of this session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListShells {
    /// Only running jobs.
    #[serde(default)]
    running: bool,
}

/// Characters shown of a command.
const COMMAND_CHARS: usize = 80;

const METADATA: &[MetadataField] = &[
    MetadataField::new("shells", "array of object", "always", "The jobs."),
    MetadataField::new("shells[].bash_id", "string", "with its object", "Id of the job."),
    MetadataField::new(
        "shells[].status",
        "string",
        "with its object",
        "`pending`, `running`, `completed`, `failed`, `killed` or `timeout`.",
    ),
    MetadataField::new("shells[].command", "string", "with its object", "The command, shortened."),
    MetadataField::new(
        "shells[].cwd",
        "string",
        "with its object",
        "Directory where it was started.",
    ),
    MetadataField::new(
        "shells[].created",
        "integer",
        "with its object",
        "Start, in seconds since 1970.",
    ),
    MetadataField::new(
        "shells[].finished",
        "integer",
        "with its object; null while it runs",
        "End, in seconds since 1970.",
    ),
    MetadataField::new("shells[].duration_ms", "integer", "with its object", "Duration so far."),
    MetadataField::new("shells[].bytes", "integer", "with its object", "Bytes of output."),
];

impl Tool for ListShells {
    const NAME: &'static str = "ListShells";
    const CATEGORY: Category = Category::Execution;
    const HINTS: Hints = Hints::READS;
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA];

    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let jobs = cx.shell()?.jobs();
        let listed = if self.running { jobs.list_running() } else { jobs.list() };
        let mut text = String::new();
        let mut facts = Vec::new();
        let secrets = cx.secrets();
        for job in &listed {
            let now = job.snapshot();
            if !now.status.is_running() {
                cx.shell()?.end_is_told(job.id());
            }
            // Secrets are masked before truncation: half a token would not be recognized.
            let script = visible(job.script());
            let command = one_line(&secrets.mask_command(&script), COMMAND_CHARS);
            let command = visible_name(command.as_bytes());
            let state = state_and_duration(job, &now);
            text.push_str(&format!("{}  {state}  {command}\n", job.id()));
            facts.push(json!({
                "bash_id": job.id(),
                "status": now.status.name(),
                "command": command,
                "cwd": visible_name(job.directory().as_os_str().as_encoded_bytes()),
                "created": unix_seconds(job.created()),
                "finished": now.finished.map(unix_seconds),
                "duration_ms": u64::try_from(now.duration.as_millis()).unwrap_or(u64::MAX),
                "bytes": now.written,
            }));
        }
        if listed.is_empty() {
            text.push_str(if self.running { "No running jobs.\n" } else { "No jobs.\n" });
        } else {
            text.push_str(&format!("[{}]\n", counted(listed.len() as u64, "command")));
        }
        Ok(Reply::new(text).with("shells", facts))
    }
}
