//! Checks the state after a fault.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_devtools::error::Result;
use toolcrib_devtools::scratch;

use super::Injection;
use super::fault::{Fault, must_be_retried};
use super::scenario::{Scenario, Subject};
use super::strace::Run;

/// The exit code of the dynamic loader if it fails before our code runs.
const NOT_LOADED: i32 = 127;
/// The exit code of a Rust program after a panic.
const PANICKED: i32 = 101;

/// Checks one run.
pub(super) struct RunCheck<'a> {
    scenario: &'a Scenario,
    injection: &'a Injection,
    outcome: &'static str,
    pub(super) violations: Vec<String>,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Old,
    New,
    Neither,
}

impl<'a> RunCheck<'a> {
    pub(super) fn new(scenario: &'a Scenario, injection: &'a Injection) -> RunCheck<'a> {
        RunCheck { scenario, injection, outcome: "", violations: Vec::new() }
    }

    /// The outcome, for the table.
    pub(super) fn outcome(&self) -> &'static str {
        self.outcome
    }

    /// Checks the state after the run, and again after the next start.
    pub(super) fn check(&mut self, run: &Run) -> Result<()> {
        let success = run.reply.as_ref().map(scratch::is_success);
        if run.hung {
            self.violations.push("it hung".to_owned());
        }
        self.check_exit(run, success);
        let file_states = self.file_states("")?;
        self.check_reply(run, success, &file_states);
        self.check_next_start(success)
    }

    fn check_exit(&mut self, run: &Run, success: Option<bool>) {
        self.outcome = match (self.injection.fault, success, run.status.code()) {
            (Fault::Kill, ..) => "killed",
            (_, Some(true), _) => "done",
            (_, Some(false), _) => "refused",
            (_, None, Some(NOT_LOADED)) => "not loaded",
            (_, None, _) => "no reply",
        };
        let stderr = &run.stderr;
        if self.injection.fault == Fault::Kill {
            return;
        }
        if run.status.code().is_none_or(|code| code == PANICKED) {
            self.violations.push(format!("it ended with {}: {stderr}", run.status));
        }
        if success.is_none() && run.status.success() {
            self.violations.push("it exits with 0 and has no output".to_owned());
        }
        let retried = success == Some(true) || run.status.code() == Some(NOT_LOADED);
        if must_be_retried(&self.injection.system_call, self.injection.fault) && !retried {
            let reply = run.reply.as_ref().map(ToString::to_string).unwrap_or_default();
            self.violations.push(format!("interrupted, and not retried: {reply}{stderr}"));
        }
    }

    /// The states of all files. Each file must be complete at any time.
    fn file_states(&mut self, when: &str) -> Result<Vec<FileState>> {
        let mut file_states = Vec::new();
        for subject in &self.scenario.subjects {
            let file_state = file_state(self.scenario, subject)?;
            if file_state == FileState::Neither {
                self.violations.push(format!("{} is neither old nor new{when}", subject.name));
            }
            let lost = self.scenario.lost_attributes(subject)?;
            self.violations.extend(lost.into_iter().map(|lost| format!("{lost}{when}")));
            file_states.push(file_state);
        }
        Ok(file_states)
    }

    /// Checks that the reply is true.
    fn check_reply(&mut self, run: &Run, success: Option<bool>, file_states: &[FileState]) {
        let expected = match success {
            Some(true) => FileState::New,
            Some(false) => FileState::Old,
            None => return,
        };
        let reported = if expected == FileState::New { "success" } else { "failure" };
        let reply = run.reply.as_ref().map(ToString::to_string).unwrap_or_default();
        if file_states.iter().any(|&file_state| file_state != expected) {
            self.violations
                .push(format!("it reported {reported}, and files are {file_states:?}: {reply}"));
        }
        let stray_paths = stray_paths(self.scenario, expected);
        if !stray_paths.is_empty() {
            self.violations
                .push(format!("it reported {reported} and left {stray_paths:?}: {reply}"));
        }
    }

    /// Checks that after the next start all files are new or all are old, in agreement with the journal.
    fn check_next_start(&mut self, success: Option<bool>) -> Result<()> {
        let logged = match self.scenario.scratch().logged() {
            Ok(logged) => logged - self.scenario.logged.min(logged),
            Err(error) => {
                self.violations.push(format!("the next start failed: {error}"));
                return Ok(());
            }
        };
        let file_states = self.file_states(" after the next start")?;
        let is_new = file_states.iter().all(|&file_state| file_state == FileState::New);
        let is_old = file_states.iter().all(|&file_state| file_state == FileState::Old);
        if !is_new && !is_old {
            self.violations
                .push(format!("only some files are new after the next start: {file_states:?}"));
        }
        if success.is_some_and(|success| success != is_new) {
            self.violations.push("the state after the next start contradicts the reply".to_owned());
        }
        if logged != u64::from(is_new) {
            let done = if is_new { "done" } else { "not done" };
            self.violations.push(format!("it is {done}, and the journal has it {logged} times"));
        }
        if let Some(name) = leftover_file(&self.scenario.scratch().workspace()) {
            self.violations.push(format!("{} is left after the next start", name.display()));
        }
        let pending = self.scenario.scratch().state().join("pending");
        if fs::read_dir(pending).is_ok_and(|entries| entries.count() > 0) {
            self.violations.push("something is pending after the next start".to_owned());
        }
        Ok(())
    }
}

fn file_state(scenario: &Scenario, subject: &Subject) -> Result<FileState> {
    let now = match fs::read(scenario.scratch().workspace().join(subject.name)) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let is = |version: &Option<String>| now.as_deref() == version.as_deref().map(str::as_bytes);
    Ok(if is(&subject.old) {
        FileState::Old
    } else if is(&subject.new) {
        FileState::New
    } else {
        FileState::Neither
    })
}

/// Unexpected paths in the workspace, if all files are in this state.
fn stray_paths(scenario: &Scenario, file_state: FileState) -> Vec<PathBuf> {
    let expected: Vec<&Path> = scenario
        .subjects
        .iter()
        .filter(|subject| match file_state {
            FileState::New => subject.new.is_some(),
            _ => subject.old.is_some(),
        })
        .map(|subject| Path::new(subject.name))
        .collect();
    let is_expected = |path: &PathBuf| expected.iter().any(|name| name.starts_with(path));
    paths_in(&scenario.scratch().workspace())
        .into_iter()
        .filter(|path| !is_expected(path))
        .collect()
}

/// A temporary file of ours that is left.
fn leftover_file(workspace: &Path) -> Option<PathBuf> {
    paths_in(workspace).into_iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".toolcrib-") && name.ends_with(".tmp")
    })
}

/// All paths beneath a directory, relative to it.
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
    fn finds_leftover_files_at_any_depth() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sub")).unwrap();
        fs::write(directory.path().join("sub/a.txt"), "").unwrap();
        assert_eq!(leftover_file(directory.path()), None);
        fs::write(directory.path().join("sub/.toolcrib-0.tmp"), "").unwrap();
        assert_eq!(leftover_file(directory.path()), Some(PathBuf::from("sub/.toolcrib-0.tmp")));
    }
}
