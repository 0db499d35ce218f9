//! The place of a git directory, for commands in notes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use toolcrib_fs::BulkReader;
use toolcrib_text::visible_name;

use crate::git::directory;
use crate::git::objects::ObjectId;

/// A larger file is not compared.
const MAX_COMPARED_BYTES: u64 = 16 << 20;

/// A git directory below a root.
#[derive(Debug)]
pub(super) struct GitPlace {
    pub(super) tree: BulkReader,
    pub(super) directory: PathBuf,
}

impl GitPlace {
    /// Names the work tree in the git commands of a note, unless it is `here`: without it they would change another
    /// repository.
    pub(super) fn adapt(&self, note: String, here: Option<&Path>) -> String {
        match self.work_tree() {
            Some(work_tree) if Some(work_tree.as_path()) != here => {
                let shown = visible_name(work_tree.as_os_str().as_encoded_bytes());
                note.replace("`git ", &format!("`git -C {} ", quoted(&shown)))
            }
            _ => note,
        }
    }

    /// The resolved path of the git directory.
    pub(super) fn path(&self) -> PathBuf {
        self.tree.path().join(&self.directory)
    }

    /// The resolved path of the git directory with the shared references.
    pub(super) fn common(&self) -> PathBuf {
        self.tree.path().join(directory::common(&self.tree, &self.directory))
    }

    /// Whether a file of the work tree has a content.
    pub(super) fn has_in_work_tree(&self, path: &[u8], content: ObjectId) -> bool {
        let file = self.work_tree().map(|top| top.join(OsStr::from_bytes(path)));
        let relative = file.as_deref().and_then(|file| file.strip_prefix(self.tree.path()).ok());
        let found =
            relative.and_then(|file| directory::read_at_most(&self.tree, file, MAX_COMPARED_BYTES));
        found.is_some_and(|found| ObjectId::of_file(&found) == content)
    }

    /// Whether a path may be in the work tree.
    pub(super) fn may_have(&self, path: &Path) -> bool {
        self.work_tree().is_none_or(|top| path.starts_with(top))
    }

    /// The work tree. `None` if it is not known, as for a submodule.
    fn work_tree(&self) -> Option<PathBuf> {
        let dot_git = match directory::read(&self.tree, &self.directory.join("gitdir")) {
            Some(path) => PathBuf::from(String::from_utf8(path.trim_ascii().to_vec()).ok()?),
            None => self.path(),
        };
        dot_git.ends_with(".git").then(|| dot_git.parent().map(Path::to_owned)).flatten()
    }
}

/// A path as a word of a shell command.
pub(super) fn quoted(path: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "._/@+=-:".contains(c);
    if path.chars().all(is_plain) {
        path.into()
    } else {
        format!("'{}'", path.replace('\'', r"'\''")).into()
    }
}
