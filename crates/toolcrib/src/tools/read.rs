//! Read: reads a file in the form that fits its type.

mod binary;
mod definitions;
mod large_text;
mod line_page;
mod notebook;
mod pdf;
mod picture;
mod text;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_fs::ContentHasher;
use toolcrib_media::Kind;
use toolcrib_policy::Access;

use super::invisible_notes::INVISIBLE;
use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::Error;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::seen_files::Seen;
use crate::tool::{Category, Hints, Tool};

/// Reads text in any encoding, images, PDF text and notebook cells. Lines are number, tab, text.
/// Notes are in brackets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// In the workspace, or absolute.
    file_path: String,
    /// First line or cell, from 1; -20 for the last 20.
    #[serde(default = "default_offset")]
    offset: i64,
    /// Lines or cells.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: u64,
    /// PDF pages: "3" or "3-7".
    pages: Option<String>,
    /// Omit content with this hash, or "seen".
    if_changed_since: Option<String>,
    /// A definition, such as A::b.
    symbol: Option<String>,
    /// Its definitions.
    #[serde(default)]
    outline: bool,
}

fn default_offset() -> i64 {
    1
}

fn default_limit() -> u64 {
    2_000
}

#[derive(Debug, Clone, Copy)]
struct Part {
    /// The first line, from 1. Negative values count from the end.
    offset: i64,
    limit: u64,
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("file_path", "string", "always", "The file."),
    MetadataField::new(
        "hash",
        "string",
        "the file was hashed",
        "Hash of its content, for `if_changed_since` and `expected_hash`.",
    ),
    MetadataField::new(
        "truncated",
        "boolean",
        "text, notebooks, PDF, `outline`",
        "Whether lines, cells, pages or definitions follow, or a line was cut.",
    ),
    MetadataField::new(
        "unchanged",
        "boolean",
        "`if_changed_since` matches",
        "`true`; nothing else is returned.",
    ),
    MetadataField::new("offset", "integer", "text, notebooks", "First line or cell that is shown."),
    MetadataField::new("limit", "integer", "text", "The limit that was used."),
    MetadataField::new("lines_read", "integer", "text", "Number of lines shown."),
    MetadataField::new(
        "total_lines",
        "integer",
        "text whose lines were counted; error for an `offset` past the end",
        "Lines of the file.",
    ),
    MetadataField::new(
        "total_lines_at_least",
        "integer",
        "text too large to count",
        "Lines counted before counting stopped.",
    ),
    MetadataField::new(
        "remaining_lines",
        "integer",
        "text",
        "Lines after the last one shown, at least.",
    ),
    MetadataField::new("definitions", "integer", "`outline`", "Number of definitions shown."),
    MetadataField::new("cells_read", "integer", "notebooks", "Number of cells shown."),
    MetadataField::new(
        "total_cells",
        "integer",
        "notebooks; error for an `offset` past the end",
        "Cells of the notebook.",
    ),
    MetadataField::new(
        "total_pages",
        "integer",
        "PDF; error for `pages` past the end",
        "Pages of the document.",
    ),
    MetadataField::new("first_page", "integer", "PDF", "First page shown."),
    MetadataField::new("pages_read", "integer", "PDF", "Number of pages shown."),
    MetadataField::new(
        "media_type",
        "string",
        "images; error `binary` for a known type",
        "Type of the content, such as `image/png`.",
    ),
    MetadataField::new("size", "integer", "images; error `binary`", "Bytes of the file."),
    MetadataField::new("width", "integer", "images", "Width of the original in pixels."),
    MetadataField::new("height", "integer", "images", "Height of the original in pixels."),
    MetadataField::new("shown_width", "integer", "images", "Width of the image in the reply."),
    MetadataField::new("shown_height", "integer", "images", "Height of the image in the reply."),
];

impl Tool for Read {
    const NAME: &'static str = "Read";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[("path", "file_path")];
    const LOWERED: &'static [&'static str] = &["limit"];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, INVISIBLE];

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.file_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let file = cx.open(&self.file_path)?;
        let part = self.part();
        if self.is_unchanged(cx, &file)? {
            return Ok(Reply::new(format!("{} is unchanged.\n", file.shown()))
                .with("file_path", file.shown())
                .with("unchanged", true));
        }
        let mut header: Vec<String> = cx.followed_link(&self.file_path)?.into_iter().collect();
        let symbol = self.symbol.as_deref().filter(|symbol| !symbol.trim().is_empty());
        if self.outline {
            return definitions::list(cx, &file, symbol, part, header);
        }
        if let Some(symbol) = symbol {
            return definitions::read(cx, &file, symbol, self.limit, &header);
        }
        match binary::kind(&file)? {
            Some(Kind::Picture(media_type)) => return picture::read(cx, &file, media_type),
            Some(Kind::Pdf) => return pdf::read(cx, &file, self.pages.as_deref()),
            None if notebook::is_notebook(&file) => match notebook::read(cx, &file, part)? {
                Ok(reply) => return Ok(reply),
                Err(why_not) => header.push(why_not),
            },
            _ => {}
        }
        text::read(cx, &file, part, header)
    }
}

impl Read {
    /// Lines are counted from 1. Callers that count from 0 get the first line too.
    fn part(&self) -> Part {
        Part { offset: if self.offset == 0 { 1 } else { self.offset }, limit: self.limit }
    }

    /// Whether the caller asked for changes only and the file is unchanged.
    fn is_unchanged(&self, cx: &Cx<'_>, file: &OpenFile) -> Result<bool, Error> {
        let Some(since) = &self.if_changed_since else { return Ok(false) };
        let seen = cx.session().seen(file.path());
        let by_hash = !since.trim().eq_ignore_ascii_case("seen");
        if !by_hash && seen.is_none() {
            return Ok(false);
        }
        let mut hasher = ContentHasher::default();
        let mut chunks = file.chunks(cx);
        while let Some(chunk) = chunks.next_chunk()? {
            hasher.feed(chunk);
        }
        let hash = hasher.finish();
        let Part { offset, limit } = self.part();
        let has_it = |seen: Seen| seen.has_shown(offset, limit) && seen.hash == hash;
        Ok(if by_hash { hash.is(since) } else { seen.is_some_and(has_it) })
    }
}
