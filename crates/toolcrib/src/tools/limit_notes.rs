//! Notes about the limit that ended a command.

use serde_json::Value;
use toolcrib_exec::{
    Amount, Exit, Job, Limits as CommandLimits, MeasuredLimit, Snapshot, size_text,
};

use crate::metadata_fields::MetadataField;

/// Metadata of a reply about a command.
pub(super) const LIMIT: &[MetadataField] = &[MetadataField::new(
    "limit",
    "string",
    "a limit ended the command",
    "The setting: `memory`, `process_memory`, `file_size` or `tmp_size`.",
)];

/// The signal to a process whose file is too large.
const SIGXFSZ: i32 = 25;

/// What programs print when they get no memory.
const OUT_OF_MEMORY: [&str; 6] = [
    "Cannot allocate memory",
    "MemoryError",
    "bad_alloc",
    "failed to allocate",
    "out of memory",
    "OutOfMemoryError",
];

/// What programs print when a file is too large.
const FILE_TOO_LARGE: [&str; 2] = ["File too large", "File size limit exceeded"];

/// A limit that ended a command, or probably did.
pub(crate) struct LimitNote {
    setting: &'static str,
    what: String,
}

impl LimitNote {
    /// The limit that ended a job, if one did. `output` is the shown output.
    pub(crate) fn of(
        job: &Job,
        now: &Snapshot,
        limits: Option<&CommandLimits>,
        output: &str,
    ) -> Option<LimitNote> {
        if let Some(exceeded) = job.exceeded_limit() {
            let (used, allowed) = (size_text(exceeded.used), size_text(exceeded.allowed));
            let what = match exceeded.limit {
                MeasuredLimit::Memory => format!(
                    "the processes of the command had {used} of memory, and {allowed} are allowed: it was killed"
                ),
                MeasuredLimit::TmpSize => format!(
                    "the session's /tmp had {used}, and {allowed} are allowed: the command was killed; remove files from it"
                ),
            };
            return Some(LimitNote { setting: exceeded.limit.name(), what });
        }
        let (limits, exit) = (limits?, now.ended.as_ref()?.exit);
        if exit.is_success() {
            return None;
        }
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| output.contains(phrase));
        let is_signalled = matches!(exit, Exit::Signal(SIGXFSZ))
            || matches!(exit, Exit::Code(code) if code == 128 + SIGXFSZ);
        if limits.file_size != Amount::Unlimited && (is_signalled || says(&FILE_TOO_LARGE)) {
            let what = format!("a file may have {}", limits.file_size);
            return Some(LimitNote { setting: "file_size", what });
        }
        if limits.process_memory != Amount::Unlimited && says(&OUT_OF_MEMORY) {
            let what = format!("a process may have {} of memory", limits.process_memory);
            return Some(LimitNote { setting: "process_memory", what });
        }
        None
    }

    /// The note in a reply.
    pub(crate) fn text(&self) -> String {
        let LimitNote { setting, what } = self;
        format!("limit {setting}: {what}; {setting} in config.toml changes the limit")
    }

    /// The metadata of the reply.
    pub(super) fn fact(&self) -> (&'static str, Value) {
        ("limit", self.setting.into())
    }
}
