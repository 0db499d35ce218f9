//! Unified diffs: plain ones, and git's with extended headers.

use super::hunk::{self, Hunk, Sign};
use super::names::{self, Name};
use super::unfenced_lines::{PatchLine, UnfencedLines};
use super::{FileAction, FilePatch, PatchError};

/// Parses all files of a diff, in order. Text between them is ignored.
pub(super) fn parse(mut source: UnfencedLines<'_>) -> Result<Vec<FilePatch<'_>>, PatchError> {
    let mut files = Vec::new();
    let mut current: Option<FileEntry<'_>> = None;
    while let Some(line) = source.peek() {
        let text = line.text;
        if text.starts_with("diff --git ") || is_name_pair(source) {
            let entry = FileEntry::read(&mut source)?;
            if let Some(before) = current.replace(entry) {
                files.extend(before.finish()?);
            }
        } else if text.starts_with("@@") {
            source.next_line();
            let Some(entry) = &mut current else {
                let what = "begins a hunk, but no line before it names a file";
                return Err(PatchError::invalid(line.number, what)
                    .hint("Put --- a/FILE and +++ b/FILE before it."));
            };
            entry.hunks.push(hunk::parse_unified(&mut source, line, is_header)?);
        } else {
            require_supported(line)?;
            source.next_line();
        }
    }
    if let Some(last) = current {
        files.extend(last.finish()?);
    }
    Ok(files)
}

/// Whether a hunk ends here although its counts do not say so.
fn is_header(source: UnfencedLines<'_>) -> bool {
    let Some(line) = source.peek() else { return true };
    let starts = ["@@", "diff -", "Index: ", "Only in "];
    starts.iter().any(|start| line.text.starts_with(start)) || is_name_pair(source)
}

/// `---` and `+++` with a hunk after them. A created or deleted file may be empty and have no hunk.
fn is_name_pair(mut source: UnfencedLines<'_>) -> bool {
    let Some((old, new)) = take_names(&mut source) else { return false };
    let nameless = [old, new].iter().any(|name| name.trim_end() == "/dev/null");
    nameless || source.next_line().is_some_and(|line| line.text.starts_with("@@"))
}

/// The names after `---` and `+++`, if the next two lines are these.
fn take_names<'a>(source: &mut UnfencedLines<'a>) -> Option<(&'a str, &'a str)> {
    let mut ahead = *source;
    let old = ahead.next_line()?.text.strip_prefix("--- ")?;
    let new = ahead.next_line()?.text.strip_prefix("+++ ")?;
    *source = ahead;
    Some((old, new))
}

/// Rejects unsupported kinds of diff. Any other line is prose.
fn require_supported(line: PatchLine<'_>) -> Result<(), PatchError> {
    let text = line.text.trim_end();
    let binary = text.starts_with("Binary files ") && text.ends_with("differ");
    if binary || text == "GIT binary patch" {
        return Err(PatchError::unsupported(line.number, "changes a binary file")
            .hint("Omit that file; only text can be patched."));
    }
    if text.starts_with("diff --cc ") || text.starts_with("diff --combined ") {
        return Err(PatchError::unsupported(line.number, "begins the diff of a merge")
            .hint("Give a diff between two versions, as printed by git diff A B."));
    }
    if text.starts_with("***************") {
        return Err(PatchError::unsupported(line.number, "is part of a context diff")
            .hint("Give a unified diff, as printed by diff -u."));
    }
    Ok(())
}

/// A file of a diff, while it is parsed.
#[derive(Default)]
struct FileEntry<'a> {
    line: usize,
    /// Its names before and after. `None` if there is no file.
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    copied: bool,
    executable: Option<bool>,
    hunks: Vec<Hunk<'a>>,
}

