//! Whether a new content of a git configuration file could make git run a program or use other files.
//!
//! The format is parsed exactly as git parses it, because every difference is a place to hide a
//! variable. The judgement is an allow-list: a variable that is not known to be harmless is
//! dangerous.

mod allowed;
mod parse;
mod url;

use std::collections::HashSet;

use allowed::Surroundings;
pub use parse::{ConfigError, Variable, parse};

/// What a new content of a configuration would add.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The variables that can run code, with their lines: `core.fsmonitor (line 3)`.
    pub dangerous: Vec<String>,
}

/// Judges the new content of a configuration file against the old one.
///
/// A variable that already stood in the old file with the same value is not dangerous. `depth` is the
/// number of directories between the workspace's root and the file: 1 for `.git/config`, 3 for
/// `.git/modules/x/config`. It decides whether `core.worktree` stays inside the workspace.
///
/// # Errors
///
/// Git cannot parse the new content either, or it is larger than any configuration in use. An old
/// content that cannot be parsed counts as empty.
pub fn judge(old: Option<&[u8]>, new: &[u8], depth: usize) -> Result<Verdict, ConfigError> {
    let old = old.and_then(|old| parse(old).ok()).unwrap_or_default();
    let old: HashSet<_> = old.iter().map(identity).collect();
    let new_variables = parse(new)?;
    let surroundings = Surroundings::of(&new_variables, depth);
    let is_dangerous =
        |variable: &&Variable| !old.contains(&identity(variable)) && !surroundings.allow(variable);
    let dangerous = new_variables.iter().filter(is_dangerous).map(Variable::shown);
    let mut dangerous: Vec<String> = dangerous.collect();
    // Git ends a name or a value at the NUL. Other programs that read the file may not.
    if let Some(at) = new.iter().position(|byte| *byte == 0) {
        let line = 1 + new[..at].iter().filter(|byte| **byte == b'\n').count();
        dangerous.push(format!("a NUL byte (line {line})"));
    }
    Ok(Verdict { dangerous })
}

type Identity<'a> = (&'a str, Option<&'a [u8]>, &'a str, Option<&'a [u8]>);

/// A variable without its line.
fn identity(variable: &Variable) -> Identity<'_> {
    let Variable { section, subsection, name, value, .. } = variable;
    (section, subsection.as_deref(), name, value.as_deref())
}
