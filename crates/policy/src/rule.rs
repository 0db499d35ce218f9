//! The user's rules, which allow, ask about or deny in addition to the profile.
//!
//! `docs/rules.md` describes the file format; `file.rs` parses it.

mod argv;
mod content_name;
mod covering;
mod file;
mod host;
mod path;
mod path_names;
mod request;
mod url_path;

use std::path::Path;
use std::sync::Arc;

use crate::access::Effect;
use crate::command::{Command, ShellContext};
use crate::decision::Decision;
use argv::{ArgvPattern, CommandWords};
pub use file::{LocatedRule, RuleError};
use host::HostPattern;
pub(crate) use path::PathPattern;
use path_names::PathNames;
pub(crate) use request::RequestPatterns;
pub use request::RequestSubject;

/// The subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Edit,
    Command,
    External,
    Network,
}

impl Kind {
    /// The kind with this word in `rules.toml`.
    fn named(word: &str) -> Option<Kind> {
        Some(match word {
            "read" => Kind::Read,
            "edit" => Kind::Edit,
            "command" => Kind::Command,
            "external_directory" => Kind::External,
            "network" => Kind::Network,
            _ => return None,
        })
    }

    /// The kind of rule for an effect on files; `None` for other effects.
    pub(crate) fn of_files(effect: Effect) -> Option<Kind> {
        match effect {
            Effect::Read => Some(Kind::Read),
            Effect::Write => Some(Kind::Edit),
            Effect::Reach | Effect::Command => None,
        }
    }
}

/// Rules, in the order of their file.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// `rule:` and its name, or a name by its content if it has none.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) decision: Decision,
    pub(crate) why: String,
    /// The tools whose calls it applies to; if there are none, all.
    tools: Vec<String>,
    paths: Vec<PathPattern>,
    commands: Vec<ArgvPattern>,
    hosts: Vec<HostPattern>,
    /// The requests that it is restricted to. `None` if it is for whole connections.
    pub(crate) requests: Option<RequestPatterns>,
    /// The file that it is in, if that is not the usual one.
    pub(crate) file: Option<Arc<str>>,
}

impl Rules {
    /// The number of rules.
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// These rules followed by others.
    #[must_use]
    pub fn merged_with(mut self, others: Rules) -> Rules {
        self.rules.extend(others.rules);
        self
    }