impl<'a> FileEntry<'a> {
    /// Parses the header of a file, git's or a plain one.
    fn read(source: &mut UnfencedLines<'a>) -> Result<FileEntry<'a>, PatchError> {
        let mut entry = FileEntry { line: source.number(), ..FileEntry::default() };
        let first = source.peek();
        let git = first.and_then(|line| line.text.strip_prefix("diff --git "));
        let mut headers = GitHeaders::default();
        if let Some(names) = git {
            source.next_line();
            let name = names::of_git_line(names);
            (entry.old, entry.new) = (name.clone(), name);
            while let Some(line) = source.peek() {
                if !headers.take(line)? {
                    break;
                }
                source.next_line();
            }
        }
        if let Some((old, new)) = take_names(source) {
            let names = names::pair(&Name::after_sign(old), &Name::after_sign(new));
            // A prefix is recognizable only if both sides have a name. Beside /dev/null, the `diff --git`
            // line is more reliable.
            (entry.old, entry.new) = match names {
                (None, Some(new)) => (None, entry.new.or(Some(new))),
                (Some(old), None) => (entry.old.or(Some(old)), None),
                both => both,
            };
        }
        entry.old = headers.from.or(entry.old).filter(|_| !headers.added);
        entry.new = headers.to.or(entry.new).filter(|_| !headers.deleted);
        entry.copied = headers.copied;
        entry.executable = headers.executable;
        if entry.old.is_none() && entry.new.is_none() {
            return Err(PatchError::invalid(entry.line, "begins a file without a name"));
        }
        Ok(entry)
    }

    /// The change of the file. `None` if the diff does not change it.
    fn finish(mut self) -> Result<Option<FilePatch<'a>>, PatchError> {
        let (action, path, from) = match (self.old, self.new) {
            (None, Some(new)) => (FileAction::Add, new, None),
            (Some(old), None) => (FileAction::Delete, old, None),
            (Some(old), Some(new)) if old == new => (FileAction::Update, new, None),
            (old, new) => {
                let action = if self.copied { FileAction::Copy } else { FileAction::Move };
                (action, new.unwrap_or_default(), old)
            }
        };
        match action {
            FileAction::Add => require_one_sided(&mut self.hunks, Sign::Add)?,
            FileAction::Delete => require_one_sided(&mut self.hunks, Sign::Remove)?,
            FileAction::Update if self.hunks.is_empty() && self.executable.is_none() => {
                return Ok(None);
            }
            _ => {}
        }
        let executable = self.executable;
        Ok(Some(FilePatch { line: self.line, action, path, from, executable, hunks: self.hunks }))
    }
}

/// A created or deleted file has lines of one kind only. An empty line may lack its sign.
fn require_one_sided(hunks: &mut [Hunk<'_>], sign: Sign) -> Result<(), PatchError> {
    for hunk in hunks {
        let number = hunk.line;
        for line in &mut hunk.lines {
            if line.sign == Sign::Keep && line.text.is_empty() {
                line.sign = sign;
            }
            if line.sign != sign {
                let what = match sign {
                    Sign::Add => "begins a hunk of a new file, but not all of its lines are added",
                    _ => "begins a hunk of a deleted file, but not all of its lines are removed",
                };
                return Err(PatchError::invalid(number, what).hint(
                    "Use --- /dev/null only for a new file, and +++ /dev/null only for a deleted one.",
                ));
            }
        }
    }
    Ok(())
}

/// The header lines of git between `diff --git` and `---`.
#[derive(Default)]
struct GitHeaders {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    added: bool,
    deleted: bool,
    copied: bool,
    executable: Option<bool>,
}

impl GitHeaders {
    /// Parses a line. Returns whether it is such a header.
    fn take(&mut self, line: PatchLine<'_>) -> Result<bool, PatchError> {
        let text = line.text;
        let after = |word: &str| text.strip_prefix(word);
        if let Some(name) = after("rename from ").or(after("copy from ")) {
            self.from = Some(Name::plain(name));
        } else if let Some(name) = after("rename to ").or(after("copy to ")) {
            self.to = Some(Name::plain(name));
            self.copied = text.starts_with("copy");
        } else if let Some(mode) = after("new file mode ") {
            self.added = true;
            self.executable = Some(is_executable(mode, line.number)?).filter(|&yes| yes);
        } else if let Some(mode) = after("new mode ") {
            self.executable = Some(is_executable(mode, line.number)?);
        } else if let Some(mode) = after("deleted file mode ") {
            self.deleted = true;
            is_executable(mode, line.number)?;
        } else if let Some(mode) = after("old mode ") {
            is_executable(mode, line.number)?;
        } else if let Some(hashes) = after("index ") {
            // The hashes are git's own. The mode follows them if it is unchanged.
            if let Some((_, mode)) = hashes.split_once(' ') {
                is_executable(mode, line.number)?;
            }
        } else {
            return Ok(after("similarity index ").or(after("dissimilarity index ")).is_some());
        }
        Ok(true)
    }
}

/// Whether a mode is executable. `Err` if it is not the mode of a regular file.
fn is_executable(mode: &str, line: usize) -> Result<bool, PatchError> {
    let unsupported = |what: &str| {
        Err(PatchError::unsupported(line, what)
            .hint("Omit that file; only regular files of mode 644 and 755 can be patched."))
    };
    let Ok(mode) = u32::from_str_radix(mode.trim(), 8) else {
        return Err(PatchError::invalid(line, "has a mode that is not an octal number"));
    };
    match mode & 0o170_000 {
        0o120_000 => unsupported("changes a symlink"),
        0o160_000 => unsupported("changes a submodule"),
        0o100_000 if mode & 0o7000 != 0 => unsupported("sets a setuid or setgid bit"),
        0o100_000 => Ok(mode & 0o100 != 0),
        _ => unsupported("has a mode that is not of a regular file"),
    }
}
