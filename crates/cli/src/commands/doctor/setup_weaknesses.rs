//! Weaknesses of the setup that the sandbox cannot remove: mounts inside the roots, a home directory inside a
//! root, a state directory that others can write.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toolcrib::visible_name;

use crate::args::Common;
use toolcrib::user_machine;

/// The number of mounts that are named.
const MAX_NAMED_MOUNTS: usize = 20;

/// The kernel's list of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Sentences about protections that are missing because of the location of the roots.
pub(super) fn not_enforced(common: &Common) -> Vec<String> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let roots: Vec<PathBuf> = common.roots().iter().map(|root| real(&root.directory)).collect();
    let home = user_machine::home().map(|home| real(&home));
    let mounts = std::fs::read(MOUNTS).map(|list| mount_points(&list)).unwrap_or_default();
    let mut sentences = mounts_within(&roots, &mounts);
    sentences.extend(home.and_then(|home| home_within(&roots, &home)));
    sentences
}

/// Why a directory is unsafe for the journal. `None` if it is safe or does not exist.
pub(super) fn state_problem(state: &Path) -> Option<String> {
    let about = std::fs::symlink_metadata(state).ok()?;
    let us = std::fs::metadata("/proc/self").ok()?.uid();
    let shown = visible_name(state.as_os_str().as_encoded_bytes());
    if about.is_symlink() {
        return Some(format!("{shown} is a symlink; use the directory itself"));
    }
    if !about.is_dir() {
        return Some(format!("{shown} is not a directory"));
    }
    if about.uid() != us {
        return Some(format!("{shown} belongs to user {}, not to user {us}", about.uid()));
    }
    let others = about.mode() & 0o022;
    (others != 0).then(|| {
        format!(
            "{shown} can be written by other users (mode {:o}); run chmod go-w on it",
            about.mode() & 0o7777
        )
    })
}

fn mounts_within(roots: &[PathBuf], mounts: &[PathBuf]) -> Vec<String> {
    let inside = |mount: &&PathBuf| {
        roots.iter().any(|root| mount.starts_with(root) && mount.as_path() != root)
    };
    let within: Vec<&PathBuf> = mounts.iter().filter(inside).collect();
    let mut sentences: Vec<String> = within
        .iter()
        .take(MAX_NAMED_MOUNTS)
        .map(|mount| {
            let mount = visible_name(mount.as_os_str().as_encoded_bytes());
            format!("{mount} is a mount inside a root: tools and commands can write to it.")
        })
        .collect();
    if within.len() > MAX_NAMED_MOUNTS {
        sentences
            .push(format!("{} more mounts are inside the roots.", within.len() - MAX_NAMED_MOUNTS));
    }
    sentences
}

fn home_within(roots: &[PathBuf], home: &Path) -> Option<String> {
    let root = roots.iter().find(|root| home.starts_with(root))?;
    let root = visible_name(root.as_os_str().as_encoded_bytes());
    Some(format!(
        "The home directory is inside the root {root}: tools can write files that shells, editors and desktops run at startup. Choose a project directory as root."
    ))
}

/// Mount points: the fifth field of each line, with whitespace and backslashes as octal escapes.
fn mount_points(list: &[u8]) -> Vec<PathBuf> {
    let field = |line: &[u8]| line.split(|&byte| byte == b' ').nth(4).map(unescape);
    list.split(|&byte| byte == b'\n').filter_map(field).collect()
}

fn unescape(mut field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    while let Some((&byte, rest)) = field.split_first() {
        let octal = rest
            .get(..3)
            .filter(|_| byte == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(octal.unwrap_or(byte));
        field = if octal.is_some() { &rest[3..] } else { rest };
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn mounts_inside_a_root_are_named_and_others_are_not() {
        let list = b"21 1 0:1 / / rw - ext4 d rw\n22 21 0:2 / /w rw - ext4 d rw\n23 22 0:3 / /w/a\\040b rw shared:1 - tmpfs t rw\n24 21 0:4 / /world rw - tmpfs t rw\n";
        let mounts = mount_points(list);
        let said = mounts_within(&["/w".into()], &mounts);
        assert_eq!(said, ["/w/a b is a mount inside a root: tools and commands can write to it."]);
        let many: Vec<PathBuf> = (0..30).map(|number| format!("/w/{number}").into()).collect();
        assert_eq!(mounts_within(&["/w".into()], &many).len(), MAX_NAMED_MOUNTS + 1);
    }

    #[test]
    fn a_home_inside_a_root_is_reported() {
        assert!(home_within(&["/home".into()], Path::new("/home/a")).is_some());
        assert!(home_within(&["/home/a".into()], Path::new("/home/a")).is_some());
        assert_eq!(home_within(&["/home/a/project".into()], Path::new("/home/a")), None);
    }

    #[test]
    fn a_state_directory_that_others_write_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(state_problem(directory.path()), None);
        assert_eq!(state_problem(&directory.path().join("to be made")), None);
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        assert!(state_problem(directory.path()).unwrap().contains("mode 777"));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        assert!(state_problem(&link).unwrap().contains("symlink"));
    }
}
