//! Finds a program on the user's `PATH`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The first executable file with this name in the absolute directories of a `PATH`. Programs in the `excluded`
/// directories, by any name of theirs, are skipped.
pub fn find_program(name: &str, path: &OsStr, excluded: &[PathBuf]) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let excluded: Vec<PathBuf> =
        excluded.iter().filter_map(|top| top.canonicalize().ok()).collect();
    let is_excluded = |real: &Path| excluded.iter().any(|top| real.starts_with(top));
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|program| {
        let real = |path: &Path| path.canonicalize().ok();
        let directory = program.parent().and_then(real);
        let is_outside = [directory, real(program)]
            .iter()
            .all(|real| real.as_ref().is_some_and(|real| !is_excluded(real)));
        is_outside && is_executable(program)
    })
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_files_outside_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        for name in ["bin", "ws"] {
            std::fs::create_dir(top.join(name)).unwrap();
        }
        let make = |path: &str, mode: u32| {
            std::fs::write(top.join(path), "#!/bin/sh\n").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(top.join(path), mode).unwrap();
        };
        make("ws/tool", 0o755);
        make("bin/plain", 0o644);
        std::os::unix::fs::symlink(top.join("ws/tool"), top.join("bin/linked")).unwrap();
        let path = std::env::join_paths([top.join("ws"), "rel".into(), top.join("bin")]).unwrap();
        let find = |name: &str, excluded: &[PathBuf]| find_program(name, &path, excluded);
        assert_eq!(find("tool", &[]), Some(top.join("ws/tool")));
        assert_eq!(find("tool", &[top.join("ws")]), None);
        assert_eq!(find("linked", &[top.join("ws")]), None);
        assert_eq!(find("linked", &[]), Some(top.join("bin/linked")));
        assert_eq!(
            (find("plain", &[]), find("../ws/tool", &[]), find("", &[])),
            (None, None, None)
        );
        make("bin/tool", 0o755);
        assert_eq!(find("tool", &[top.join("ws")]), Some(top.join("bin/tool")));
    }
}
