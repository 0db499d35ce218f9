//! A fresh Debian, made by debootstrap. Needs root, as chroot does.

use std::fs;
use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::system_packages::DEBOOTSTRAP;
use toolcrib_devtools::{cache, process};

use crate::release_info::Release;

const SCRIPT: &str = include_str!("fresh_debian.sh");

/// Mounts what programs expect, and runs the script. The mounts are gone with the process: it has its own mount namespace.
const ENTER: &str = r#"mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" sh /tmp/test.sh"#;

/// Installs, uses and removes the package as a user would.
pub(super) fn run(release: &Release, package: &Path) -> Result<()> {
    if let Err(why) = DEBOOTSTRAP.obtain() {
        println!("   not tried in a fresh Debian: {why}");
        return Ok(());
    }
    // Not in /tmp, which the sandbox replaces.
    let scratch = tempfile::tempdir_in(cache::directory()?)?;
    let root = scratch.path().join("root");
    let mut bootstrap = Command::new(DEBOOTSTRAP.program);
    process::capture(bootstrap.args(["--variant=minbase", "stable"]).arg(&root))?;
    fs::copy(package, root.join("tmp/toolcrib.deb"))?;
    fs::write(root.join("tmp/test.sh"), SCRIPT)?;
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--pid", "--fork", "sh", "-c", ENTER]).arg(&root);
    let printed = process::capture(&mut inside)?;
    if printed.starts_with(&format!("toolcrib {}\n", release.version)) {
        println!("   a fresh Debian: apt installs it, a command is undone, apt removes it");
        Ok(())
    } else {
        Err(format!("in a fresh Debian: {printed}").into())
    }
}
