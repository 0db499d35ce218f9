//! Glob: finds files by a pattern of their paths.

mod matches;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_search::SplitGlob;

use self::matches::{GlobQuery, find, start};
use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::message_names::READ;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Finds files by glob, newest first, such as "src/**/*.{ts,tsx}". Lists dotfiles and ignored files only if
/// `pattern` or `path` names them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    /// Relative to `path`.
    pattern: String,
    /// Default the workspace.
    path: Option<String>,
    /// Files.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1_000))]
    limit: u64,
    /// Include dotfiles.
    #[serde(default)]
    hidden: bool,
    /// Ignored files too.
    #[serde(default)]
    ignored: bool,
}

fn default_limit() -> u64 {
    100
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("pattern", "string", "always", "The pattern of the call."),
    MetadataField::new("path", "string", "always", "Directory where the search started."),
    MetadataField::new("files", "array of string", "always", "The files, newest first."),
    MetadataField::new("count", "integer", "always", "Number of files listed."),
    MetadataField::new("shown", "integer", "always", "The same as `count`."),
    MetadataField::new("total", "integer", "the search finished", "Number of matching files."),
    MetadataField::new(
        "at_least",
        "integer",
        "instead of `total`, if the search was stopped",
        "Matching files so far.",
    ),
    MetadataField::new("complete", "boolean", "always", "Whether every matching file is listed."),
    MetadataField::new(
        "truncated",
        "boolean",
        "always",
        "Whether some matching files are not listed.",
    ),
    MetadataField::new("files_looked_at", "integer", "always", "Files compared with the pattern."),
    MetadataField::new(
        "hidden_matches",
        "integer",
        "always",
        "Matching hidden files, which are not listed.",
    ),
    MetadataField::new(
        "left_out",
        "object",
        "always",
        "Files and directories that were not searched.",
    ),
    MetadataField::new("left_out.ignored_files", "integer", "always", "Ignored files."),
    MetadataField::new("left_out.ignored_directories", "integer", "always", "Ignored directories."),
    MetadataField::new(
        "left_out.unreadable_directories",
        "integer",
        "always",
        "Directories that could not be read.",
    ),
    MetadataField::new("left_out.too_deep", "integer", "always", "Directories too deep to open."),
    MetadataField::new("milliseconds", "integer", "always", "Duration of the search."),
];

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("glob", "pattern"),
        ("dir_path", "path"),
        ("directory", "path"),
        ("no_ignore", "ignored"),
    ];
    const LOWERED: &'static [&'static str] = &["limit"];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA];

    fn access(&self) -> Vec<Access> {
        let (base, split) = (self.base(), SplitGlob::of(&self.pattern));
        // The literal prefix of the pattern may lead through a symlink to a directory that is not in the base.
        let start = (!self.leads_elsewhere(&split) && !split.prefix.is_empty())
            .then(|| start(&base, &split.prefix));
        [Some(base), start].into_iter().flatten().map(Access::Read).collect()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let began = Instant::now();
        let split = SplitGlob::of(&self.pattern);
        if self.pattern.trim().is_empty() {
            return Err(Error::invalid("`pattern` is empty").hint("`**/*` finds every file."));
        }
        if split.rest.as_deref().unwrap_or_default().split('/').any(|name| name == "..") {
            return Err(Error::invalid("`pattern`: `..` after a wildcard is not supported")
                .hint("Give the directory to search as `path`."));
        }
        let base = cx.search_scope(self.base())?;
        if base.is_file() && !self.leads_elsewhere(&split) {
            let message = format!("{} is a file, not a directory", cx.show(self.base())?);
            return Err(Error::new(ErrorKind::Invalid, message)
                .hint(format!("Give a directory as `path`; {READ} reads a file.")));
        }
        let query = GlobQuery {
            pattern: &self.pattern,
            base: self.base(),
            split: if self.leads_elsewhere(&split) {
                SplitGlob { prefix: String::new(), ..split }
            } else {
                split
            },
            hidden: self.hidden,
            ignored: self.ignored,
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
        };
        let found = find(cx, &base, &query)?;
        cx.check_cancelled()?;
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(report::reply(cx, &query, found).with("milliseconds", milliseconds))
    }
}

impl Glob {
    /// The directory that the pattern is relative to: `path`, unless the pattern is absolute or begins with `~`.
    fn base(&self) -> PathBuf {
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        let split = SplitGlob::of(&self.pattern);
        if !self.leads_elsewhere(&split) {
            path.unwrap_or(".").into()
        } else if split.prefix.starts_with('~') {
            split.prefix.into()
        } else {
            Path::new(path.unwrap_or("")).join(&split.prefix)
        }
    }

    fn leads_elsewhere(&self, split: &SplitGlob) -> bool {
        let prefix = Path::new(&split.prefix);
        let is_home = prefix.starts_with("~");
        prefix.is_absolute() || is_home || split.prefix.split('/').any(|name| name == "..")
    }
}
