//! LS: lists a directory.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::error::Error;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

mod ignore_patterns;
mod tree;

use self::ignore_patterns::Patterns;
use self::tree::{Options, Tree};

/// Lists a directory with sizes and link targets. In a tree, dependencies, build output and caches are one
/// line each.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ls {
    /// Default the workspace.
    path: Option<String>,
    /// As a tree.
    #[serde(default)]
    recursive: bool,
    /// Of the tree. Default 3.
    #[schemars(range(min = 1, max = 100))]
    depth: Option<u64>,
    /// Omit, such as "*.o".
    ignore: Option<Vec<String>>,
    /// Entries.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 5_000))]
    limit: u64,
}

fn default_limit() -> u64 {
    200
}

impl Ls {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("path", "string", "always", "The directory."),
    MetadataField::new("count", "integer", "always", "Number of entries listed."),
    MetadataField::new("shown", "integer", "always", "The same as `count`."),
    MetadataField::new("total", "integer", "all entries were counted", "Number of entries."),
    MetadataField::new(
        "at_least",
        "integer",
        "instead of `total`, if counting stopped",
        "Number of entries counted.",
    ),
    MetadataField::new("complete", "boolean", "always", "Whether every entry is listed."),
    MetadataField::new("ignored", "integer", "always", "Entries omitted by `ignore`."),
    MetadataField::new("entries", "array of object", "always", "The entries."),
    MetadataField::new("entries[].name", "string", "with its object", "Name."),
    MetadataField::new("entries[].path", "string", "with its object", "Path."),
    MetadataField::new(
        "entries[].type",
        "string",
        "with its object",
        "`file`, `directory`, `link` or `special`.",
    ),
    MetadataField::new("entries[].size", "integer", "files", "Bytes."),
    MetadataField::new("entries[].target", "string", "symlinks", "Target of the link."),
];

impl Tool for Ls {
    const NAME: &'static str = "LS";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("dir_path", "path"), ("directory", "path"), ("file_path", "path")];
    const LOWERED: &'static [&'static str] = &["depth", "limit"];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA];

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let shown = cx.show(self.path())?;
        let directory = cx.list(self.path())?;
        let depth = self.depth.unwrap_or(if self.recursive { 3 } else { 1 });
        let options = Options {
            depth: usize::try_from(depth).unwrap_or(1),
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            ignore: Patterns::parse(self.ignore.as_deref().unwrap_or_default()),
            chars: cx.limits().reply_chars,
        };
        let prefix =
            if shown == "." { String::new() } else { format!("{}/", shown.trim_end_matches('/')) };
        let tree = Tree::of(cx, &directory, &prefix, options)?;
        let mut text = format!("{}/\n", shown.trim_end_matches('/'));
        text += &tree.text;
        if tree.entries.is_empty() && tree.ignored == 0 {
            text += "[empty]\n";
        }
        if let Some(note) = cx.session_directory_note(self.path())? {
            text += &format!("[{note}]\n");
        }
        let left = tree.omission_notes(depth);
        if !left.is_empty() {
            text += &format!("[{}]\n", left.join("; "));
        }
        let at_least = if tree.complete { "total" } else { "at_least" };
        Ok(Reply::new(text)
            .with("path", shown)
            .with("count", tree.entries.len())
            .with("shown", tree.entries.len())
            .with(at_least, tree.total)
            .with("complete", tree.is_complete())
            .with("ignored", tree.ignored)
            .with("entries", tree.entries))
    }
}
