//! Groups the files that Undo restores by the ignored directory that contains them. A directory such as `.venv` has
//! thousands of files; the files of the workspace must stay visible in the reply.

use std::path::PathBuf;

use super::report::verb;
use crate::cx::{Cx, FileEdit};
use crate::ignored_directories::IgnoredDirectories;
use crate::phrases::counted;

/// The restored files of one ignored directory.
pub(super) struct IgnoredDirectory<'a> {
    path: PathBuf,
    first: &'a FileEdit,
    restored: u64,
    removed: u64,
}

impl<'a> IgnoredDirectory<'a> {
    /// The file, if it is the only one.
    pub(super) fn only_file(&self) -> Option<&'a FileEdit> {
        (self.restored + self.removed == 1).then_some(self.first)
    }

    /// The line of the reply.
    pub(super) fn line(&self, cx: &Cx<'_>) -> String {
        let counts = [(verb(cx, true), self.restored), (verb(cx, false), self.removed)];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(_, files)| *files > 0)
            .map(|(did, files)| format!("{did} {}", counted(files, "file")))
            .collect();
        let shown = cx.show_real(&self.path);
        format!("{} in {shown} (ignored or generated)", counts.join(" and "))
    }
}

/// Splits edits, sorted by path, into the files of ignored directories and the others.
pub(super) fn split<'a>(
    cx: &Cx<'_>,
    edits: &'a [FileEdit],
) -> (Vec<IgnoredDirectory<'a>>, Vec<&'a FileEdit>) {
    let mut ignored = IgnoredDirectories::new(&cx.paths().workspace);
    let (mut directories, mut others) = (Vec::<IgnoredDirectory<'_>>::new(), Vec::new());
    for edit in edits {
        let Some(path) = ignored.containing(&edit.path) else {
            others.push(edit);
            continue;
        };
        let (restored, removed) = if edit.now.is_some() { (1, 0) } else { (0, 1) };
        match directories.last_mut() {
            Some(last) if last.path == path => {
                last.restored += restored;
                last.removed += removed;
            }
            _ => directories.push(IgnoredDirectory { path, first: edit, restored, removed }),
        }
    }
    (directories, others)
}
