//! Decides on a script by each command, file and variable in it.

use std::path::{Path, PathBuf};

use super::{DANGER, Decision, Part, Policy};
use crate::access::Effect;
use crate::approval_subject::ApprovalScope;
use crate::command::{
    Assignment, Command, PIPE_PREFIX, RedirectedFile, Role, ShellContext, Unparsed, UnparsedKind,
    Word, analyze_command, normalize_lexically,
};
use crate::contacted_hosts::{NamedHost, contacted_hosts, hosts_in, is_loopback};
use crate::profile::Profile;
use crate::read_only_commands::{
    files_if_read_only, is_neutral_in_environment, is_neutral_in_shell,
};
use crate::rule::Kind;
use crate::system_damage::find_danger;

/// The subject of a decision on the whole script.
const WHOLE_COMMAND: &str = "the command as a whole";

/// The decisions on all parts of a script.
pub(super) fn parts(policy: &Policy, text: &str, context: &ShellContext) -> Vec<Part> {
    let analysis = analyze_command(text, context);
    let script = Script { policy, context, text };
    let mut parts = Vec::new();
    if policy.profile != Profile::Open {
        if let Some(danger) = find_danger(&analysis, context) {
            let why = format!("{}: {}", danger.what, danger.why);
            let part = Part::new(Decision::Deny, DANGER, &why, danger.instead);
            parts.push(part.about(WHOLE_COMMAND.to_owned()));
        }
        parts.extend(analysis.unparsed.as_ref().map(|why| script.unparsed_part(why)));
    }
    for command in &analysis.commands {
        let about = command.shown().join(" ");
        parts.extend(
            script.command_parts(command).into_iter().map(|part| part.about(about.clone())),
        );
    }
    let shell = analysis.assignments.iter().filter(|one| !is_neutral_in_shell(&one.name));
    parts.extend(shell.map(|one| {
        script.assignment_part(one).about(format!("{}={}", one.name, one.value.shown()))
    }));
    parts.extend(
        analysis
            .writes
            .iter()
            .map(|file| script.write_part(file).about(format!("> {}", file.word.shown()))),
    );
    for file in &analysis.reads {
        let reads = script.read_parts(&file.word, file.directory.as_deref());
        let about = format!("< {}", file.word.shown());
        parts.extend(reads.into_iter().map(|part| part.about(about.clone())));
    }
    if parts.is_empty() {
        parts.push(Part::harmless("command:nothing", "it runs no command"));
    }
    parts
}

struct Script<'a> {
    policy: &'a Policy,
    context: &'a ShellContext,
    text: &'a str,
}

