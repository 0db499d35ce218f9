//! Decides on a script by each command, file and variable in it.

use std::path::{Path, PathBuf};

use super::{DANGER, Decision, Part, Policy, Subjects};
use crate::access::Effect;
use crate::approval_subject::ApprovalScope;
use crate::command::{
    Assignment, Command, CommandAnalysis, PIPE_PREFIX, RedirectedFile, Role, ShellContext,
    Unparsed, UnparsedKind, Word, normalize_lexically,
};
use crate::contacted_hosts::{NamedHost, contacted_hosts, hosts_in, is_loopback};
use crate::profile::Profile;
use crate::read_only_commands::{
    files_if_read_only, is_neutral_in_environment, is_neutral_in_shell,
};
use crate::rule::{Kind, Rule};
use crate::system_damage::find_danger;

/// The subject of a decision on the whole script.
const WHOLE_COMMAND: &str = "the command as a whole";

/// The decisions on all parts of a script.
pub(super) fn parts<'p>(
    policy: &'p Policy,
    text: &str,
    analysis: &CommandAnalysis,
    context: &ShellContext,
    subjects: Subjects,
) -> Vec<Part<'p>> {
    let roots = context.roots.iter().map(|root| normalize_lexically(root)).collect();
    let script = Script { policy, context, text, subjects, roots };
    let mut parts = Vec::new();
    if policy.profile != Profile::Open {
        if let Some(danger) = find_danger(analysis, context) {
            let why = format!("{}: {}", danger.what, danger.why);
            let part = Part::new(Decision::Deny, DANGER, why, danger.instead);
            parts.push(part.about(WHOLE_COMMAND.to_owned()));
        }
        parts.extend(analysis.unparsed.as_ref().map(|why| script.unparsed_part(why)));
    }
    for command in &analysis.commands {
        let first = parts.len();
        script.command_parts(&mut parts, command);
        script.name(&mut parts[first..], || command.shown().join(" "));
    }
    for set in analysis.assignments.iter().filter(|one| !is_neutral_in_shell(&one.name)) {
        let mut part = script.assignment_part(set);
        script.name([&mut part], || format!("{}={}", set.name, set.value.shown()));
        parts.push(part);
    }
    for file in &analysis.writes {
        let mut part = script.write_part(file);
        script.name([&mut part], || format!("> {}", file.word.shown()));
        parts.push(part);
    }
    for file in &analysis.reads {
        let first = parts.len();
        let named = script.named_file(&file.word, file.directory.as_deref());
        script.read_parts(&mut parts, &named);
        script.name(&mut parts[first..], || format!("< {}", file.word.shown()));
    }
    if parts.is_empty() {
        parts.push(Part::harmless("command:nothing", "it runs no command"));
    }
    parts
}

struct Script<'a, 'p> {
    policy: &'p Policy,
    context: &'a ShellContext,
    text: &'a str,
    subjects: Subjects,
    /// The roots without `.` and `..`.
    roots: Vec<PathBuf>,
}

