//! Arguments of `run`.

use clap::Args as ClapArgs;
use toolcrib::Dialect;

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Write approval questions as lines, and read the answers as lines
    #[arg(long)]
    pub(crate) approvals: bool,

    /// Preset of tool and field names in the replies: toolcrib, codex or camel
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) dialect: Dialect,

    /// Open no monitor socket for `toolcrib page` and `toolcrib watch`
    #[arg(long)]
    pub(crate) no_monitor: bool,

    /// Copy the workspace and its history to an object store in the background: s3://BUCKET/PREFIX
    #[cfg(feature = "backup")]
    #[arg(long, value_name = "ADDRESS")]
    backup: Option<String>,
}

impl RunArgs {
    /// The address of the backup.
    pub(crate) fn backup(&self) -> Option<&String> {
        #[cfg(feature = "backup")]
        return self.backup.as_ref();
        #[cfg(not(feature = "backup"))]
        None
    }
}

pub(super) const RUN: &str = "\
Serve calls as JSON lines on stdin and stdout until stdin ends. All calls share one session.

Request:   {\"id\": 1, \"tool\": \"Read\", \"args\": {\"file_path\": \"README.md\"}}
Reply:     {\"id\": 1, \"success\": true, \"output\": \"…\", \"metadata\": {…}}
or         {\"id\": 1, \"success\": false, \"error\": {\"kind\": \"…\", \"message\": \"…\", …}, …}

`id` is any JSON value; the reply repeats it. Replies may come out of order. \"wait\": true delays the following \
lines until the reply is written. \"dry_run\": true changes nothing. A malformed line gets a reply of kind `invalid` \
with \"id\": null. {\"cancel\": 1} cancels call 1.

With --approvals, a call that needs approval writes a question and waits, while other calls continue:

Question:  {\"approval\": {\"id\": \"a1\", \"call_id\": 1, \"tool\": \"Edit\", \"answers\": [\"yes\", …], …}}
Answer:    {\"approve\": \"a1\", \"answer\": \"yes\"}

If a question is not answered within `approval_seconds`, or stdin ends, the call is denied. Without --approvals, a \
call that needs approval is denied at once.";
