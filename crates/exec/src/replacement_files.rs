//! Files and directories that commands see in place of others, such as lists of certificate authorities.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::sandbox::{PinnedPath, Replacement};
use crate::session_tmp::SessionTmp;

/// Entries of a directory that is copied.
const MAX_ENTRIES: usize = 4096;

/// The largest file that is copied with a directory.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Files that are removed when this is dropped.
#[derive(Debug)]
pub struct ReplacementFiles {
    directory: SessionTmp,
    replacements: Vec<Replacement>,
}

impl ReplacementFiles {
    /// Makes a directory for the files in `parent`.
    pub fn make(parent: &Path) -> io::Result<ReplacementFiles> {
        Ok(ReplacementFiles { directory: SessionTmp::make(parent)?, replacements: Vec::new() })
    }

    /// What commands see.
    pub fn replacements(&self) -> &[Replacement] {
        &self.replacements
    }

    /// Replaces a file. A missing one can only be added beneath `/run`, which commands see empty.
    pub fn file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let copy = self.new_path();
        fs::write(&copy, content)?;
        self.replace(path, &copy)
    }

    /// Replaces a directory by a copy in which some files are changed or added.
    pub fn directory(&mut self, path: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
        let copy = self.new_path();
        fs::create_dir(&copy)?;
        for entry in fs::read_dir(path)?.take(MAX_ENTRIES) {
            let entry = entry?;
            copy_entry(&entry.path(), &copy.join(entry.file_name()))?;
        }
        for (name, content) in files {
            let file = copy.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&copy))?;
            // A symlink would lead to the real file.
            let _ = fs::remove_file(&file);
            fs::write(file, content)?;
        }
        self.replace(path, &copy)
    }

    fn new_path(&self) -> PathBuf {
        self.directory.path().join(self.replacements.len().to_string())
    }

    fn replace(&mut self, path: &Path, copy: &Path) -> io::Result<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let by = PinnedPath::of(fs::canonicalize(copy)?)?;
        self.replacements.push(Replacement { path, by });
        Ok(())
    }
}

/// Copies a file or a symlink, and the files of a directory. Other entries are left out.
fn copy_entry(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(from)?;
    if about.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if about.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)?.take(MAX_ENTRIES) {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                copy_entry(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
    } else if about.is_file() && about.len() <= MAX_FILE_BYTES {
        // What the user cannot read, commands cannot read either.
        match fs::read(from) {
            Ok(content) => fs::write(to, content)?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_changed_and_added_files() {
        let parent = tempfile::tempdir().unwrap();
        let system = parent.path().join("system");
        fs::create_dir_all(system.join("java")).unwrap();
        fs::write(system.join("all.crt"), "old").unwrap();
        fs::write(system.join("one.pem"), "one").unwrap();
        symlink("../one.pem", system.join("java/cacerts")).unwrap();
        symlink("one.pem", system.join("12345678.0")).unwrap();
        let mut files = ReplacementFiles::make(&parent.path().join("made")).unwrap();
        let changed: [(&str, &[u8]); 3] =
            [("all.crt", b"new"), ("87654321.0", b"added"), ("java/cacerts", b"java")];
        files.directory(&system, &changed).unwrap();
        files.file(&system.join("one.pem"), b"two").unwrap();
        let [directory, file] = files.replacements() else { panic!() };
        assert_eq!(directory.path, system.canonicalize().unwrap());
        let read = |name: &str| fs::read_to_string(directory.by.path.join(name)).unwrap();
        assert_eq!((read("all.crt"), read("87654321.0")), ("new".to_owned(), "added".to_owned()));
        assert_eq!(
            (read("12345678.0"), read("java/cacerts")),
            ("one".to_owned(), "java".to_owned())
        );
        assert_eq!(fs::read_to_string(&file.by.path).unwrap(), "two");
        let path = file.by.path.clone();
        drop(files);
        assert!(!path.exists() && system.exists());
    }
}
