//! A tree of files: the input or the result of a patch.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::scratch::remove_directory;

/// Regular files by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<Vec<u8>, File>);

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) executable: bool,
    pub(super) bytes: Vec<u8>,
}

impl Tree {
    /// Makes these the only files of a directory, which itself is not replaced.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        clear(directory)?;
        for (name, file) in &self.0 {
            let path = directory.join(OsStr::from_bytes(name));
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)?;
            }
            fs::write(&path, &file.bytes)?;
            let mode = if file.executable { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Reads the files of a directory. Ignores `.git`, symlinks and empty directories, which git does not store
    /// either.
    pub(super) fn read(directory: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.read_beneath(directory, directory)?;
        Ok(tree)
    }

    fn read_beneath(&mut self, top: &Path, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() && !path.ends_with(".git") {
                self.read_beneath(top, &path)?;
            } else if kind.is_file() {
                let name = path.strip_prefix(top)?.as_os_str().as_bytes().to_vec();
                let executable = fs::metadata(&path)?.permissions().mode() & 0o100 != 0;
                self.0.insert(name, File { executable, bytes: fs::read(&path)? });
            }
        }
        Ok(())
    }

    /// The files with `\r\n` replaced by `\n`.
    pub(super) fn with_plain_endings(&self) -> Tree {
        let plain = |file: &File| {
            let lines = file.bytes.split_inclusive(|byte| *byte == b'\n');
            let line = |line: &[u8]| match line.strip_suffix(b"\r\n") {
                Some(line) => [line, b"\n"].concat(),
                None => line.to_vec(),
            };
            File { bytes: lines.flat_map(line).collect(), executable: file.executable }
        };
        Tree(self.0.iter().map(|(name, file)| (name.clone(), plain(file))).collect())
    }

    /// Describes the first file that differs from another tree; `None` if the trees are equal.
    pub(super) fn difference(&self, other: &Tree) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        let differs = |name: &&Vec<u8>| self.0.get(*name) != other.0.get(*name);
        let name = names.filter(differs).min()?;
        let shown = String::from_utf8_lossy(name).into_owned();
        Some(match (self.0.get(name), other.0.get(name)) {
            (Some(_), None) => format!("{shown} exists"),
            (None, Some(_)) => format!("{shown} does not exist"),
            (Some(one), Some(two)) if one.bytes == two.bytes => format!("the mode of {shown}"),
            _ => format!("the content of {shown}"),
        })
    }
}

/// Removes everything in a directory except `.git`.
fn clear(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            remove_directory(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, bool, &str)]) -> Tree {
        let file = |&(name, executable, text): &(&str, bool, &str)| {
            (name.into(), File { executable, bytes: text.into() })
        };
        Tree(files.iter().map(file).collect())
    }

    #[test]
    fn reading_a_written_tree_gives_the_same_tree() {
        let directory = tempfile::tempdir().unwrap();
        tree(&[("gone", false, "")]).write(directory.path()).unwrap();
        let written = tree(&[("d/e/x", true, "1\n"), ("y", false, "")]);
        written.write(directory.path()).unwrap();
        assert_eq!(Tree::read(directory.path()).unwrap(), written);
    }

    #[test]
    fn a_difference_names_the_file() {
        let one = tree(&[("a", false, "1"), ("b", false, "1")]);
        assert_eq!(one.difference(&one), None);
        let difference = |other: &[(&str, bool, &str)]| one.difference(&tree(other)).unwrap();
        assert_eq!(difference(&[("a", false, "2"), ("b", false, "1")]), "the content of a");
        assert_eq!(difference(&[("a", false, "1"), ("b", true, "1")]), "the mode of b");
        assert_eq!(difference(&[("b", false, "1")]), "a exists");
    }
}