    /// These rules, which are in a file that is not the usual one. Messages name it.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Rules {
        let file: Arc<str> = file.into();
        self.rules.iter_mut().for_each(|rule| rule.file = Some(file.clone()));
        self
    }

    /// Replaces each tool name by the name that the runtime uses. `name` fails for an unknown tool.
    pub fn resolve_tools<E>(
        mut self,
        name: impl Fn(&str) -> Result<String, E>,
    ) -> Result<Rules, (String, E)> {
        for rule in &mut self.rules {
            for tool in &mut rule.tools {
                *tool = name(tool).map_err(|error| (rule.name.clone(), error))?;
            }
        }
        Ok(self)
    }

    /// Whether a rule applies to some tools only.
    pub(crate) fn name_tools(&self) -> bool {
        self.rules.iter().any(|rule| !rule.tools.is_empty())
    }

    /// The rules that apply to calls of a tool.
    pub(crate) fn for_tool(&self, tool: &str) -> Rules {
        let applies =
            |rule: &&Rule| rule.tools.is_empty() || rule.tools.iter().any(|name| name == tool);
        Rules { rules: self.rules.iter().filter(applies).cloned().collect() }
    }

    /// Whether there is a rule of this kind.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.rules.iter().any(|rule| rule.kind == kind)
    }

    /// The rules of this kind that deny.
    pub(crate) fn denials(&self, kind: Kind) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.kind == kind && rule.decision == Decision::Deny)
    }

    /// The strictest rule of this kind that matches a path.
    pub(crate) fn for_path(
        &self,
        kind: Kind,
        path: &Path,
        context: &ShellContext,
    ) -> Option<&Rule> {
        let names = PathNames::new(path, context);
        self.strictest(kind, |rule| rule.matches_path(&names))
    }

    /// The strictest rule that matches a command.
    pub(crate) fn for_command(&self, command: &Command) -> Option<&Rule> {
        let words = CommandWords::new(command);
        self.strictest(Kind::Command, |rule| rule.matches_command(&words))
    }

    /// The strictest rule for all requests that matches a host. The port is `None` if it is not known.
    pub(crate) fn for_host(&self, host: &str, port: Option<u16>) -> Option<&Rule> {
        let matches = |rule: &Rule| rule.requests.is_none() && rule.matches_host(host, port);
        self.strictest(Kind::Network, matches)
    }

    /// The strictest rule that decides on connecting to a host. A rule that allows some requests allows to connect.
    pub(crate) fn for_connection(&self, host: &str, port: Option<u16>) -> Option<&Rule> {
        let matches = |rule: &Rule| rule.decides_connections() && rule.matches_host(host, port);
        self.strictest(Kind::Network, matches)
    }

    /// The rules for some requests to a host.
    pub(crate) fn for_requests_to(
        &self,
        host: &str,
        port: Option<u16>,
    ) -> impl Iterator<Item = &Rule> {
        let is_restricted = |rule: &&Rule| rule.kind == Kind::Network && rule.requests.is_some();
        self.rules.iter().filter(is_restricted).filter(move |rule| rule.matches_host(host, port))
    }

    /// Whether a rule for hosts names methods or paths.
    pub fn name_requests(&self) -> bool {
        self.rules.iter().any(|rule| rule.requests.is_some())
    }

    /// The decision on an address, if a rule names it as an address, and whether requests to it are decided one by
    /// one. A `*` names no address.
    pub(crate) fn for_address(&self, address: &str, port: u16) -> Option<(Decision, bool)> {
        let named = |rule: &Rule| {
            rule.kind == Kind::Network
                && rule.decides_connections()
                && rule.names_address(address, port)
        };
        self.rules.iter().find(|rule| named(rule))?;
        let is_partial = self.for_requests_to(address, Some(port)).next().is_some();
        self.for_connection(address, Some(port)).map(|rule| (rule.decision, is_partial))
    }

    fn strictest(&self, kind: Kind, matches: impl Fn(&Rule) -> bool) -> Option<&Rule> {
        let matching = self.rules.iter().filter(|rule| rule.kind == kind && matches(rule));
        // The first of the strictest: `max_by_key` alone would return the last.
        matching.rev().max_by_key(|rule| rule.decision)
    }
}

impl Rule {
    /// The patterns that can match paths outside the workspace.
    pub(crate) fn absolute_paths(&self) -> impl Iterator<Item = &PathPattern> {
        self.paths.iter().filter(|pattern| pattern.is_absolute())
    }

    /// Whether a pattern that is written as an address, and not as a name, matches this one.
    fn names_address(&self, address: &str, port: u16) -> bool {
        let mut addresses = self.hosts.iter().filter(|pattern| pattern.is_address());
        addresses.any(|pattern| pattern.allows(address, Some(port)))
    }

    fn matches_path(&self, path: &PathNames<'_>) -> bool {
        // A restriction applies to every spelling that some file system treats as the same name.
        let normalizes = self.decision != Decision::Allow;
        self.paths.iter().any(|pattern| pattern.matches(path, normalizes))
    }

    fn matches_host(&self, host: &str, port: Option<u16>) -> bool {
        self.hosts.iter().any(|pattern| match self.decision {
            Decision::Allow => pattern.allows(host, port),
            Decision::Ask | Decision::Deny => pattern.restricts(host, port),
        })
    }

    /// Whether it decides on connections. A rule that denies some requests does not.
    fn decides_connections(&self) -> bool {
        self.requests.is_none() || self.decision == Decision::Allow
    }

    /// Whether it is for this request, to a host that it matches.
    pub(crate) fn matches_request(&self, request: &RequestSubject<'_>) -> bool {
        self.requests.as_ref().is_none_or(|patterns| match self.decision {
            Decision::Allow => patterns.allows(request),
            Decision::Ask | Decision::Deny => patterns.restricts(request),
        })
    }

    fn matches_command(&self, command: &CommandWords<'_>) -> bool {
        match self.decision {
            Decision::Allow => self.commands.iter().any(|pattern| pattern.matches_exactly(command)),
            Decision::Ask | Decision::Deny => {
                self.commands.iter().any(|pattern| pattern.matches_prefix(command))
            }
        }
    }
}
