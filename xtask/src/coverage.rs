//! `cargo xtask coverage`: the share of lines that the tests run, by crate, measured by cargo-llvm-cov.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{peers, process, workspace};

use crate::ci;

/// The crates that a user depends on. Programs for developers are left out.
const PROGRAMS_FOR_DEVELOPERS: [&str; 5] = ["bench", "devtools", "dist", "testkit", "torture"];

/// Lines of a crate.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Lines {
    all: u64,
    run: u64,
}

impl Lines {
    fn add(&mut self, other: Lines) {
        self.all += other.all;
        self.run += other.run;
    }

    fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { self.run as f64 / self.all as f64 * 100.0 }
    }
}

/// Runs the tests and prints a line for each crate. Failed tests do not end it: their lines were run too. Some fail because
/// the processes of a command get none of our variables, so their data appear in the workspaces of the tests. These
/// lines are not counted.
pub(crate) fn report() -> Result<()> {
    // The data of the processes are merged by a program of the compiler's version.
    process::run(std::process::Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    let program = peers::coverage()?;
    let directory = program.parent().ok_or("cargo-llvm-cov has no directory")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(places)?;
    let llvm_cov = |words: &[&str]| {
        let mut command = process::cargo(&["llvm-cov"]);
        command.args(words).env("PATH", &path);
        command
    };
    let needs = ci::obtain_test_programs();
    let threads = ci::test_threads();
    let mut tests = llvm_cov(&["nextest", "--no-report"]);
    tests.args(ci::NEXTEST).args(["--test-threads", &threads]).envs(needs);
    if let Err(error) = process::run(&mut tests) {
        eprintln!("{error}");
    }
    // A test that kills a process leaves incomplete data.
    let report = ["report", "--json", "--summary-only", "--failure-mode", "all"];
    let summary = process::capture(&mut llvm_cov(&report))?;
    let crates = by_crate(&serde_json::from_str(&summary)?);
    let mut total = Lines::default();
    println!("  {:<12}{:>8}{:>10}", "crate", "lines", "run");
    for (name, lines) in &crates {
        println!("  {name:<12}{:>8}{:>8.1} %", lines.all, lines.percent());
        total.add(*lines);
    }
    println!("  {:<12}{:>8}{:>8.1} %", "in all", total.all, total.percent());
    Ok(())
}

/// The lines of each crate in a summary of llvm-cov, which lists files.
fn by_crate(summary: &Value) -> BTreeMap<String, Lines> {
    let crates = workspace::root().join("crates");
    let mut found: BTreeMap<String, Lines> = BTreeMap::new();
    let files = summary["data"][0]["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    for file in files {
        let path = std::path::Path::new(file["filename"].as_str().unwrap_or_default());
        let Ok(path) = path.strip_prefix(&crates) else { continue };
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let (Some(name), Some(kind)) = (parts.next(), parts.next()) else { continue };
        if kind != "src" || PROGRAMS_FOR_DEVELOPERS.contains(&&*name) {
            continue;
        }
        let count = |field: &str| file["summary"]["lines"][field].as_u64().unwrap_or_default();
        let lines = Lines { all: count("count"), run: count("covered") };
        found.entry(name.into_owned()).or_default().add(lines);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_added_by_crate() {
        let file = |path: &str, all: u64, run: u64| {
            let name = workspace::root().join("crates").join(path);
            json!({"filename": name, "summary": {"lines": {"count": all, "covered": run}}})
        };
        let summary = json!({"data": [{"files": [
            file("fs/src/file.rs", 10, 9),
            file("fs/src/change/lock.rs", 30, 11),
            file("text/src/lib.rs", 0, 0),
            file("fs/tests/it/main.rs", 100, 0),
            file("bench/src/main.rs", 100, 0),
            json!({"filename": "/elsewhere/src/lib.rs"}),
        ]}]});
        let found = by_crate(&summary);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["fs", "text"]);
        assert_eq!(found["fs"], Lines { all: 40, run: 20 });
        assert_eq!((found["fs"].percent(), found["text"].percent()), (50.0, 100.0));
    }
}
