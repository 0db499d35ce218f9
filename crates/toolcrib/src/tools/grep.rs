//! Grep: finds lines by a pattern.

mod content;
mod counts;
mod definitions;
mod enclosing;
mod files;
mod no_matches;
mod query;
mod search;

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_policy::Access;

use self::search::Search;
use super::invisible_notes::INVISIBLE;
use crate::cx::Cx;
use crate::error::Error;
use crate::message_names::OUTPUT_MODE;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Searches files by regex (Rust syntax) or text. Returns files by relevance, lines (content), counts, or where a name
/// such as A::b is defined (definitions). Ignored, binary and files over 10 MB only if `path` names them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    /// A regex.
    pattern: String,
    /// Default the workspace.
    path: Option<String>,
    /// Such as "src/**/*.rs, !*_test.rs".
    glob: Option<String>,
    /// ripgrep's type: rust, py, …
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// What to return.
    #[serde(default)]
    output_mode: OutputMode,
    /// Ignore case.
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    /// Line numbers.
    #[serde(rename = "-n", default = "yes")]
    line_numbers: bool,
    /// Lines after.
    #[serde(rename = "-A")]
    #[schemars(range(min = 0, max = 1_000))]
    after: Option<u64>,
    /// Lines before.
    #[serde(rename = "-B")]
    #[schemars(range(min = 0, max = 1_000))]
    before: Option<u64>,
    /// Lines around.
    #[serde(rename = "-C", default)]
    #[schemars(range(min = 0, max = 1_000))]
    context: u64,
    /// Across lines.
    #[serde(default)]
    multiline: bool,
    /// Pattern is text.
    #[serde(default)]
    literal: bool,
    /// Results; 0 for all that fit.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 0, max = 10_000))]
    head_limit: u64,
    /// Results to skip.
    #[serde(default)]
    offset: u64,
    /// Default relevance for files, else path.
    sort: Option<Sort>,
    /// Include dotfiles.
    #[serde(default = "yes")]
    hidden: bool,
    /// Ignored files too.
    #[serde(default)]
    ignored: bool,
}

fn yes() -> bool {
    true
}

fn default_limit() -> u64 {
    100
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
    Definitions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Relevance,
    Path,
    Modified,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("pattern", "string", "always", "The pattern of the call."),
    MetadataField::new("offset", "integer", "always", "Results skipped."),
    MetadataField::new("head_limit", "integer", "always", "The limit that was used."),
    MetadataField::new("shown", "integer", "always", "Number of results in the reply."),
    MetadataField::new("returned_matches", "integer", "always", "The same as `shown`."),
    MetadataField::new(
        "total_matches",
        "integer",
        "modes content and count, if everything was searched; no match",
        "Number of matches.",
    ),
    MetadataField::new(
        "total",
        "integer",
        "modes files_with_matches and definitions, if everything was searched; `offset` past the end",
        "Number of files, definitions or matches.",
    ),
    MetadataField::new(
        "at_least",
        "integer",
        "instead of a total, if the search stopped early",
        "Results found so far.",
    ),
    MetadataField::new(
        "files_with_matches",
        "integer",
        "mode count",
        "Number of files with a match.",
    ),
    MetadataField::new(
        "files_shown",
        "integer",
        "mode content",
        "Files with a match in the reply.",
    ),
    MetadataField::new("files", "array of string", "mode files_with_matches", "The files."),
    MetadataField::new(
        "complete",
        "boolean",
        "always",
        "Whether every result is in the reply and everything was searched.",
    ),
    MetadataField::new("files_searched", "integer", "always", "Files searched."),
    MetadataField::new(
        "undecided_lines",
        "integer",
        "always",
        "Lines that could not be searched within the limits.",
    ),
    MetadataField::new("files_skipped", "object", "always", "Files that were not searched."),
    MetadataField::new("files_skipped.binary", "integer", "always", "Binary files."),
    MetadataField::new("files_skipped.large", "integer", "always", "Files over the size limit."),
    MetadataField::new("files_skipped.unreadable", "integer", "always", "Unreadable files."),
    MetadataField::new("files_skipped.hidden", "integer", "always", "Hidden files."),
    MetadataField::new("files_skipped.ignored", "integer", "always", "Ignored files."),
    MetadataField::new(
        "files_skipped.ignored_directories",
        "integer",
        "always",
        "Ignored directories.",
    ),
    MetadataField::new("milliseconds", "integer", "always", "Duration of the search."),
];

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("regex", "pattern"),
        ("query", "pattern"),
        ("file_path", "path"),
        ("directory", "path"),
        ("include", "glob"),
        ("file_type", "type"),
        ("mode", "output_mode"),
        ("case_insensitive", "-i"),
        ("ignore_case", "-i"),
        ("line_numbers", "-n"),
        ("after_context", "-A"),
        ("before_context", "-B"),
        ("context", "-C"),
        ("fixed_strings", "literal"),
        ("limit", "head_limit"),
        ("max_results", "head_limit"),
        ("no_ignore", "ignored"),
        ("include_ignored", "ignored"),
    ];
    const LOWERED: &'static [&'static str] = &["-A", "-B", "-C", "head_limit"];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, INVISIBLE];

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let began = Instant::now();
        let query = self.query(cx)?;
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let search = Search::begin(cx, &query, &cancelled, began);
        let reply = match query.mode {
            OutputMode::FilesWithMatches => files::reply(&search),
            OutputMode::Content => content::reply(&search),
            OutputMode::Count => counts::reply(&search),
            OutputMode::Definitions => definitions::reply(&search),
        };
        cx.check_cancelled()?;
        let ignores_context =
            query.mode != OutputMode::Content && (query.before > 0 || query.after > 0);
        let reply = if ignores_context {
            reply.note(format!("[-A, -B and -C need {OUTPUT_MODE} content]\n"))
        } else {
            reply
        };
        let is_name = query.mode == OutputMode::Definitions;
        let reply = if is_name && (self.ignore_case || self.multiline) {
            reply
                .note(format!("[-i and multiline have no effect with {OUTPUT_MODE} definitions]\n"))
        } else {
            reply
        };
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(reply.with("milliseconds", milliseconds))
    }
}

impl Grep {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }
}
