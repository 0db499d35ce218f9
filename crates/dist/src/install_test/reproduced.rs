//! A second build: a clone of the commit, in another directory, must give the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process, workspace};

use crate::checksums;
use crate::release_info::Release;
use crate::target::TARGETS;

pub(super) fn run(release: &Release) -> Result<()> {
    let scratch = tempfile::tempdir_in(cache::directory()?)?;
    // A path of another length and depth.
    let clone = scratch.path().join("another/directory");
    process::run(
        Command::new("git").args(["clone", "--quiet"]).arg(workspace::root()).arg(&clone),
    )?;
    let mut build = process::cargo(&["xtask", "dist"]);
    build.args(TARGETS.iter().map(|target| target.name).filter(|name| is_built(release, name)));
    build.current_dir(&clone).env("CARGO_TARGET_DIR", clone.join("target"));
    process::run(&mut build)?;
    let (first, second) = (sums(&crate::directory())?, sums(&clone.join("dist"))?);
    let different = different_names(&first, &second);
    if different.is_empty() {
        println!("   {} files have the same bytes in both builds", first.lines().count());
        Ok(())
    } else {
        Err(format!("the builds differ in {}", different.join(", ")).into())
    }
}

fn is_built(release: &Release, target: &str) -> bool {
    let archive = format!("toolcrib-{}-{target}.tar.gz", release.version);
    crate::directory().join(archive).exists()
}

fn sums(directory: &Path) -> Result<String> {
    Ok(fs::read_to_string(directory.join(checksums::NAME))?)
}

/// The files with a line in only one of the lists.
fn different_names<'a>(one: &'a str, other: &'a str) -> Vec<&'a str> {
    let lines = |sums: &'a str| sums.lines().collect::<BTreeSet<&str>>();
    let (one, other) = (lines(one), lines(other));
    let names = one.symmetric_difference(&other).filter_map(|line| line.split("  ").nth(1));
    names.collect::<BTreeSet<&str>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_bytes_or_in_one_build_only_is_named() {
        let one = "00  a\n11  b\n22  c\n";
        assert_eq!(different_names(one, one), [] as [&str; 0]);
        assert_eq!(different_names(one, "00  a\n12  b\n"), ["b", "c"]);
    }
}
