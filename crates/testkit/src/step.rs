//! The steps of a case, parsed from its blocks.

use std::path::PathBuf;

use crate::content_encoding::ContentEncoding;
use crate::markdown_page::Segment;

/// A step of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `file PATH [escaped|hex] [mode=755] [age=60]`: a file that exists before the next call.
    File(FileBlock),
    /// `dir PATH`: a directory.
    Directory(PathBuf),
    /// `symlink PATH`: a symlink; the body is its target.
    Symlink(PathBuf),
    /// `hardlink PATH`: a hard link; the body is the existing file.
    HardLink(PathBuf),
    /// `fifo PATH`.
    Fifo(PathBuf),
    /// `setup`: lines `profile: read-only`, `root: ro`, `paths: absolute`, `hard_links:
    /// write_through`; before the first call.
    Setup,
    /// `call TOOL [dry-run]`: a call; the body is its arguments.
    Call { tool: String, dry_run: bool },
    /// `output`: the expected reply of the previous call.
    Output,
    /// `error KIND`: the expected error of the previous call.
    Error(String),
    /// `metadata`: expected members of the previous reply's metadata. Others are ignored.
    Metadata,
    /// `after PATH [escaped|hex] [mode=755]`: the expected file after the previous call.
    After(FileBlock),
    /// `after PATH symlink`: the expected symlink after the previous call; the body is its target.
    AfterSymlink(PathBuf),
    /// `after PATH dir`: a directory that must exist, with any content.
    AfterDirectory(PathBuf),
    /// `absent PATH`: a path that must not exist.
    Absent(PathBuf),
}

/// A file of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileBlock {
    pub(crate) path: PathBuf,
    pub(crate) encoding: ContentEncoding,
    pub(crate) mode: Option<u32>,
    /// The age of its modification time in seconds.
    pub(crate) age: Option<u64>,
}

impl Step {
    /// Parses the step of a block. `None` for prose.
    pub(crate) fn parse(segment: &Segment) -> Result<Option<(Step, &str)>, String> {
        let Segment::Block { info, body, .. } = segment else {
            return Ok(None);
        };
        let words: Vec<&str> = info.split_whitespace().collect();
        let step = match words.as_slice() {
            ["file", path, rest @ ..] => Step::File(FileBlock::parse(path, rest)?),
            ["after", path, "symlink"] => Step::AfterSymlink(parse_path(path)?),
            ["after", path, "dir"] => Step::AfterDirectory(parse_path(path)?),
            ["after", path, rest @ ..] => Step::After(FileBlock::parse(path, rest)?),
            ["dir", path] => Step::Directory(parse_path(path)?),
            ["symlink", path] => Step::Symlink(parse_path(path)?),
            ["hardlink", path] => Step::HardLink(parse_path(path)?),
            ["fifo", path] => Step::Fifo(parse_path(path)?),
            ["absent", path] => Step::Absent(parse_path(path)?),
            ["setup"] => Step::Setup,
            ["call", tool] => Step::Call { tool: (*tool).to_owned(), dry_run: false },
            ["call", tool, "dry-run"] => Step::Call { tool: (*tool).to_owned(), dry_run: true },
            ["output"] => Step::Output,
            ["error", kind] => Step::Error((*kind).to_owned()),
            ["metadata"] => Step::Metadata,
            _ => return Err(format!("no such block: ```{info}")),
        };
        Ok(Some((step, body)))
    }
}

impl FileBlock {
    fn parse(path: &str, rest: &[&str]) -> Result<FileBlock, String> {
        let mut block = FileBlock {
            path: parse_path(path)?,
            encoding: ContentEncoding::Plain,
            mode: None,
            age: None,
        };
        for word in rest {
            match word.split_once('=') {
                None if *word == "escaped" => block.encoding = ContentEncoding::Escaped,
                None if *word == "hex" => block.encoding = ContentEncoding::Hex,
                Some(("mode", mode)) => {
                    let mode = u32::from_str_radix(mode, 8);
                    block.mode = Some(mode.map_err(|_| format!("no mode: {word}"))?);
                }
                Some(("age", seconds)) => {
                    block.age = Some(seconds.parse().map_err(|_| format!("no age: {word}"))?);
                }
                _ => return Err(format!("a file block has no word `{word}`")),
            }
        }
        Ok(block)
    }
}

/// Parses a path in an info string, in which whitespace and unusual bytes are escaped.
fn parse_path(escaped: &str) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStringExt;
    Ok(std::ffi::OsString::from_vec(crate::content_encoding::unescape(escaped)?).into())
}
