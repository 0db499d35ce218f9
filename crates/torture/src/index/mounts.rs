//! Mounts over a directory and a file of a watched tree, and unmounts: inotify does not report mounts. Needs
//! root, because it creates a mount namespace.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::process;

use super::super::report::{Report, Row};

const WHAT: &str = "over a directory and over a file of a watched tree";

pub(super) fn run(binary: &Path, report: &mut Report) -> Result<()> {
    let mut private = Command::new("unshare");
    private.args(["--mount", "--propagation=private"]);
    if process::probe(Command::new("unshare").args(["--mount", "true"])).is_none() {
        report.add(Row::skipped("mounts", WHAT, "no mount namespace of one's own here"));
        return Ok(());
    }
    let mut row = Row::new("mounts", WHAT);
    let top = tempfile::tempdir()?;
    let at = |name: &str| top.path().join(name);
    for number in 0..60 {
        let directory = at(&format!("tree/d{}", number % 6));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{number}")), format!("number{number}end\n"))?;
    }
    fs::create_dir(at("other"))?;
    fs::write(at("other/g"), "over a directory\n")?;
    fs::write(at("source"), "over a file\n")?;
    fs::write(at("config.toml"), "index_files = 1\n")?;
    private.arg(binary).arg("run").arg(format!("--root={}:ro", at("tree").display()));
    private.arg(format!("--config={}", at("config.toml").display()));
    private.arg(format!("--state={}", at("state").display()));
    let mut session = SearchSession { conversation: LineProcess::start(private)?, calls: 0 };
    for _ in 0..4 {
        session.settle()?;
    }
    let pid = session.conversation.pid();
    let inside = |words: &[&str], from: Option<&Path>, to: &Path| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={pid}")).arg("--mount").args(words);
        process::run(command.args(from).arg(to))
    };
    let (directory, file) = (at("tree/d1"), at("tree/d2/f2"));
    session.expect("number7end", &["d1/f7"], &mut row)?;
    inside(&["mount", "--bind"], Some(&at("other")), &directory)?;
    session.expect("over a directory", &["d1/g"], &mut row)?;
    session.expect("number7end", &[], &mut row)?;
    session.settle()?;
    fs::write(at("other/g"), "OVER a directory\n")?;
    session.expect("over a directory", &[], &mut row)?;
    inside(&["umount"], None, &directory)?;
    session.expect("number7end", &["d1/f7"], &mut row)?;
    session.expect("OVER a directory", &[], &mut row)?;
    inside(&["mount", "--bind"], Some(&at("source")), &file)?;
    session.expect("over a file", &["d2/f2"], &mut row)?;
    for _ in 0..3 {
        session.settle()?;
    }
    fs::write(at("source"), "OVER a file\n")?;
    session.expect("over a file", &[], &mut row)?;
    session.expect("OVER a file", &["d2/f2"], &mut row)?;
    inside(&["umount"], None, &file)?;
    session.expect("number2end", &["d2/f2"], &mut row)?;
    report.add(row);
    Ok(())
}

struct SearchSession {
    conversation: LineProcess,
    calls: usize,
}

impl SearchSession {
    /// Waits until recent files are no longer racy and are indexed.
    fn settle(&mut self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(300));
        self.files("nothing like it").map(drop)
    }

    fn expect(&mut self, text: &str, files: &[&str], row: &mut Row) -> Result<()> {
        let found = self.files(text)?;
        row.tally.add("questions");
        if found != files {
            let what = format!("{text}: found in {found:?}, not {files:?}");
            row.violate(what, "cargo xtask torture index mounts");
        }
        Ok(())
    }

    fn files(&mut self, text: &str) -> Result<Vec<String>> {
        self.calls += 1;
        let arguments = json!({"pattern": text, "literal": true, "sort": "path"});
        let reply = self.conversation.ask(&call_line(self.calls, "Grep", &arguments, true))?;
        let files = reply["metadata"]["files"].as_array().cloned().unwrap_or_default();
        Ok(files.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect())
    }
}
