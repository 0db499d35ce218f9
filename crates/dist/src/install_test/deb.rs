//! The Debian package: installed into an empty root and into a fresh Debian, run, and removed without a trace.

use std::fs;
use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::fresh_debian;
use super::new_user::NewUser;
use crate::release_info::Release;

pub(super) fn run(release: &Release) -> Result<()> {
    let file =
        crate::directory().join(format!("toolcrib_{}-1_{}.deb", release.version, architecture()?));
    in_empty_root(release, &file)?;
    fresh_debian::run(release, &file)
}

/// Nothing but this package: it needs no other.
fn in_empty_root(release: &Release, file: &Path) -> Result<()> {
    let root = tempfile::tempdir()?;
    let database = root.path().join("var/lib/dpkg");
    for directory in ["info", "updates"] {
        fs::create_dir_all(database.join(directory))?;
    }
    fs::write(database.join("status"), "")?;
    dpkg(root.path(), &["--install", &file.display().to_string()])?;
    let program = root.path().join("usr/bin/toolcrib");
    NewUser::new()?.try_out(release, &[&program.display().to_string()])?;
    for page in ["man/man1/toolcrib.1.gz", "bash-completion/completions/toolcrib"] {
        if !root.path().join("usr/share").join(page).exists() {
            return Err(format!("{page} is not installed").into());
        }
    }
    dpkg(root.path(), &["--purge", "toolcrib"])?;
    if root.path().join("usr").exists() {
        Err("files are left after the removal".into())
    } else {
        Ok(())
    }
}

fn architecture() -> Result<String> {
    let printed = process::capture(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(printed.trim().to_owned())
}

fn dpkg(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new("dpkg");
    // Without root, files belong to the person who runs the test.
    command.arg("--root").arg(root).args(["--force-not-root", "--log=/dev/null"]).args(words);
    process::capture(&mut command).map(drop)
}
