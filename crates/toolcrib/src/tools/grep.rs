//! Grep: lines by a pattern of what they say.

mod content;
mod counts;
mod files;
mod no_matches;
mod query;
mod search;

use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;

use self::search::Search;
use crate::cx::Cx;
use crate::error::Error;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Finds lines that match a regular expression (Rust syntax plus look-around) or literal text. Returns files by
/// relevance, or lines (content), or counts (count). Hidden files are searched; ignored files, binaries and
/// files over 10 MB only if path names them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    pattern: String,
    /// A file or directory. Default the workspace.
    path: Option<String>,
    /// Such as "src/**/*.rs, !*_test.rs".
    glob: Option<String>,
    /// ripgrep's type: rust, py, …
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// Default files_with_matches.
    output_mode: Option<OutputMode>,
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    /// Line numbers. Default true.
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    #[serde(rename = "-A")]
    #[schemars(range(min = 0, max = 1_000))]
    after: Option<u64>,
    #[serde(rename = "-B")]
    #[schemars(range(min = 0, max = 1_000))]
    before: Option<u64>,
    #[serde(rename = "-C")]
    #[schemars(range(min = 0, max = 1_000))]
    context: Option<u64>,
    multiline: Option<bool>,
    literal: Option<bool>,
    /// 0 for all that fit. Default 100.
    #[schemars(range(min = 0, max = 10_000))]
    head_limit: Option<u64>,
    /// Results to skip.
    offset: Option<u64>,
    /// Default relevance for files, else path.
    sort: Option<Sort>,
    hidden: Option<bool>,
    /// Include ignored files.
    ignored: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    FilesWithMatches,
    Content,
    Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Relevance,
    Path,
    Modified,
}

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

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let began = Instant::now();
        let asked = self.asked(cx)?;
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let search = Search::begin(cx, &asked, &cancelled, began);
        let reply = match asked.mode {
            OutputMode::FilesWithMatches => files::reply(&search),
            OutputMode::Content => content::reply(&search),
            OutputMode::Count => counts::reply(&search),
        };
        cx.check_cancelled()?;
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(reply.with("milliseconds", milliseconds))
    }
}

impl Grep {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }
}
