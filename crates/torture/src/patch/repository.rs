//! Reads commits, their changes and file versions from a git repository.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

/// A repository, which is only read.
pub(super) struct Repository {
    path: PathBuf,
    blobs: Blobs,
}

/// The change of one file in a commit.
pub(super) struct FileChange {
    /// The status letter of git: A, C, D, M, R, T.
    pub(super) status: u8,
    pub(super) old: Option<Version>,
    pub(super) new: Option<Version>,
    /// The section of the commit's diff.
    pub(super) diff: Vec<u8>,
}

/// A file at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) path: Vec<u8>,
    pub(super) mode: String,
    pub(super) blob: String,
}

impl Repository {
    pub(super) fn open(path: PathBuf) -> Result<Repository> {
        let blobs = Blobs::start(&path)?;
        Ok(Repository { path, blobs })
    }

    /// The name of its directory, or of the parent if the directory is called `repo`.
    pub(super) fn name(&self) -> String {
        let named = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let own = named(&self.path).unwrap_or_default();
        match own.as_str() {
            "repo" | ".git" => self.path.parent().and_then(named).unwrap_or(own),
            _ => own,
        }
    }

    /// The directory of its objects.
    pub(super) fn objects(&self) -> Result<PathBuf> {
        let words = ["rev-parse", "--path-format=absolute", "--git-path", "objects"];
        Ok(process::capture(git(&self.path).args(words))?.trim().into())
    }

    /// At most this many commits without merges, the newest first.
    pub(super) fn commits(&self, most: usize) -> Result<Vec<String>> {
        let most = format!("--max-count={most}");
        let words = ["log", "--no-merges", "--format=%H", &most];
        let listed = process::capture(git(&self.path).args(words))?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// The changes of a commit in the order of its diff, which has this many context lines.
    pub(super) fn changes(&self, commit: &str, context: usize) -> Result<Vec<FileChange>> {
        let common =
            ["diff-tree", "-r", "--root", "--no-commit-id", "--full-index", "-M", "-C", commit];
        let raw = output(git(&self.path).args(common).args(["--raw", "-z"]))?;
        let context = format!("--unified={context}");
        let diff = output(git(&self.path).args(common).args(["-p", "--no-ext-diff", &context]))?;
        let mut sections = sections(&diff).into_iter();
        let mut changes = raw_changes(&raw)?;
        for change in &mut changes {
            // A change of the file type is a deletion and an addition.
            let count = if change.status == b'T' { 2 } else { 1 };
            change.diff = sections.by_ref().take(count).collect::<Vec<_>>().concat();
        }
        match sections.next() {
            None => Ok(changes),
            Some(_) => Err(format!("the diff of {commit} has more parts than files").into()),
        }
    }

    /// All files at a commit; `None` if the commit does not exist.
    pub(super) fn files(&self, commit: &str) -> Result<Option<BTreeMap<Vec<u8>, Version>>> {
        let mut command = git(&self.path);
        let listed =
            command.args(["ls-tree", "-r", "-z", commit]).stderr(Stdio::null()).output()?;
        if !listed.status.success() {
            return Ok(None);
        }
        let file = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
            let (mode, _, blob) = (words.next()?, words.next()?, words.next()?);
            let path = line[tab + 1..].to_vec();
            Some((path.clone(), Version { path, mode: mode.into(), blob: blob.into() }))
        };
        Ok(Some(listed.stdout.split(|byte| *byte == 0).filter_map(file).collect()))
    }

    /// The content of a file.
    pub(super) fn read(&mut self, version: &Version) -> Result<Vec<u8>> {
        self.blobs.read(&version.blob)
    }
}

impl Version {
    /// Whether it is a regular file.
    pub(super) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }

    pub(super) fn is_executable(&self) -> bool {
        self.mode == "100755"
    }
}

/// `git` in a directory, without the user's configuration.
pub(super) fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).stdin(Stdio::null());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("LC_ALL", "C");
    command
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("`{}` ended with {}", process::describe(command), output.status).into())
    }
}

/// The sections of a diff, one per file. No line inside a hunk begins like their first lines.
fn sections(diff: &[u8]) -> Vec<Vec<u8>> {
    let mut sections: Vec<Vec<u8>> = Vec::new();
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            sections.push(Vec::new());
        }
        if let Some(section) = sections.last_mut() {
            section.extend_from_slice(line);
        }
    }
    sections
}

/// Parses `:100644 100644 OLD NEW M` and one or two names, each terminated by NUL.
fn raw_changes(raw: &[u8]) -> Result<Vec<FileChange>> {
    let mut words = raw.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let mut changes = Vec::new();
    while let Some(facts) = words.next() {
        let odd =
            || format!("unexpected output of git diff-tree: `{}`", String::from_utf8_lossy(facts));
        let text = std::str::from_utf8(facts)?;
        let facts: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
        let &[old_mode, new_mode, old_blob, new_blob, status] = &facts[..] else {
            return Err(odd().into());
        };
        let status = *status.as_bytes().first().ok_or_else(odd)?;
        let first = words.next().ok_or_else(odd)?;
        let second = match status {
            b'C' | b'R' => words.next().ok_or_else(odd)?,
            _ => first,
        };
        let version = |path: &[u8], mode: &str, blob: &str| {
            let there = mode != "000000";
            there.then(|| Version { path: path.to_vec(), mode: mode.into(), blob: blob.into() })
        };
        let (old, new) = (version(first, old_mode, old_blob), version(second, new_mode, new_blob));
        changes.push(FileChange { status, old, new, diff: Vec::new() });
    }
    Ok(changes)
}

/// A `git cat-file --batch` process.
struct Blobs {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Blobs {
    fn start(repository: &Path) -> Result<Blobs> {
        let mut command = git(repository);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("git has no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("git has no output")?);
        Ok(Blobs { child, input, output })
    }

    fn read(&mut self, blob: &str) -> Result<Vec<u8>> {
        writeln!(self.input, "{blob}")?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let length = header.split_whitespace().nth(2).and_then(|length| length.parse().ok());
        let length: usize =
            length.ok_or_else(|| format!("unexpected header of {blob}: {header}"))?;
        // A newline follows.
        let mut bytes = vec![0; length + 1];
        self.output.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // It only reads, so it can be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_diff_by_file() {
        let diff =
            b"diff --git a/x b/x\n@@ -1 +1 @@\n-diff --git a/q b/q\n+y\ndiff --git a/z b/z\n";
        assert_eq!(sections(diff).len(), 2);
        assert_eq!(sections(diff).concat(), diff);
    }

    #[test]
    fn parses_raw_lines_with_one_or_two_names() {
        let raw = b":100644 100755 11 22 M\0x\0:100644 100644 33 33 R100\0old\0new\0:000000 120000 00 44 A\0l\0";
        let changes = raw_changes(raw).unwrap();
        assert_eq!(changes.len(), 3);
        assert!(changes[0].new.as_ref().unwrap().is_executable());
        assert_eq!(changes[1].old.as_ref().unwrap().path, b"old");
        assert_eq!(changes[1].new.as_ref().unwrap().path, b"new");
        assert!(changes[2].old.is_none() && !changes[2].new.as_ref().unwrap().is_file());
    }
}
