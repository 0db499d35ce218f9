//! Describes file contents that were not written because they can make programs run code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_text::visible_name;

use crate::path_rules::Danger;
use crate::phrases::{counted_with_verb, first_of};
use crate::sandbox_refusal_notes::MAX_LINES;

/// Settings, or files, that one line names.
const NAMED: usize = 5;

/// Without its list of steps, git can only abort the rebase.
const REBASE_HINT: &str =
    ". `git rebase --abort` ends the rebase; run the commands one by one, without --exec";

/// At most [`MAX_LINES`] lines: one for the settings of each file, and one for all files with unknown content. `show` is
/// how replies show a path.
pub(super) fn notes(refused: &[(PathBuf, Danger)], show: impl Fn(&Path) -> String) -> Vec<String> {
    let mut settings = BTreeMap::<&Path, Vec<&String>>::new();
    let mut unknown = Vec::new();
    for (path, danger) in refused {
        match danger {
            Danger::Variables(variables) => {
                let known = settings.entry(path).or_default();
                for variable in variables {
                    if !known.contains(&variable) {
                        known.push(variable);
                    }
                }
            }
            Danger::Unknown => unknown.push(show(path)),
        }
    }
    // Each with its number of files.
    let mut notes: Vec<(String, usize)> = settings
        .iter()
        .map(|(path, variables)| (settings_note(path, &show(path), variables), 1))
        .collect();
    notes.extend(unknown_note(&unknown).map(|note| (note, unknown.len())));
    let shown = if notes.len() > MAX_LINES { MAX_LINES - 1 } else { notes.len() };
    let more: usize = notes[shown..].iter().map(|(_, files)| files).sum();
    let more = (more > 0).then(|| {
        let files = counted_with_verb(more as u64, "more file", ("was", "were"));
        format!("writes to {files} refused, for the same reason")
    });
    notes.into_iter().take(shown).map(|(note, _)| note).chain(more).collect()
}

fn settings_note(path: &Path, shown: &str, variables: &[&String]) -> String {
    let hint = if is_rebase_file(path) {
        Some(REBASE_HINT.to_owned())
    } else {
        for_one_command(variables)
    };
    let hint = hint.unwrap_or_default();
    let variables = first_of(variables, NAMED, |one| visible_name(one.as_bytes()));
    format!(
        "a write to {shown} was refused, because this can make programs run code: {variables}{hint}"
    )
}

fn unknown_note(unknown: &[String]) -> Option<String> {
    let first = unknown.first()?;
    Some(format!(
        "not written, because programs run its content and no commit older than this session has it: {}. \
         The old content stays. The user can write it outside: git checkout -- {first}",
        first_of(unknown, NAMED, String::clone)
    ))
}

/// Whether it is a file of an unfinished rebase, such as the list of its steps.
fn is_rebase_file(path: &Path) -> bool {
    path.iter().any(|name| name == "rebase-merge" || name == "rebase-apply")
}

/// How to set a git variable for one command, if it is one.
fn for_one_command(variables: &[&String]) -> Option<String> {
    let name = variables.first()?.split(" (line ").next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_variable = name.contains('.') && name.chars().all(is_name);
    let (name, them) = if variables.len() == 1 { (name, "it") } else { ("NAME", "them") };
    is_variable
        .then(|| format!(". For one command, use `git -c {name}=VALUE`. The user can set {them}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(refused: &[(PathBuf, Danger)]) -> Vec<String> {
        notes(refused, |path| path.display().to_string())
    }

    fn variables(path: &str, names: &[&str]) -> (PathBuf, Danger) {
        (path.into(), Danger::Variables(names.iter().map(|&name| name.to_owned()).collect()))
    }

    #[test]
    fn settings_of_a_file_share_a_line() {
        let refused = [
            variables(".git/config", &["core.editor"]),
            variables(".git/config", &["core.editor"]),
            variables(".git/config", &["core.pager"]),
        ];
        assert_eq!(
            shown(&refused),
            [
                "a write to .git/config was refused, because this can make programs run code: core.editor, core.pager. For one command, use `git -c NAME=VALUE`. The user can set them"
            ]
        );
    }

    #[test]
    fn all_files_are_named_or_counted() {
        let mut refused: Vec<_> =
            (0..6).map(|number| variables(&format!("{number}/config"), &["core.editor"])).collect();
        refused.push((".envrc".into(), Danger::Unknown));
        let all = shown(&refused);
        assert_eq!(all.len(), MAX_LINES);
        assert_eq!(all[2], "writes to 5 more files were refused, for the same reason");
        assert_eq!(shown(&refused[4..]).len(), 3);
        assert_eq!(shown(&[]), Vec::<String>::new());
    }
}
