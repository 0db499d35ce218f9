//! Directories that Undo restores or removes with their files. One line each keeps the reply short.

use std::path::{Path, PathBuf};

use super::report::verb;
use crate::cx::{Cx, FileEdit};
use crate::undo::Plan;

/// Fewer files are named.
const MIN_FILES: usize = 3;

/// A directory that is restored or removed, and the number of its files.
pub(super) struct WholeDirectory<'a> {
    path: &'a Path,
    is_restored: bool,
    /// It is not removed, because it has other entries.
    stays: bool,
    files: usize,
}

impl<'a> WholeDirectory<'a> {
    /// The topmost directories with several of these files, which are sorted by path.
    pub(super) fn all(plan: &'a Plan, files: &[&FileEdit]) -> Vec<WholeDirectory<'a>> {
        let restored = plan.needed.iter().map(|(path, _)| (path, true));
        let removed = plan.unneeded.iter().map(|path: &PathBuf| (path, false));
        let mut all: Vec<WholeDirectory<'a>> = Vec::new();
        // Parents come first.
        for (path, is_restored) in restored.chain(removed) {
            let is_inside = |one: &WholeDirectory<'_>| {
                one.is_restored == is_restored && path.starts_with(one.path)
            };
            if all.iter().any(is_inside) {
                continue;
            }
            let stays = !is_restored && plan.nonempty.contains(path);
            let mut directory = WholeDirectory { path, is_restored, stays, files: 0 };
            // Those in a directory follow it directly.
            let first = files.partition_point(|edit| edit.path < *path);
            let below = files.iter().skip(first);
            let below = below.take_while(|edit| edit.path.starts_with(path));
            directory.files = below.filter(|edit| directory.has(edit)).count();
            if directory.files >= MIN_FILES {
                all.push(directory);
            }
        }
        all
    }

    /// Whether it includes the change of a file.
    pub(super) fn has(&self, edit: &FileEdit) -> bool {
        edit.now.is_some() == self.is_restored && edit.path.starts_with(self.path)
    }

    /// The line of the reply.
    pub(super) fn line(&self, cx: &Cx<'_>) -> String {
        let (did, shown) = (verb(cx, self.is_restored), cx.show_real(self.path));
        let files = self.files;
        if self.stays {
            format!("{did} {files} files in {shown}/, which has other entries and stays")
        } else {
            format!("{did} {shown}/ ({files} files)")
        }
    }
}
