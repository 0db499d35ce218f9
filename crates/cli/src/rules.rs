//! The user's rules, and the rules of a project that the operator names. An invalid file is an error at startup;
//! later, the previous rules stay in force.

mod append;
mod changes;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toolcrib::{Rules, check_tools_of_rules, shell_word};

use crate::args::Common;
use crate::config::Config;
use crate::network_presets;
use crate::optional_file::{is_missing, unreadable};
pub(crate) use append::{add, replace_if_unchanged, with};
pub(crate) use changes::ChangingRules;
use toolcrib::user_machine;

/// Larger than any handwritten rules file.
const MAX_BYTES: u64 = 1 << 20;

/// All effective rules.
pub(crate) fn read(common: &Common, config: &Config) -> Result<Rules, String> {
    let read = |file: RulesFile| Ok((file.read(common)?, file.owner));
    let files =
        sources(common, config).into_iter().map(read).collect::<Result<Vec<_>, String>>()?;
    Ok(merged(files, presets(common, config)?))
}

/// The rules that would be effective with another text of the user's file.
pub(crate) fn effective_with(
    text: &str,
    common: &Common,
    config: &Config,
) -> Result<Rules, String> {
    let rules = Rules::parse(text).map_err(|error| error.to_string())?;
    let others = sources(common, config).into_iter().filter(|file| !file.is_users());
    let read = |file: RulesFile| Ok((file.read(common)?, file.owner));
    let others = others.map(read).collect::<Result<Vec<_>, String>>()?;
    let user = (rules, RulesOwner::User { is_named: false });
    Ok(merged(std::iter::once(user).chain(others), presets(common, config)?))
}

/// The rules of the presets in the configuration.
pub(crate) fn presets(common: &Common, config: &Config) -> Result<Rules, String> {
    network_presets::rules(common, &config.network_presets)
}

/// The rules of all files and presets. Those of presets follow the user's.
fn merged(files: impl IntoIterator<Item = (Rules, RulesOwner)>, presets: Rules) -> Rules {
    let (user, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(_, owner)| matches!(owner, RulesOwner::User { .. }));
    let only = |files: Vec<(Rules, RulesOwner)>| files.into_iter().map(|(rules, _)| rules);
    let user = only(user).fold(Rules::default(), Rules::merged_with);
    only(others).fold(user.merged_with(presets), Rules::merged_with)
}

/// Whose rules a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RulesOwner {
    /// The user's, in the usual file or in one that the command line names.
    User { is_named: bool },
    /// The project's, which only restrict.
    Project,
    /// The operator's for one of many workspaces.
    Workspace,
}

/// A rules file.
#[derive(Debug, Clone)]
struct RulesFile {
    owner: RulesOwner,
    path: PathBuf,
}

/// The rules files, in the order in which they are merged.
fn sources(common: &Common, config: &Config) -> Vec<RulesFile> {
    let user = user_file(common)
        .map(|(path, is_named)| RulesFile { owner: RulesOwner::User { is_named }, path });
    let project = config.project_rules.clone();
    let project = project.map(|path| RulesFile { owner: RulesOwner::Project, path });
    let own = common.among.as_ref().and_then(|among| among.rules.clone());
    let own = own.map(|path| RulesFile { owner: RulesOwner::Workspace, path });
    user.into_iter().chain(project).chain(own).collect()
}

impl RulesFile {
    fn is_users(&self) -> bool {
        matches!(self.owner, RulesOwner::User { .. })
    }

    fn read(&self, common: &Common) -> Result<Rules, String> {
        let may_be_missing =
            matches!(self.owner, RulesOwner::User { is_named: false } | RulesOwner::Workspace);
        match text(&self.path) {
            Ok(text) => {
                if self.is_users() {
                    check_outside_workspace(common, &self.path)?;
                }
                self.parse(&text)
            }
            Err(error) if may_be_missing && is_missing(&self.path, &error) => Ok(Rules::default()),
            Err(error) => Err(unreadable(&self.path, &error)),
        }
    }

    fn parse(&self, text: &str) -> Result<Rules, String> {
        let path = &self.path;
        match self.owner {
            RulesOwner::User { is_named: false } => parse(path, text),
            RulesOwner::User { is_named: true } | RulesOwner::Workspace => {
                Ok(parse(path, text)?.in_file(&shown(path)))
            }
            RulesOwner::Project => Rules::parse_restricting(text)
                .map_err(|error| format!("{}: {error}", path.display())),
        }
    }
}

/// The path of a rules file in messages.
fn shown(path: &Path) -> String {
    std::path::absolute(path).as_deref().unwrap_or(path).display().to_string()
}

/// The file that messages name in the commands that add a rule, if it is not the usual one.
pub(crate) fn named_file(common: &Common) -> Option<PathBuf> {
    let own = common.among.as_ref().and_then(|among| among.rules.as_ref());
    let file = own.or(common.rules.as_ref())?;
    Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()))
}

