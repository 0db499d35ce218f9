//! Taking something out of a root that is not to stay there.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::FsError;
use crate::random;
use crate::tree::Tree;

/// Moves what is at a path from the root into a directory of one's own, which is made if it is not there;
/// where that lies on another file system, or there is none, to a name beside it that nothing looks for.
/// A link is moved itself. Answers where it is now.
pub fn set_aside(tree: &Tree, relative: &Path, into: Option<&Path>) -> Result<PathBuf, FsError> {
    let path = tree.path().join(relative);
    let error = |errno| FsError::from_errno(&path, "cannot be set aside", errno);
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
        return Err(error(Errno::INVAL));
    };
    let parent = tree.directory(parent)?;
    let word = random::hex::<4>().map_err(error)?;
    if let Some(into) = into {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(into);
        made.map_err(|problem| FsError::from_io(into, "cannot be made", &problem))?;
        let mut new = std::ffi::OsString::from(format!("{word}-"));
        new.push(name);
        let new = into.join(new);
        match renameat_with(parent.handle(), name, CWD, &new, RenameFlags::NOREPLACE) {
            Err(Errno::XDEV) => {}
            moved => return moved.map(|()| new).map_err(error),
        }
    }
    let mut new = name.to_owned();
    new.push(format!(".set-aside-{word}"));
    renameat_with(parent.handle(), name, parent.handle(), &new, RenameFlags::NOREPLACE)
        .map_err(error)?;
    Ok(parent.path().join(new))
}
