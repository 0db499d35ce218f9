//! Whether what is there after a fault may be there.

use std::fs;
use std::path::{Path, PathBuf};

use super::Injection;
use super::fault::{Fault, must_be_retried};
use super::scenario::{Scenario, Subject};
use super::strace::Run;
use crate::error::Result;
use crate::sandbox;

/// The loader's exit code, when it cannot load what it needs: nothing of ours has run yet.
const NOT_LOADED: i32 = 127;
/// Rust's, after a panic.
const PANICKED: i32 = 101;

/// Looks at one run.
pub(super) struct Judge<'a> {
    scenario: &'a Scenario,
    injection: &'a Injection,
    what_happened: &'static str,
    pub(super) violations: Vec<String>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Old,
    New,
    Neither,
}

impl<'a> Judge<'a> {
    pub(super) fn new(scenario: &'a Scenario, injection: &'a Injection) -> Judge<'a> {
        Judge { scenario, injection, what_happened: "", violations: Vec::new() }
    }

    /// For the table.
    pub(super) fn what_happened(&self) -> &'static str {
        self.what_happened
    }

    /// Just after the run, and again after the next start.
    pub(super) fn see(&mut self, run: &Run) -> Result<()> {
        let success = run.reply.as_ref().map(sandbox::is_success);
        if run.hung {
            self.violations.push("it hung".to_owned());
        }
        self.see_ending(run, success);
        let standings = self.standings("")?;
        self.see_reply(run, success, &standings);
        self.see_next_start(success)
    }

    fn see_ending(&mut self, run: &Run, success: Option<bool>) {
        self.what_happened = match (self.injection.fault, success, run.status.code()) {
            (Fault::Kill, ..) => "killed",
            (_, Some(true), _) => "done",
            (_, Some(false), _) => "refused",
            (_, None, Some(NOT_LOADED)) => "not loaded",
            (_, None, _) => "no reply",
        };
        let complaint = &run.complaint;
        if self.injection.fault == Fault::Kill {
            return;
        }
        if run.status.code().is_none_or(|code| code == PANICKED) {
            self.violations.push(format!("it ended with {}: {complaint}", run.status));
        }
        if success.is_none() && run.status.success() {
            self.violations.push("it exits with 0 and says nothing".to_owned());
        }
        let retried = success == Some(true) || run.status.code() == Some(NOT_LOADED);
        if must_be_retried(&self.injection.system_call, self.injection.fault) && !retried {
            let reply = run.reply.as_ref().map(ToString::to_string).unwrap_or_default();
            self.violations.push(format!("interrupted, and not tried again: {reply}{complaint}"));
        }
    }

    /// Each file by itself is whole in every moment.
    fn standings(&mut self, when: &str) -> Result<Vec<Standing>> {
        let mut standings = Vec::new();
        for subject in &self.scenario.subjects {
            let standing = standing(self.scenario, subject)?;
            if standing == Standing::Neither {
                self.violations.push(format!("{} is neither old nor new{when}", subject.name));
            }
            let lost = self.scenario.lost_attributes(subject)?;
            self.violations.extend(lost.into_iter().map(|lost| format!("{lost}{when}")));
            standings.push(standing);
        }
        Ok(standings)
    }

    /// What was said is true.
    fn see_reply(&mut self, run: &Run, success: Option<bool>, standings: &[Standing]) {
        let expected = match success {
            Some(true) => Standing::New,
            Some(false) => Standing::Old,
            None => return,
        };
        let said = if expected == Standing::New { "success" } else { "failure" };
        let reply = run.reply.as_ref().map(ToString::to_string).unwrap_or_default();
        if standings.iter().any(|&standing| standing != expected) {
            self.violations.push(format!("it said {said}, and files are {standings:?}: {reply}"));
        }
        let strays = strays(self.scenario, expected);
        if !strays.is_empty() {
            self.violations.push(format!("it said {said} and left {strays:?}: {reply}"));
        }
    }

    /// After the next start all is done or nothing is, and the journal knows which.
    fn see_next_start(&mut self, success: Option<bool>) -> Result<()> {
        let logged = match self.scenario.sandbox().logged() {
            Ok(logged) => logged - self.scenario.logged.min(logged),
            Err(error) => {
                self.violations.push(format!("the next start failed: {error}"));
                return Ok(());
            }
        };
        let standings = self.standings(" after the next start")?;
        let is_new = standings.iter().all(|&standing| standing == Standing::New);
        let is_old = standings.iter().all(|&standing| standing == Standing::Old);
        if !is_new && !is_old {
            self.violations.push(format!("half of it after the next start: {standings:?}"));
        }
        if success.is_some_and(|success| success != is_new) {
            self.violations.push("the next start made another of it than was said".to_owned());
        }
        if logged != u64::from(is_new) {
            let done = if is_new { "done" } else { "not done" };
            self.violations.push(format!("it is {done}, and the journal has it {logged} times"));
        }
        if let Some(name) = temporary(&self.scenario.sandbox().workspace()) {
            self.violations.push(format!("{} is left after the next start", name.display()));
        }
        let pending = self.scenario.sandbox().state().join("pending");
        if fs::read_dir(pending).is_ok_and(|entries| entries.count() > 0) {
            self.violations.push("something is pending after the next start".to_owned());
        }
        Ok(())
    }
}

fn standing(scenario: &Scenario, subject: &Subject) -> Result<Standing> {
    let now = match fs::read(scenario.sandbox().workspace().join(subject.name)) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let is = |version: &Option<String>| now.as_deref() == version.as_deref().map(str::as_bytes);
    Ok(if is(&subject.old) {
        Standing::Old
    } else if is(&subject.new) {
        Standing::New
    } else {
        Standing::Neither
    })
}

/// What is in the workspace and should not be, if all files stand so.
fn strays(scenario: &Scenario, standing: Standing) -> Vec<PathBuf> {
    let expected: Vec<&Path> = scenario
        .subjects
        .iter()
        .filter(|subject| match standing {
            Standing::New => subject.new.is_some(),
            _ => subject.old.is_some(),
        })
        .map(|subject| Path::new(subject.name))
        .collect();
    let is_expected = |path: &PathBuf| expected.iter().any(|name| name.starts_with(path));
    paths_in(&scenario.sandbox().workspace())
        .into_iter()
        .filter(|path| !is_expected(path))
        .collect()
}

/// A file of the product's own that has no business to be there any more.
fn temporary(workspace: &Path) -> Option<PathBuf> {
    paths_in(workspace).into_iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".toolcrib-") && name.ends_with(".tmp")
    })
}

/// Everything beneath a directory, relative to it.
fn paths_in(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        for entry in fs::read_dir(directory.join(&relative)).into_iter().flatten().flatten() {
            let path = relative.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_is_found_at_any_depth() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sub")).unwrap();
        fs::write(directory.path().join("sub/a.txt"), "").unwrap();
        assert_eq!(temporary(directory.path()), None);
        fs::write(directory.path().join("sub/.toolcrib-0.tmp"), "").unwrap();
        assert_eq!(temporary(directory.path()), Some(PathBuf::from("sub/.toolcrib-0.tmp")));
    }
}