/// A file that a command names.
struct NamedFile<'a, 'p> {
    word: &'a Word,
    /// The possible paths, each with the strictest rule for reading it. `None` if they are not known.
    paths: Option<Vec<(PathBuf, Option<&'p Rule>)>>,
}

impl<'p> Script<'_, 'p> {
    /// Names parts, if they are shown.
    fn name<'m>(
        &self,
        parts: impl IntoIterator<Item = &'m mut Part<'p>>,
        subject: impl FnOnce() -> String,
    ) where
        'p: 'm,
    {
        if self.subjects == Subjects::Hidden {
            return;
        }
        let subject = subject();
        parts.into_iter().for_each(|part| part.about.clone_from(&subject));
    }

    fn unparsed_part(&self, why: &Unparsed) -> Part<'p> {
        let what = || format!("the command could not be fully parsed: {}", why.reason);
        let asked = || ApprovalScope::Script(self.text.to_owned());
        let mut part = self.command_part("command:unparsed", what, asked);
        part.looks_like_syntax_error = why.kind == UnparsedKind::SyntaxError;
        if part.decision == Decision::Ask && !self.policy.confined {
            // No rule can allow it. It runs in the sandbox.
            let sandbox = "make the sandbox available (`toolcrib doctor` says what is missing)";
            part.remedy = match self.policy.profile {
                Profile::Workspace => sandbox.into(),
                _ => {
                    format!("{}, and {sandbox}", self.policy.use_profile(Profile::Workspace)).into()
                }
            };
        }
        part.about(WHOLE_COMMAND.to_owned())
    }

    fn command_parts(&self, parts: &mut Vec<Part<'p>>, command: &Command) {
        let set = command.assignments.iter().filter(|one| !is_neutral_in_environment(&one.name));
        parts.extend(set.map(|one| self.assignment_part(one)));
        self.restricted_host_parts(parts, command);
        let asked = || {
            let set = command.assignments.iter();
            let set = set.map(|one| format!("{}={}", one.name, one.value.shown()));
            ApprovalScope::Command(
                set.chain(command.shown().into_iter().map(str::to_owned)).collect(),
            )
        };
        let rule = self.policy.rules.for_command(command);
        let profile = self.profile_decision();
        let only_read = files_if_read_only(command);
        let arguments = only_read.as_deref().unwrap_or(&command.words[1..]);
        let directory = command.directory.as_deref();
        let files: Vec<NamedFile<'_, 'p>> =
            arguments.iter().map(|word| self.named_file(word, directory)).collect();
        restricted_file_parts(parts, &files);
        match rule {
            Some(rule) if profile != Decision::Deny || rule.decision == Decision::Deny => {
                parts.push(Part::from_rule(rule, asked));
                return;
            }
            _ => {}
        }
        if profile == Decision::Deny {
            parts.push(self.policy.profile_part(Effect::Command));
            return;
        }
        match (command.role, &only_read) {
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
            (Role::Ordinary, Some(_)) => {
                parts.push(Part::harmless("command:only-reads", "it only reads"));
                for file in &files {
                    self.read_parts(parts, file);
                }
            }
            (Role::Ordinary, None) => {
                parts.push(self.policy.profile_part_for(Effect::Command, asked));
            }
        }
    }

    /// The decision of the profile on commands.
    fn profile_decision(&self) -> Decision {
        self.policy.decision_in(self.policy.profile, Effect::Command)
    }

    /// A file that a command names, with the rules for it.
    fn named_file<'w>(&self, word: &'w Word, directory: Option<&Path>) -> NamedFile<'w, 'p> {
        let rules = &self.policy.rules;
        let with_rule = |path: PathBuf| {
            let rule = rules.for_path(Kind::Read, &path, self.context);
            (path, rule)
        };
        let paths = word.paths(directory);
        NamedFile { word, paths: paths.map(|paths| paths.into_iter().map(with_rule).collect()) }
    }

    /// Hosts that rules deny or ask about, and hosts that no rule allows if only such hosts are reached.
    fn restricted_host_parts(&self, parts: &mut Vec<Part<'p>>, command: &Command) {
        let found = hosts_in(command.words.iter().map(Word::shown));
        let rule = |host: NamedHost| {
            let rule = self.policy.rules.for_host(&host.name, host.port)?;
            (rule.decision != Decision::Allow)
                .then(|| Part::from_rule(rule, || ApprovalScope::Host(host.shown())))
        };
        parts.extend(found.into_iter().filter_map(rule));
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
    }

    /// A variable that can change the behaviour of programs.
    fn assignment_part(&self, assignment: &Assignment) -> Part<'p> {
        let why = || {
            let name = &assignment.name;
            format!("it sets {name}, which can change the behaviour of other commands")
        };
        let value = assignment.value.shown();
        self.command_part("command:variable", why, || {
            ApprovalScope::Command(vec![format!("{}={value}", assignment.name)])
        })
    }

    fn write_part(&self, file: &RedirectedFile) -> Part<'p> {
        let Some(paths) = file.word.paths(file.directory.as_deref()) else {
            let why = || format!("the file that `> {}` writes is not known", file.word.source);
            return self.command_part("command:redirection", why, || {
                ApprovalScope::Script(self.text.to_owned())
            });
        };
        let parts = paths.into_iter().map(|path| self.path_write_part(path));
        parts
            .max_by_key(|part| part.decision)
            .unwrap_or_else(|| Part::harmless("command:redirection", "it writes no file"))
    }

    fn path_write_part(&self, path: PathBuf) -> Part<'p> {
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
            return Part::new(Decision::Deny, "protected", why, remedy);
        }
        let read = rules.for_path(Kind::Read, &path, self.context);
        let read = read.filter(|rule| rule.decision != Decision::Allow);
        let edit = rules.for_path(Kind::Edit, &path, self.context);
        let profile = self.profile_decision();
        let strictest = edit.into_iter().chain(read).max_by_key(|rule| rule.decision);
        if let Some(rule) = strictest.filter(|_| profile != Decision::Deny) {
            return Part::from_rule(rule, || ApprovalScope::Path(Effect::Write, path));
        }
        if root.is_none() {
            return self.external_part(&path);
        }
        let why = || format!("it writes {}", path.display());
        self.command_part("command:redirection", why, || ApprovalScope::Redirection(path.clone()))
    }

    /// The decisions on reading a file that a command names.
    fn read_parts(&self, parts: &mut Vec<Part<'p>>, file: &NamedFile<'_, 'p>) {
        let word = file.word;
        if word.values.is_empty() && !word.splits && word.prefix.starts_with(PIPE_PREFIX) {
            return;
        }
        let may_match_parent = |value: &String| {
            word.glob
                && value
                    .split('/')
                    .any(|name| name.starts_with('.') && name.contains(['*', '?', '[']))
        };
        let known = file.paths.as_ref().filter(|_| !word.values.iter().any(may_match_parent));
        let Some(paths) = known else {
            let why = || format!("the file that `{}` names is not known", word.source);
            parts.push(self.command_part("command:unknown-file", why, || {
                ApprovalScope::Script(self.text.to_owned())
            }));
            return;
        };
        parts.extend(paths.iter().filter_map(|(path, rule)| self.path_read_part(path, *rule)));
    }

    fn path_read_part(&self, path: &Path, rule: Option<&'p Rule>) -> Option<Part<'p>> {
        if is_stateless_device(path) {
            return None;
        }
        if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
            return Some(Part::from_rule(rule, || read_scope(path)));
        }
        let inside = self.roots.iter().any(|root| path.starts_with(root));
        (!inside).then(|| self.external_part(path))
    }

    /// A path outside the workspace.
    fn external_part(&self, path: &Path) -> Part<'p> {
        let scope = || ApprovalScope::External(path.to_owned());
        match self.policy.rules.for_path(Kind::External, path, self.context) {
            Some(rule) => Part::from_rule(rule, scope),
            None => {
                let why = || format!("{} is outside the workspace", path.display());
                self.command_part("external-directory", why, scope)
            }
        }
    }

    /// The profile's decision on a command that is not known to be harmless, with a specific rule and reason.
    fn command_part(
        &self,
        rule: &'static str,
        why: impl FnOnce() -> String,
        asked: impl FnOnce() -> ApprovalScope,
    ) -> Part<'p> {
        let mut part = self.policy.profile_part_for(Effect::Command, asked);
        if part.decision == Decision::Ask {
            part.rule = rule.into();
            part.why = why().into();
        }
        part
    }
}

/// Files that a command names and a rule restricts. By the text alone: a program can open others.
fn restricted_file_parts<'p>(parts: &mut Vec<Part<'p>>, files: &[NamedFile<'_, 'p>]) {
    for (path, rule) in files.iter().filter_map(|file| file.paths.as_ref()).flatten() {
        if let Some(rule) = rule.filter(|rule| rule.decision != Decision::Allow) {
            parts.push(Part::from_rule(rule, || read_scope(path)));
        }
    }
}

/// What an approval of reading a file that a rule restricts covers.
fn read_scope(path: &Path) -> ApprovalScope {
    ApprovalScope::Path(Effect::Read, path.to_owned())
}

/// Whether a path is a device that stores nothing.
fn is_stateless_device(path: &Path) -> bool {
    let names = ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr"];
    path.strip_prefix("/dev").is_ok_and(|name| names.iter().any(|one| name == Path::new(one)))
}
