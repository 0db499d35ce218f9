//! Recognizes a program whose path does not last: in the cache of a package runner, or in a build directory.

use std::ffi::OsStr;
use std::path::Path;

/// The command that starts this program again, if it runs from the cache of a package runner. The runner may empty
/// its cache, and puts the next version elsewhere.
pub(super) fn runner(program: &Path) -> Option<&'static [&'static str]> {
    let names = names(program);
    let has = |name: &str| names.contains(&name);
    let is_bucket = |name: &&str| {
        let version =
            name.strip_prefix("archive-v").or_else(|| name.strip_prefix("environments-v"));
        version.is_some_and(|version| version.parse::<u32>().is_ok())
    };
    if has("_npx") {
        Some(&["npx", "-y", "toolcrib"])
    } else if names.iter().any(is_bucket) {
        Some(&["uvx", "toolcrib"])
    } else if has("pipx") && has(".cache") {
        Some(&["pipx", "run", "toolcrib"])
    } else {
        None
    }
}

/// Whether cargo built it at this path: the next build replaces it.
pub(super) fn is_build_output(program: &Path) -> bool {
    let names = names(program);
    let profiles = ["debug", "release", "dist", "demo"];
    let in_profile = names.iter().rev().nth(1).is_some_and(|name| profiles.contains(name));
    in_profile && names.contains(&"target")
}

fn names(path: &Path) -> Vec<&str> {
    path.iter().filter_map(OsStr::to_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_runner_is_recognized_by_its_cache() {
        let command = |path: &str| runner(Path::new(path)).map(|words| words.join(" "));
        let npx = "/home/me/.npm/_npx/1f2/node_modules/@toolcrib/linux-x64/bin/toolcrib";
        assert_eq!(command(npx).as_deref(), Some("npx -y toolcrib"));
        let uvx = "/home/me/.cache/uv/archive-v0/Xy_z/bin/toolcrib";
        assert_eq!(command(uvx).as_deref(), Some("uvx toolcrib"));
        for pipx in [
            "/home/me/.local/share/pipx/.cache/1f2/bin/toolcrib",
            "/home/me/.cache/pipx/1f2/bin/toolcrib",
        ] {
            assert_eq!(command(pipx).as_deref(), Some("pipx run toolcrib"));
        }
    }

    #[test]
    fn an_installed_program_is_started_by_its_path() {
        for path in [
            "/usr/bin/toolcrib",
            "/home/me/.cargo/bin/toolcrib",
            "/usr/lib/node_modules/toolcrib/node_modules/@toolcrib/linux-x64/bin/toolcrib",
            "/home/me/.local/share/uv/tools/toolcrib/bin/toolcrib",
            "/home/me/.local/share/pipx/venvs/toolcrib/bin/toolcrib",
            "/home/me/archive-versions/toolcrib",
        ] {
            assert_eq!(runner(Path::new(path)), None, "{path}");
            assert!(!is_build_output(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_build_directory_is_recognized() {
        for path in [
            "/home/me/toolcrib/target/debug/toolcrib",
            "/home/me/toolcrib/target/x86_64-unknown-linux-musl/dist/toolcrib",
        ] {
            assert!(is_build_output(Path::new(path)), "{path}");
        }
        assert!(!is_build_output(Path::new("/home/target/bin/toolcrib")));
    }
}
