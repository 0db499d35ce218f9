//! The part of a diff that a reply shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_text::shortened_diff;

use crate::cx::Cx;
use crate::message_names::HISTORY;
use crate::phrases::counted;
use crate::reply::Reply;

/// Approximate number of changed lines in a short diff.
const SHOWN_LINES: usize = 40;

// Part of the diff to show. No doc comment: it would be repeated in the schema of every tool that has the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiffDetail {
    #[default]
    Short,
    Full,
    None,
}

impl DiffDetail {
    /// The detail to show. A dry run shows the whole diff: approval depends on it.
    pub(super) fn for_call(for_call: DiffDetail, cx: &Cx<'_>) -> DiffDetail {
        if cx.dry_run() { DiffDetail::Full } else { for_call }
    }

    /// Adds the diff to the reply. `id` is the id of the change in the journal.
    pub(super) fn show(self, reply: Reply, diff: String, id: Option<u64>) -> Reply {
        let shown = match self {
            DiffDetail::Full => diff.clone(),
            DiffDetail::Short => short(&diff, id),
            DiffDetail::None => String::new(),
        };
        reply.diff(shown).full_diff(diff)
    }
}

/// The short form of a diff, with a note how to see all of it.
pub(crate) fn short(diff: &str, id: Option<u64>) -> String {
    let short = shortened_diff(diff, SHOWN_LINES);
    let all = id.map(|id| format!("{HISTORY} with id {id} shows all"));
    let note = match (short.hunks, all) {
        (0, Some(all)) if short.lacks_removed => format!("[{all}]\n"),
        (0, _) => String::new(),
        (hunks, all) => {
            let lines = counted(short.lines as u64, "more changed line");
            let hunks = counted(hunks as u64, "hunk");
            let all = all.map_or(String::new(), |all| format!("; {all}"));
            format!("[… {lines} in {hunks}{all}]\n")
        }
    };
    short.text + &note
}

/// Added and removed lines in words.
pub(super) fn counts(added: usize, removed: usize) -> String {
    let lines = counted(added as u64, "line");
    format!("{lines} added, {removed} removed")
}
