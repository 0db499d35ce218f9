//! Which tools a runtime has: the built-in ones, a library user's own, and the operator's choice of them.

use std::collections::BTreeSet;

use toolcrib_policy::{Effect, Profile, Rules};

use crate::error::{Error, ErrorKind};
use crate::message_names::SHELL_TOOL;
use crate::suggest::similar_names;
use crate::tool::{Category, Entry};
use crate::tool_table::{Row, Table};
use crate::tools::TOOLS;

/// Tools that act on the commands of [`SHELL_TOOL`]. Without it they have nothing to act on.
const SHELL_COMPANIONS: [&str; 3] = ["BashOutput", "KillShell", "ListShells"];

/// Characters of an unknown name that an error shows. Names of tools are shorter.
const MAX_SHOWN_NAME: usize = 64;

/// The tools of a runtime, as its builder was told.
#[derive(Default)]
pub(crate) struct ToolSelection {
    own: Vec<(Entry, Placement)>,
    only: Option<Vec<String>>,
    removed: Vec<String>,
}

#[derive(Clone, Copy)]
enum Placement {
    Added,
    Replacing,
}

impl ToolSelection {
    pub(crate) fn register(&mut self, entry: Entry) {
        self.own.push((entry, Placement::Added));
    }

    pub(crate) fn replace(&mut self, entry: Entry) {
        self.own.push((entry, Placement::Replacing));
    }

    pub(crate) fn only(&mut self, names: Vec<String>) {
        self.only = Some(names);
    }

    pub(crate) fn remove(&mut self, name: String) {
        self.removed.push(name);
    }

    /// The table of these tools. Built-in tools that the profile never allows are not listed.
    pub(crate) fn table(self, profile: Profile) -> Result<Table, Error> {
        let mut table = Table::new(TOOLS);
        table.unlist(|row| !can_allow(profile, &row.entry));
        for (entry, placement) in self.own {
            match placement {
                Placement::Added => table.register(entry)?,
                Placement::Replacing => table.replace(entry)?,
            }
        }
        let named = |names: &[String], setting: &str| -> Result<BTreeSet<&'static str>, Error> {
            let tool = |name: &String| {
                let name = known_tool(&table, name);
                name.map_err(|error| error_in(setting, &error))
            };
            names.iter().map(tool).collect()
        };
        let only = self.only.as_deref().map(|only| named(only, "tools")).transpose()?;
        let mut removed = named(&self.removed, "no_tools")?;
        if removed.contains(SHELL_TOOL) {
            let is_wanted = |tool: &&str| only.as_ref().is_some_and(|only| only.contains(tool));
            removed.extend(SHELL_COMPANIONS.into_iter().filter(|tool| !is_wanted(tool)));
        }
        table.leave_out(|row: &Row| {
            let name = row.entry.name;
            removed.contains(name) || only.as_ref().is_some_and(|only| !only.contains(name))
        });
        if table.rows().is_empty() {
            return Err(Error::invalid("`tools` and `no_tools` leave no tool"));
        }
        table.omit_mentions();
        Ok(table)
    }
}

/// Whether a profile can allow a call of a built-in tool.
fn can_allow(profile: Profile, entry: &Entry) -> bool {
    let effect = match entry.category {
        Category::Execution => Effect::Command,
        Category::File | Category::History | Category::Other if entry.hints.read_only => {
            Effect::Read
        }
        Category::File | Category::History | Category::Other => Effect::Write,
    };
    profile.can_allow(effect)
}

/// Whether every tool that rules name is a built-in one. A runtime checks this too, with its own tools.
pub fn check_tools_of_rules(rules: Rules) -> Result<(), Error> {
    Table::new(TOOLS).resolve_rules(rules).map(drop)
}

/// Whether every tool that a setting names is a built-in one.
///
/// # Errors
///
/// Fails with kind [`ErrorKind::Invalid`] and the nearest name if one is not.
pub fn check_tool_names(setting: &str, names: &[String]) -> Result<(), Error> {
    let table = Table::new(TOOLS);
    let check = |name: &String| known_tool(&table, name).map(drop);
    names.iter().try_for_each(check).map_err(|error| error_in(setting, &error))
}

impl Table {
    /// Rules with the names of the tools as the table has them.
    pub(crate) fn resolve_rules(&self, rules: Rules) -> Result<Rules, Error> {
        let resolved = rules.resolve_tools(|name| known_tool(self, name).map(str::to_owned));
        resolved.map_err(|(rule, error)| error_in(&rule, &error))
    }
}

/// The tool of a name in any dialect, whether it was left out or not.
fn known_tool(table: &Table, name: &str) -> Result<&'static str, Error> {
    table.known_name(name).ok_or_else(|| {
        let names: Vec<&str> = table.names().collect();
        let nearest = match similar_names(name, names.iter().copied(), 1).first() {
            Some(nearest) => format!("Did you mean {nearest}? "),
            None => String::new(),
        };
        let shown: String = name.chars().take(MAX_SHOWN_NAME).collect();
        Error::invalid(format!("no tool `{shown}`"))
            .hint(format!("{nearest}Available: {}.", names.join(", ")))
    })
}

fn error_in(setting: &str, error: &Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("{setting}: {}", error.message()))
        .hint(error.hint_text())
}
