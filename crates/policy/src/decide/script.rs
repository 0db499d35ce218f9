//! Deciding on a command: by each command, file and variable that is seen in it.

use std::path::{Path, PathBuf};

use super::{Decision, Part, Policy};
use crate::access::Effect;
use crate::approval_scope::ApprovalScope;
use crate::command::{
    Assignment, Command, PIPE, Role, Surroundings, Touched, Trouble, WhyNot, Word, lexical,
    understand,
};
use crate::destructive_commands::danger;
use crate::profile::Profile;
use crate::read_only_commands::{is_neutral_in_environment, is_neutral_in_shell, only_reads};
use crate::rule::{Kind, hosts_in};

/// What a decision on no single part of a command is about.
const WHOLE: &str = "the command as a whole";

/// What is decided on each part of a command.
pub(super) fn parts(policy: &Policy, text: &str, around: &Surroundings) -> Vec<Part> {
    let understood = understand(text, around);
    let script = Script { policy, around, text };
    let mut parts = Vec::new();
    if policy.profile != Profile::Open {
        if let Some(danger) = danger(&understood, around) {
            let why = format!("{}: {}", danger.what, danger.why);
            let part = Part::new(Decision::Deny, "danger", &why, "run it by hand");
            parts.push(part.about(WHOLE.to_owned()));
        }
        parts.extend(understood.why_not.as_ref().map(|why| script.not_understood(why)));
    }
    for command in &understood.commands {
        let about = command.shown().join(" ");
        parts.extend(script.command(command).into_iter().map(|part| part.about(about.clone())));
    }
    let shell = understood.assignments.iter().filter(|one| !is_neutral_in_shell(&one.name));
    parts
        .extend(shell.map(|one| {
            script.assignment(one).about(format!("{}={}", one.name, one.value.shown()))
        }));
    parts.extend(
        understood
            .writes
            .iter()
            .map(|touched| script.write(touched).about(format!("> {}", touched.word.shown()))),
    );
    for touched in &understood.reads {
        let reads = script.reads(&touched.word, touched.directory.as_deref());
        let about = format!("< {}", touched.word.shown());
        parts.extend(reads.into_iter().map(|part| part.about(about.clone())));
    }
    if parts.is_empty() {
        parts.push(Part::harmless("command:nothing", "it runs nothing"));
    }
    parts
}

struct Script<'a> {
    policy: &'a Policy,
    around: &'a Surroundings,
    text: &'a str,
}

