//! What the blocks of a case mean.

use std::path::PathBuf;

use crate::content::Spelling;
use crate::document::Segment;

/// A block of a case, by what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `file PATH [escaped|hex] [mode=755] [age=60]`: a file that is there before the next call.
    File(FileBlock),
    /// `dir PATH`: a directory.
    Directory(PathBuf),
    /// `symlink PATH`: a link; the body is its target.
    Symlink(PathBuf),
    /// `hardlink PATH`: another name; the body is the file.
    HardLink(PathBuf),
    /// `fifo PATH`.
    Fifo(PathBuf),
    /// `setup`: lines `profile: read-only`, `root: ro`, `paths: absolute`, `hard_links:
    /// write_through`; before the first call.
    Setup,
    /// `call TOOL [dry-run]`: a call; the body is its arguments.
    Call { tool: String, dry_run: bool },
    /// `output`: what the call before must answer.
    Output,
    /// `error KIND`: how the call before must fail.
    Error(String),
    /// `metadata`: facts that the reply before must have, others aside.
    Metadata,
    /// `after PATH [escaped|hex] [mode=755]`: a file as the call before must leave it.
    After(FileBlock),
    /// `after PATH symlink`: a symlink as the call before must leave it; the body is its target.
    AfterSymlink(PathBuf),
    /// `after PATH dir`: a directory that must be there, whatever is in it.
    AfterDirectory(PathBuf),
    /// `absent PATH`: what must not be there.
    Absent(PathBuf),
}

/// A file, how its block spells it, and its mode and age if they matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileBlock {
    pub(crate) path: PathBuf,
    pub(crate) spelling: Spelling,
    pub(crate) mode: Option<u32>,
    /// How many seconds ago it was last changed.
    pub(crate) age: Option<u64>,
}

impl Step {
    /// The step that a block stands for; prose stands for none.
    pub(crate) fn of(segment: &Segment) -> Result<Option<(Step, &str)>, String> {
        let Segment::Block { info, body, .. } = segment else {
            return Ok(None);
        };
        let words: Vec<&str> = info.split_whitespace().collect();
        let step = match words.as_slice() {
            ["file", path, rest @ ..] => Step::File(FileBlock::parse(path, rest)?),
            ["after", path, "symlink"] => Step::AfterSymlink(name(path)?),
            ["after", path, "dir"] => Step::AfterDirectory(name(path)?),
            ["after", path, rest @ ..] => Step::After(FileBlock::parse(path, rest)?),
            ["dir", path] => Step::Directory(name(path)?),
            ["symlink", path] => Step::Symlink(name(path)?),
            ["hardlink", path] => Step::HardLink(name(path)?),
            ["fifo", path] => Step::Fifo(name(path)?),
            ["absent", path] => Step::Absent(name(path)?),
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
        let mut block =
            FileBlock { path: name(path)?, spelling: Spelling::Plain, mode: None, age: None };
        for word in rest {
            match word.split_once('=') {
                None if *word == "escaped" => block.spelling = Spelling::Escaped,
                None if *word == "hex" => block.spelling = Spelling::Hex,
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

/// A path in an info string, escapes for blanks and odd bytes.
fn name(escaped: &str) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStringExt;
    Ok(std::ffi::OsString::from_vec(crate::content::unescape(escaped)?).into())
}
