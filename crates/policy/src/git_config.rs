//! Checks whether a new git configuration could make git run a program or use other files.
//!
//! The format is parsed exactly as git parses it, because every difference is a place to hide a
//! variable. The check is an allow-list: a variable that is not known to be harmless is dangerous.

mod allowed;
mod parse;
mod url;

use std::collections::HashSet;

use allowed::ConfigContext;
pub use parse::{ConfigError, Variable, parse};

/// The result of a review of a new configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigReview {
    /// The variables that can run code, with their lines: `core.fsmonitor (line 3)`.
    pub dangerous: Vec<String>,
}

/// Reviews the new content of a configuration file against the old one.
///
/// A variable that the old file had with the same value is not dangerous. `depth` is the
/// number of directories between the workspace's root and the file: 1 for `.git/config`, 3 for
/// `.git/modules/x/config`. It decides whether `core.worktree` stays inside the workspace.
///
/// # Errors
///
/// Fails if git cannot parse the new content either, or if it is larger than any configuration in use. Old
/// content that cannot be parsed counts as empty.
pub fn review(old: Option<&[u8]>, new: &[u8], depth: usize) -> Result<ConfigReview, ConfigError> {
    let old = old.and_then(|old| parse(old).ok()).unwrap_or_default();
    let old: HashSet<_> = old.iter().map(identity).collect();
    let new_variables = parse(new)?;
    let context = ConfigContext::of(&new_variables, depth);
    let is_dangerous =
        |variable: &&Variable| !old.contains(&identity(variable)) && !context.allows(variable);
    let dangerous = new_variables.iter().filter(is_dangerous).map(Variable::shown);
    let mut dangerous: Vec<String> = dangerous.collect();
    // Git ends a name or a value at the NUL. Other programs that read the file may not.
    if let Some(at) = new.iter().position(|byte| *byte == 0) {
        let line = 1 + new[..at].iter().filter(|byte| **byte == b'\n').count();
        dangerous.push(format!("a NUL byte (line {line})"));
    }
    Ok(ConfigReview { dangerous })
}

type Identity<'a> = (&'a str, Option<&'a [u8]>, &'a str, Option<&'a [u8]>);

/// A variable without its line.
fn identity(variable: &Variable) -> Identity<'_> {
    let Variable { section, subsection, name, value, .. } = variable;
    (section, subsection.as_deref(), name, value.as_deref())
}