impl Script<'_> {
    fn not_understood(&self, why: &WhyNot) -> Part {
        let what = format!("the command is not fully understood: {}", why.what);
        let asked = || ApprovalScope::Script(self.text.to_owned());
        let mut part = self.as_command("command:not-understood", &what, asked);
        part.verdict.looks_broken = why.trouble == Trouble::Broken;
        if part.verdict.decision == Decision::Ask && !self.policy.confined {
            // No rule allows it. In the sandbox it runs.
            let sandbox = "make the sandbox available (`toolcrib doctor` says what is missing)";
            part.verdict.remedy = match self.policy.profile {
                Profile::Workspace => sandbox.to_owned(),
                _ => format!("set profile = \"{}\" and {sandbox}", Profile::Workspace),
            };
        }
        part.about(WHOLE.to_owned())
    }

    fn command(&self, command: &Command) -> Vec<Part> {
        let set = command.assignments.iter().filter(|one| !is_neutral_in_environment(&one.name));
        let mut parts: Vec<Part> = set.map(|one| self.assignment(one)).collect();
        parts.extend(self.hosts(command));
        let asked = || {
            let set = command.assignments.iter();
            let set = set.map(|one| format!("{}={}", one.name, one.value.shown()));
            ApprovalScope::Command(
                set.chain(command.shown().into_iter().map(str::to_owned)).collect(),
            )
        };
        let rule = self.policy.rules.for_command(command);
        let profile = self.policy.by_profile(Effect::Command).verdict.decision;
        let files = only_reads(command);
        parts.extend(self.forbidden_files(command, files.as_deref()));
        match rule {
            Some(rule) if profile != Decision::Deny || rule.decision == Decision::Deny => {
                parts.push(Part::by(rule, asked()));
                return parts;
            }
            _ => {}
        }
        if profile == Decision::Deny {
            parts.push(self.policy.by_profile(Effect::Command));
            return parts;
        }
        match (command.role, files) {
            (Role::Wraps, _) => {
                parts
                    .push(Part::harmless("command:wrapper", "it only runs the commands inside it"));
            }
            (Role::Calls, _) => {
                parts.push(Part::harmless("command:function", "its own commands are looked at"));
            }
            (Role::Acts, Some(files)) => {
                parts.push(Part::harmless("command:only-reads", "it only reads"));
                let directory = command.directory.as_deref();
                parts.extend(files.iter().flat_map(|file| self.reads(file, directory)));
            }
            (Role::Acts, None) => {
                parts.push(self.policy.by_profile(Effect::Command).asking(asked()));
            }
        }
        parts
    }

    /// Files that a command names and a rule keeps from it. By its text alone: a program finds other ways.
    fn forbidden_files(&self, command: &Command, files: Option<&[Word]>) -> Vec<Part> {
        let arguments = files.unwrap_or(&command.words[1..]);
        let rules = &self.policy.rules;
        let mut parts = Vec::new();
        for path in
            arguments.iter().filter_map(|word| word.paths(command.directory.as_deref())).flatten()
        {
            let rule = rules.for_path(Kind::Read, &path, self.around);
            if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
                parts.push(Part::by(rule, ApprovalScope::Path(Effect::Read, path)));
            }
        }
        parts
    }

    /// Hosts that rules forbid or ask about.
    fn hosts(&self, command: &Command) -> Vec<Part> {
        let found = hosts_in(command.words.iter().map(Word::shown));
        let rule = |host: String| {
            let rule = self.policy.rules.for_host(&host)?;
            (rule.decision != Decision::Allow).then(|| Part::by(rule, ApprovalScope::Host(host)))
        };
        found.into_iter().filter_map(rule).collect()
    }

    /// A variable that programs may take for more than a value.
    fn assignment(&self, assignment: &Assignment) -> Part {
        let why = format!("it sets {}, which can change what other commands do", assignment.name);
        let value = assignment.value.shown();
        self.as_command("command:variable", &why, || {
            ApprovalScope::Command(vec![format!("{}={value}", assignment.name)])
        })
    }

    fn write(&self, touched: &Touched) -> Part {
        let Some(paths) = touched.word.paths(touched.directory.as_deref()) else {
            let why = format!("it is not known which file `> {}` writes", touched.word.source);
            return self.as_command("command:redirection", &why, || {
                ApprovalScope::Script(self.text.to_owned())
            });
        };
        let parts = paths.into_iter().map(|path| self.write_to(path));
        parts
            .max_by_key(|part| part.verdict.decision)
            .unwrap_or_else(|| Part::harmless("command:redirection", "it writes nothing"))
    }

    fn write_to(&self, path: PathBuf) -> Part {
        if is_no_file(&path) {
            return Part::harmless("command:no-file", "what is written there is kept nowhere");
        }
        let rules = &self.policy.rules;
        let root = self.around.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        let protected = root.and_then(|inner| self.policy.protection.find(inner));
        if let Some(pattern) = protected.filter(|_| self.policy.profile != Profile::Open) {
            let why =
                format!("{} is protected: writing it can make programs run code", path.display());
            let remedy = format!("add allow_protected = [{pattern:?}] to the configuration");
            return Part::new(Decision::Deny, "protected", &why, &remedy);
        }
        let read = rules.for_path(Kind::Read, &path, self.around);
        let read = read.filter(|rule| rule.decision != Decision::Allow);
        let edit = rules.for_path(Kind::Edit, &path, self.around);
        let profile = self.policy.by_profile(Effect::Command).verdict.decision;
        let strictest = edit.into_iter().chain(read).max_by_key(|rule| rule.decision);
        if let Some(rule) = strictest.filter(|_| profile != Decision::Deny) {
            return Part::by(rule, ApprovalScope::Path(Effect::Write, path));
        }
        if root.is_none() {
            return self.external(path);
        }
        let why = format!("it writes {}", path.display());
        self.as_command("command:redirection", &why, || ApprovalScope::Redirection(path))
    }

    /// What it means to read a file that a command names.
    fn reads(&self, word: &Word, directory: Option<&Path>) -> Vec<Part> {
        if word.values.is_empty() && !word.splits && word.prefix.starts_with(PIPE) {
            return Vec::new();
        }
        let climbs = |value: &String| {
            word.glob
                && value
                    .split('/')
                    .any(|name| name.starts_with('.') && name.contains(['*', '?', '[']))
        };
        let known = word.paths(directory).filter(|_| !word.values.iter().any(climbs));
        let Some(paths) = known else {
            let why = format!("it is not known which file `{}` is", word.source);
            return vec![self.as_command("command:unknown-file", &why, || {
                ApprovalScope::Script(self.text.to_owned())
            })];
        };
        paths.into_iter().filter_map(|path| self.read_of(path)).collect()
    }

    fn read_of(&self, path: PathBuf) -> Option<Part> {
        if is_no_file(&path) {
            return None;
        }
        let rule = self.policy.rules.for_path(Kind::Read, &path, self.around);
        if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
            return Some(Part::by(rule, ApprovalScope::Path(Effect::Read, path)));
        }
        let inside = self.around.roots.iter().any(|root| path.starts_with(lexical(root)));
        (!inside).then(|| self.external(path))
    }

    /// What lies outside the workspace.
    fn external(&self, path: PathBuf) -> Part {
        match self.policy.rules.for_path(Kind::External, &path, self.around) {
            Some(rule) => Part::by(rule, ApprovalScope::External(path)),
            None => {
                let why = format!("{} is outside the workspace", path.display());
                self.as_command("external-directory", &why, || ApprovalScope::External(path))
            }
        }
    }

    /// What the profile says to commands that are not known to be harmless, with a reason of its own.
    fn as_command(&self, rule: &str, why: &str, asked: impl FnOnce() -> ApprovalScope) -> Part {
        let mut part = self.policy.by_profile(Effect::Command);
        if part.verdict.decision == Decision::Ask {
            part.verdict.rule = rule.to_owned();
            part.verdict.why = why.to_owned();
        }
        part.asking(asked())
    }
}

/// Devices that take anything and keep nothing.
fn is_no_file(path: &Path) -> bool {
    let names = ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr"];
    path.strip_prefix("/dev").is_ok_and(|name| names.iter().any(|one| name == Path::new(one)))
}