/// The flag that names the user's rules file, after a space, if it was given. For a shell.
pub(crate) fn flag(common: &Common) -> String {
    let file = common.rules.as_ref();
    file.map_or(String::new(), |file| format!(" --rules {}", shell_word(&shown(file))))
}

/// The user's rules file, and its text. The text is empty if the file does not exist.
pub(crate) fn user_text(common: &Common) -> Result<(PathBuf, String), String> {
    let (path, _) = user_file(common).ok_or("the configuration directory is unknown")?;
    match text(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) if is_missing(&path, &error) => Ok((path, String::new())),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// The rules files with their texts: the user's, and that of the project.
pub(crate) fn texts(common: &Common, config: &Config) -> Result<Vec<(PathBuf, String)>, String> {
    let mut texts = Vec::new();
    if let Ok((path, text)) = user_text(common) {
        texts.push((path, text));
    }
    if let Some(path) = &config.project_rules {
        let text = text(path).map_err(|error| format!("{}: {error}", path.display()))?;
        texts.push((path.clone(), text));
    }
    Ok(texts)
}

/// Reads one rules file.
pub(crate) fn check(path: &Path) -> Result<Rules, String> {
    let text = text(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(path, &text)
}

/// Parses a rules file. Fails also at the name of a tool that does not exist.
fn parse(path: &Path, text: &str) -> Result<Rules, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let rules = Rules::parse(text).map_err(|error| at(&error))?;
    check_tools_of_rules(rules.clone()).map_err(|error| {
        // The error names the rule, which may have no name in the file.
        let problem = error.to_string();
        let located = Rules::locate(text).unwrap_or_default();
        let found = located.iter().find_map(|rule| {
            let problem = problem.strip_prefix(&rule.name)?.strip_prefix(": ")?;
            Some(format!("line {}: {problem}", rule.first_line))
        });
        at(&found.unwrap_or(problem))
    })?;
    Ok(rules)
}

/// The rules files, which no tool may access.
pub(crate) fn files(common: &Common, config: &Config) -> Vec<PathBuf> {
    user_file(common)
        .map(|(path, _)| path)
        .into_iter()
        .chain(config.project_rules.clone())
        .collect()
}

/// The file to which the user's rules are added. `None` if an agent could write it.
pub(crate) fn file_for_additions(common: &Common) -> Option<PathBuf> {
    // An answer in one workspace must not allow anything in another.
    if let Some(among) = &common.among {
        return among.rules.clone();
    }
    let (path, _) = user_file(common)?;
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(&path);
    check_outside_workspace(common, there).is_ok().then_some(path)
}

/// The user's rules file, and whether it was named on the command line.
fn user_file(common: &Common) -> Option<(PathBuf, bool)> {
    match &common.rules {
        Some(path) => Some((path.clone(), true)),
        None => user_machine::configuration_directory()
            .map(|directory| (directory.join("rules.toml"), false)),
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_BYTES {
        return Err(std::io::Error::other(format!("a rules file has at most {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// Fails if the file is inside the workspace: rules that an agent can write do not restrict it.
fn check_outside_workspace(common: &Common, path: &Path) -> Result<(), String> {
    let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    for root in common.roots() {
        let Ok(root) = root.directory.canonicalize() else { continue };
        if real.starts_with(&root) && !is_protected(&real, &root) {
            return Err(format!(
                "{}: this rules file is inside the workspace, where an agent could change it. Move it out of the \
                 workspace, or name a project directory with --root.",
                path.display()
            ));
        }
    }
    Ok(())
}

/// Whether a real path is in the default configuration directory, which no tool or command writes. Not if it is
/// behind a symlink in the root: a command could replace the symlink.
fn is_protected(real: &Path, root: &Path) -> bool {
    let Some(directory) = user_machine::configuration_directory() else { return false };
    let spelled = directory.ancestors().find_map(|above| {
        let rest = directory.strip_prefix(above).ok()?;
        above.canonicalize().is_ok_and(|above| above == root).then(|| root.join(rest))
    });
    spelled.is_some_and(|directory| real.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{AmongWorkspaces, Args};

    #[test]
    fn rules_of_one_of_many_workspaces_are_added_to_its_own_file() {
        let top = tempfile::tempdir().unwrap();
        let usual = top.path().join("rules.toml");
        let words = ["toolcrib", "--rules", usual.to_str().unwrap(), "jobs"];
        let common = Args::try_parse_from(words).unwrap().common;
        assert_eq!(file_for_additions(&common), Some(usual));
        let among = |rules: Option<PathBuf>| {
            let (all, one) = (top.path().join("all"), top.path().join("all/a"));
            common.for_one_of_many(&one, AmongWorkspaces { directory: all, rules })
        };
        assert_eq!(file_for_additions(&among(None)), None);
        let own = top.path().join("rules/a.toml");
        assert_eq!(file_for_additions(&among(Some(own.clone()))), Some(own));
    }
}
