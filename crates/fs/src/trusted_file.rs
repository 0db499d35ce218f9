//! A file of the operator that decides who has access. It is used only if no other user can change or replace it.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, lstat};
use rustix::io::Errno;

use crate::private_directory::owner::{current_user, renamed_by_others};
use crate::real_path::symlinks_on_the_way;

/// Checks a file, the symlinks on the way to it, and the directories of both.
///
/// # Errors
///
/// Fails with the reason if it is not a regular file, or if a user other than this one and root could change its content or
/// put another file in its place.
pub fn check_trusted_file(path: &Path) -> Result<(), String> {
    let failed = |at: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", at.display());
    let real = std::fs::canonicalize(path).map_err(|error| failed(path, &error))?;
    let stat = |path: &Path| lstat(path).map_err(|errno: Errno| failed(path, &errno));
    let about = stat(&real)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(format!("{} is not a regular file", real.display()));
    }
    if about.st_mode & 0o022 != 0 {
        let shown = real.display();
        return Err(format!("other users could change {shown}; run `chmod go-w` on it"));
    }
    let mut entries: Vec<PathBuf> = symlinks_on_the_way(path);
    entries.push(real);
    for entry in &entries {
        let owner = stat(entry)?.st_uid;
        if owner != current_user() && owner != 0 {
            let shown = entry.display();
            return Err(format!(
                "{shown} belongs to user {owner}, who could change it; it must belong to you or root"
            ));
        }
        for directory in entry.ancestors().skip(1) {
            if let Some(why) = renamed_by_others(&stat(directory)?) {
                let (entry, directory) = (entry.display(), directory.display());
                return Err(format!(
                    "other users could replace {entry}: {directory} {why}; move the file to another directory"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_could_change_or_replace_is_not_trusted() {
        let top = tempfile::tempdir().unwrap();
        let (outer, inner) = (top.path().join("outer"), top.path().join("outer/inner"));
        std::fs::create_dir_all(&inner).unwrap();
        let (file, link) = (inner.join("file"), top.path().join("link"));
        std::fs::write(&file, "").unwrap();
        symlink("outer/inner/file", &link).unwrap();
        for directory in [&outer, &inner] {
            set_mode(directory, 0o755);
        }
        set_mode(&file, 0o644);
        let checks = || [&file, &link].map(|path| check_trusted_file(path));
        assert_eq!(checks(), [Ok(()), Ok(())]);
        let is_refused = |problem: &str| {
            for refusal in checks().map(Result::unwrap_err) {
                assert!(refusal.contains(problem), "{refusal}");
            }
        };
        for mode in [0o666, 0o646] {
            set_mode(&file, mode);
            is_refused("chmod go-w");
        }
        set_mode(&file, 0o644);
        for directory in [&outer, &inner] {
            set_mode(directory, 0o777);
            is_refused("can be written by other users");
            // Only the owner of an entry can rename it.
            set_mode(directory, 0o1777);
            assert_eq!(checks(), [Ok(()), Ok(())]);
            set_mode(directory, 0o755);
        }
        assert!(check_trusted_file(&inner).unwrap_err().contains("not a regular file"));
        assert!(check_trusted_file(&inner.join("missing")).is_err());
        // Only root can give a file away.
        if chown(&file, Some(12_345), None).is_ok() {
            is_refused("belongs to user 12345");
        }
    }
}
