//! The files of a patch, before and after it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, NewMode};

use super::refusal;
use crate::cx::{Cx, FileEdit};
use crate::error::Error;

/// The files by their resolved paths: two spellings of a path are one file.
pub(super) struct Files {
    files: Vec<File>,
    by_path: HashMap<PathBuf, usize>,
}

#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Path, as replies show it.
    pub(super) shown: String,
    /// Content on disk. `None` if the file does not exist.
    pub(super) was: Option<Content>,
    /// Content after the parts so far.
    pub(super) now: Option<Content>,
    /// Mode on disk.
    pub(super) mode: Option<u32>,
    pub(super) new_mode: Option<NewMode>,
    /// Content of a file whose path another file has taken: a later part of the patch moves it.
    pub(super) displaced: Option<Content>,
}

impl Files {
    pub(super) fn new(
        cx: &Cx<'_>,
        paths: &[&Path],
        contents: &[Option<Content>],
    ) -> Result<Files, Error> {
        let (mut files, mut by_path) = (Vec::new(), HashMap::new());
        let mut by_real: HashMap<PathBuf, usize> = HashMap::new();
        for (path, was) in paths.iter().zip(contents) {
            let at = *by_real.entry(cx.real_path(path)?).or_insert(files.len());
            by_path.insert(path.to_path_buf(), at);
            if at == files.len() {
                files.push(File {
                    path: path.to_path_buf(),
                    shown: cx.show(path)?,
                    was: was.clone(),
                    now: was.clone(),
                    mode: was.as_ref().and(cx.mode(path)?),
                    new_mode: None,
                    displaced: None,
                });
            }
        }
        Ok(Files { files, by_path })
    }

    /// Index of the file with this path.
    pub(super) fn find(&self, path: &Path) -> Result<usize, Error> {
        self.by_path.get(path).copied().ok_or_else(refusal::unknown_file)
    }

    pub(super) fn get(&self, at: usize) -> &File {
        &self.files[at]
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut File {
        &mut self.files[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }
}

impl File {
    pub(super) fn is_changed(&self) -> bool {
        self.was != self.now || self.changed_mode().is_some()
    }

    /// The edit of this file.
    pub(super) fn edit(&self) -> FileEdit {
        FileEdit {
            path: self.path.clone(),
            was: self.was.clone(),
            now: self.now.clone(),
            mode: self.changed_mode(),
        }
    }

    /// The new mode, if it changes.
    pub(super) fn changed_mode(&self) -> Option<NewMode> {
        let new = self.new_mode.filter(|_| self.now.is_some())?;
        let same =
            self.mode.filter(|_| self.was.is_some()).is_some_and(|mode| new.of(mode) == mode);
        (!same).then_some(new)
    }

    /// The mode after the patch, as far as it is known: the mode of a new file depends on the umask.
    pub(super) fn mode_after(&self) -> Option<u32> {
        match self.new_mode {
            Some(new) => Some(new.of(self.mode.unwrap_or(0o644))),
            None => self.mode,
        }
    }

    /// The mode of a copy of this file.
    pub(super) fn mode_for_another(&self, executable: Option<bool>) -> Option<NewMode> {
        let toggled = executable.map(NewMode::Executable);
        match self.mode {
            Some(mode) => Some(NewMode::Exactly(toggled.map_or(mode, |new| new.of(mode)))),
            None => toggled.or(self.new_mode),
        }
    }
}