impl Script<'_> {
    fn unparsed_part(&self, why: &Unparsed) -> Part {
        let what = format!("the command could not be fully parsed: {}", why.reason);
        let asked = || ApprovalScope::Script(self.text.to_owned());
        let mut part = self.command_part("command:unparsed", &what, asked);
        part.verdict.looks_like_syntax_error = why.kind == UnparsedKind::SyntaxError;
        if part.verdict.decision == Decision::Ask && !self.policy.confined {
            // No rule can allow it. It runs in the sandbox.
            let sandbox = "make the sandbox available (`toolcrib doctor` says what is missing)";
            part.verdict.remedy = match self.policy.profile {
                Profile::Workspace => sandbox.to_owned(),
                _ => format!("{}, and {sandbox}", self.policy.use_profile(Profile::Workspace)),
            };
        }
        part.about(WHOLE_COMMAND.to_owned())
    }

    fn command_parts(&self, command: &Command) -> Vec<Part> {
        let set = command.assignments.iter().filter(|one| !is_neutral_in_environment(&one.name));
        let mut parts: Vec<Part> = set.map(|one| self.assignment_part(one)).collect();
        parts.extend(self.restricted_host_parts(command));
        let asked = || {
            let set = command.assignments.iter();
            let set = set.map(|one| format!("{}={}", one.name, one.value.shown()));
            ApprovalScope::Command(
                set.chain(command.shown().into_iter().map(str::to_owned)).collect(),
            )
        };
        let rule = self.policy.rules.for_command(command);
        let profile = self.policy.profile_part(Effect::Command).verdict.decision;
        let files = files_if_read_only(command);
        parts.extend(self.restricted_file_parts(command, files.as_deref()));
        match rule {
            Some(rule) if profile != Decision::Deny || rule.decision == Decision::Deny => {
                parts.push(Part::from_rule(rule, asked()));
                return parts;
            }
            _ => {}
        }
        if profile == Decision::Deny {
            parts.push(self.policy.profile_part(Effect::Command));
            return parts;
        }
        match (command.role, files) {
            (Role::Wrapper, _) => {
                parts
                    .push(Part::harmless("command:wrapper", "it only runs the commands inside it"));
            }
            (Role::FunctionCall, _) => {
                parts.push(Part::harmless(
                    "command:function",
                    "its commands are checked separately",
                ));
            }
            (Role::Ordinary, Some(files)) => {
                parts.push(Part::harmless("command:only-reads", "it only reads"));
                let directory = command.directory.as_deref();
                parts.extend(files.iter().flat_map(|file| self.read_parts(file, directory)));
            }
            (Role::Ordinary, None) => {
                parts.push(self.policy.profile_part(Effect::Command).with_scope(asked()));
            }
        }
        parts
    }

    /// Files that a command names and a rule restricts. By the text alone: a program can open others.
    fn restricted_file_parts(&self, command: &Command, files: Option<&[Word]>) -> Vec<Part> {
        let arguments = files.unwrap_or(&command.words[1..]);
        let rules = &self.policy.rules;
        let mut parts = Vec::new();
        for path in
            arguments.iter().filter_map(|word| word.paths(command.directory.as_deref())).flatten()
        {
            let rule = rules.for_path(Kind::Read, &path, self.context);
            if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
                parts.push(Part::from_rule(rule, ApprovalScope::Path(Effect::Read, path)));
            }
        }
        parts
    }

    /// Hosts that rules deny or ask about, and hosts that no rule allows if only such hosts are reached.
    fn restricted_host_parts(&self, command: &Command) -> Vec<Part> {
        let found = hosts_in(command.words.iter().map(Word::shown));
        let rule = |host: NamedHost| {
            let rule = self.policy.rules.for_host(&host.name, host.port)?;
            (rule.decision != Decision::Allow)
                .then(|| Part::from_rule(rule, ApprovalScope::Host(host.shown())))
        };
        let mut parts: Vec<Part> = found.into_iter().filter_map(rule).collect();
        if self.policy.network_by_name {
            let is_unlisted = |host: &NamedHost| {
                let rules = &self.policy.rules;
                let is_own = self.policy.has_own_loopback && is_loopback(&host.name);
                let is_open = host.port.is_some() && !is_own;
                is_open && rules.for_connection(&host.name, host.port).is_none()
            };
            let unlisted = contacted_hosts(command).into_iter().filter(is_unlisted);
            parts.extend(unlisted.map(|host| self.policy.host_part(&host.name, host.port)));
        }
        parts
    }

    /// A variable that can change the behaviour of programs.
    fn assignment_part(&self, assignment: &Assignment) -> Part {
        let why = format!(
            "it sets {}, which can change the behaviour of other commands",
            assignment.name
        );
        let value = assignment.value.shown();
        self.command_part("command:variable", &why, || {
            ApprovalScope::Command(vec![format!("{}={value}", assignment.name)])
        })
    }

    fn write_part(&self, file: &RedirectedFile) -> Part {
        let Some(paths) = file.word.paths(file.directory.as_deref()) else {
            let why = format!("the file that `> {}` writes is not known", file.word.source);
            return self.command_part("command:redirection", &why, || {
                ApprovalScope::Script(self.text.to_owned())
            });
        };
        let parts = paths.into_iter().map(|path| self.path_write_part(path));
        parts
            .max_by_key(|part| part.verdict.decision)
            .unwrap_or_else(|| Part::harmless("command:redirection", "it writes no file"))
    }

    fn path_write_part(&self, path: PathBuf) -> Part {
        if is_stateless_device(&path) {
            return Part::harmless("command:no-file", "this device stores nothing");
        }
        let rules = &self.policy.rules;
        let root = self.context.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        let protection = &self.policy.protection;
        let protected = root.and_then(|inner| {
            Some((protection.narrowest_exception(inner)?, protection.reason(inner)))
        });
        if let Some((exception, reason)) =
            protected.filter(|_| self.policy.profile != Profile::Open)
        {
            let why = format!("{} is protected: {reason}", path.display());
            let command = self.policy.settings.command(&["add", "allow_protected", &exception]);
            let remedy = format!("run `{command}`");
            return Part::new(Decision::Deny, "protected", &why, &remedy);
        }
        let read = rules.for_path(Kind::Read, &path, self.context);
        let read = read.filter(|rule| rule.decision != Decision::Allow);
        let edit = rules.for_path(Kind::Edit, &path, self.context);
        let profile = self.policy.profile_part(Effect::Command).verdict.decision;
        let strictest = edit.into_iter().chain(read).max_by_key(|rule| rule.decision);
        if let Some(rule) = strictest.filter(|_| profile != Decision::Deny) {
            return Part::from_rule(rule, ApprovalScope::Path(Effect::Write, path));
        }
        if root.is_none() {
            return self.external_part(path);
        }
        let why = format!("it writes {}", path.display());
        self.command_part("command:redirection", &why, || ApprovalScope::Redirection(path))
    }

    /// The decisions on reading a file that a command names.
    fn read_parts(&self, word: &Word, directory: Option<&Path>) -> Vec<Part> {
        if word.values.is_empty() && !word.splits && word.prefix.starts_with(PIPE_PREFIX) {
            return Vec::new();
        }
        let may_match_parent = |value: &String| {
            word.glob
                && value
                    .split('/')
                    .any(|name| name.starts_with('.') && name.contains(['*', '?', '[']))
        };
        let known = word.paths(directory).filter(|_| !word.values.iter().any(may_match_parent));
        let Some(paths) = known else {
            let why = format!("the file that `{}` names is not known", word.source);
            return vec![self.command_part("command:unknown-file", &why, || {
                ApprovalScope::Script(self.text.to_owned())
            })];
        };
        paths.into_iter().filter_map(|path| self.path_read_part(path)).collect()
    }

    fn path_read_part(&self, path: PathBuf) -> Option<Part> {
        if is_stateless_device(&path) {
            return None;
        }
        let rule = self.policy.rules.for_path(Kind::Read, &path, self.context);
        if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
            return Some(Part::from_rule(rule, ApprovalScope::Path(Effect::Read, path)));
        }
        let inside =
            self.context.roots.iter().any(|root| path.starts_with(normalize_lexically(root)));
        (!inside).then(|| self.external_part(path))
    }

    /// A path outside the workspace.
    fn external_part(&self, path: PathBuf) -> Part {
        match self.policy.rules.for_path(Kind::External, &path, self.context) {
            Some(rule) => Part::from_rule(rule, ApprovalScope::External(path)),
            None => {
                let why = format!("{} is outside the workspace", path.display());
                self.command_part("external-directory", &why, || ApprovalScope::External(path))
            }
        }
    }

    /// The profile's decision on a command that is not known to be harmless, with a specific rule and reason.
    fn command_part(&self, rule: &str, why: &str, asked: impl FnOnce() -> ApprovalScope) -> Part {
        let mut part = self.policy.profile_part(Effect::Command);
        if part.verdict.decision == Decision::Ask {
            part.verdict.rule = rule.to_owned();
            part.verdict.why = why.to_owned();
        }
        part.with_scope(asked())
    }
}

/// Whether a path is a device that stores nothing.
fn is_stateless_device(path: &Path) -> bool {
    let names = ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr"];
    path.strip_prefix("/dev").is_ok_and(|name| names.iter().any(|one| name == Path::new(one)))
}
