//! Directories of version control systems other than git.

use std::path::Path;

use toolcrib_exec::{FileAccess, FileAction, NodeKind, Unwritable};

use super::Rule;

/// Mercurial's configuration file.
pub(super) const MERCURIAL: &str = "hgrc";

/// The rule for files of Mercurial and Jujutsu that make them run programs. Subversion has none.
pub(super) fn in_other_version_control(relative: &Path, access: &FileAccess) -> Option<Rule> {
    if access.action == FileAction::Remove {
        return None;
    }
    let ends = |names: &[&str]| {
        let last: Vec<_> = relative.iter().rev().take(names.len()).collect();
        last.iter().rev().zip(names).all(|(one, name)| *one == *name) && last.len() == names.len()
    };
    if ends(&[".hg", MERCURIAL]) {
        let is_file = matches!(
            access.action,
            FileAction::Write
                | FileAction::Create(NodeKind::File)
                | FileAction::RenameTo(NodeKind::File)
        );
        return Some(if is_file {
            Rule::NeedsReview
        } else {
            Rule::Refused(Unwritable::Protected)
        });
    }
    let is_jujutsus = ends(&[".jj", "repo", "config.toml"]) || ends(&[".jj", "repo"]);
    let is_made = matches!(access.action, FileAction::Create(NodeKind::Directory));
    (is_jujutsus && !is_made).then_some(Rule::Refused(Unwritable::Protected))
}

/// The lines of a Mercurial configuration that do more than name the origin of a clone.
pub(super) fn mercurial_dangers(new: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(new) else { return vec!["not text".to_owned()] };
    let (mut in_paths, mut dangers) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let is_plain = trimmed.is_empty() || trimmed.starts_with(['#', ';']);
        let is_default = in_paths
            && line.split_once('=').is_some_and(|(key, value)| {
                key.trim() == "default" && !key.starts_with(' ') && !value.contains("::")
            });
        if trimmed == "[paths]" && line.starts_with('[') {
            in_paths = true;
        } else if !is_plain && !is_default {
            dangers.push(format!("{trimmed} (line {})", number + 1));
        }
    }
    dangers
}
