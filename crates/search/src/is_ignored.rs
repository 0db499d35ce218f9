//! Looks up whether single paths are ignored.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_fs::{BulkReader, Directory};

use crate::ignore_rules::{IgnoreFiles, IgnoreRules, ignores};

/// The ignore rules of a tree. Each ignore file is read once, at the first lookup of a path beneath it.
#[derive(Debug)]
pub struct IgnoreLookup {
    tree: BulkReader,
    known: Mutex<HashMap<PathBuf, DirectoryRules>>,
}

/// The rules of one directory.
#[derive(Debug, Clone)]
enum DirectoryRules {
    /// The directory is ignored with everything in it.
    Ignored,
    Rules(Option<Arc<IgnoreRules>>),
}

impl IgnoreLookup {
    /// A lookup in `tree`.
    pub fn new(tree: BulkReader) -> IgnoreLookup {
        IgnoreLookup { tree, known: Mutex::default() }
    }

    /// Whether a file is ignored. `relative` is relative to the root.
    pub fn has(&self, relative: &Path) -> bool {
        let mut known = self.known.lock();
        let parent = relative.parent().unwrap_or(Path::new(""));
        match self.directory(&mut known, parent) {
            DirectoryRules::Ignored => true,
            DirectoryRules::Rules(rules) => {
                ignores(rules.as_ref(), relative.as_os_str().as_bytes(), false)
            }
        }
    }

    /// Whether a directory is ignored with everything in it. `relative` is relative to the root.
    pub fn has_directory(&self, relative: &Path) -> bool {
        let mut known = self.known.lock();
        matches!(self.directory(&mut known, relative), DirectoryRules::Ignored)
    }

    /// The outermost ignored directory that contains a file. Both paths are relative to the root.
    pub fn ignored_directory_of<'a>(&self, relative: &'a Path) -> Option<&'a Path> {
        let parents = relative.ancestors().skip(1);
        parents.take_while(|directory| self.has_directory(directory)).last()
    }

    fn directory(
        &self,
        known: &mut HashMap<PathBuf, DirectoryRules>,
        relative: &Path,
    ) -> DirectoryRules {
        if let Some(known) = known.get(relative) {
            return known.clone();
        }
        let above = relative.parent().map(|parent| self.directory(known, parent));
        let here = match above {
            Some(DirectoryRules::Ignored) => DirectoryRules::Ignored,
            Some(DirectoryRules::Rules(rules))
                if ignores(rules.as_ref(), relative.as_os_str().as_bytes(), true) =>
            {
                DirectoryRules::Ignored
            }
            Some(DirectoryRules::Rules(rules)) => {
                DirectoryRules::Rules(self.enter(rules, relative))
            }
            None => DirectoryRules::Rules(self.enter(None, relative)),
        };
        known.insert(relative.to_owned(), here.clone());
        here
    }

    fn enter(&self, above: Option<Arc<IgnoreRules>>, relative: &Path) -> Option<Arc<IgnoreRules>> {
        let Ok(directory) = self.tree.directory(relative) else { return above };
        let mut files = IgnoreFiles::default();
        let there = |name: &&str| exists(&directory, name);
        [".ignore", ".gitignore", ".git"].iter().filter(|name| there(name)).for_each(|name| {
            files.note(OsStr::new(name));
        });
        IgnoreRules::enter(above.as_ref(), &self.tree, &directory, relative, files)
    }
}

fn exists(directory: &Directory, name: &str) -> bool {
    directory.stamp_of(OsStr::new(name)).is_some()
}
