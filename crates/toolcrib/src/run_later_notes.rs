//! Reports, once per session and file, that a written file will be executed later outside the sandbox.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_policy::runs_later;

use crate::phrases::first_of;
use crate::reachable_paths::Paths;
use crate::reply::Reply;
use crate::session::Session;

/// Files named in one note, and notes of one call.
const MAX_NAMED_FILES: usize = 5;
const MAX_NOTES: usize = 5;

/// Files whose content is searched in commits in vain. Such a search can read the whole history.
const MAX_FRUITLESS_SEARCHES: u32 = 3;

/// Files listed in the metadata.
const MAX_LISTED_FILES: usize = 100;

/// Files that a later build or test executes and that no note has named yet.
#[derive(Debug, Default)]
pub(crate) struct RunLater {
    /// Reasons, each with its files.
    reasons: Vec<(String, Vec<String>)>,
}

impl RunLater {
    /// Selects the files to name now among those that a command wrote. Git also writes content of the user's commits,
    /// which is no news.
    pub(crate) fn of_command<'a>(
        paths: &Paths,
        session: &Session,
        written: impl IntoIterator<Item = &'a Path>,
    ) -> RunLater {
        let mut searches = MAX_FRUITLESS_SEARCHES;
        RunLater::among(paths, session, written, |path| {
            let is_users = searches > 0 && paths.path_rules.has_users_content(path);
            searches -= u32::from(searches > 0 && !is_users);
            !is_users
        })
    }

    /// Selects the written files to name now.
    fn among<'a>(
        paths: &Paths,
        session: &Session,
        written: impl IntoIterator<Item = &'a Path>,
        mut is_news: impl FnMut(&Path) -> bool,
    ) -> RunLater {
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for path in written {
            let reason = runs_later(path).filter(|_| !session.is_named(path) && is_news(path));
            let Some(reason) = reason.filter(|_| session.mark_named(path)) else {
                continue;
            };
            let shown = paths.show(session.directory(), path);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, files)) => files.push(shown),
                None => reasons.push((reason, vec![shown])),
            }
        }
        RunLater { reasons }
    }

    /// One sentence per reason.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |(reason, files): &(String, Vec<String>)| {
            let reason = if files.len() > 1 { of_several(reason) } else { reason.clone() };
            format!("{}: {reason}", first_of(files, MAX_NAMED_FILES, String::clone))
        };
        self.reasons.iter().take(MAX_NOTES).map(note).collect()
    }

    pub(crate) fn facts(&self) -> Vec<(&'static str, Value)> {
        let files = self.reasons.iter().flat_map(|(_, files)| files).take(MAX_LISTED_FILES);
        let files: Vec<&str> = files.map(String::as_str).collect();
        if files.is_empty() { Vec::new() } else { vec![("runs_later", files.into())] }
    }
}

/// A reason about one file, for several files.
fn of_several(reason: &str) -> String {
    match (reason.strip_prefix("its "), reason.strip_prefix("it runs ")) {
        (Some(rest), _) => format!("their {rest}"),
        (None, Some(rest)) => format!("they run {rest}"),
        (None, None) => reason.to_owned(),
    }
}

/// Adds the notes to the reply of a tool that wrote these files.
pub(crate) fn told(
    paths: &Paths,
    session: &Session,
    mut written: Vec<PathBuf>,
    reply: Reply,
) -> Reply {
    written.sort();
    let later = RunLater::among(paths, session, written.iter().map(PathBuf::as_path), |_| true);
    let lines = later.notes().into_iter().map(|note| format!("[{note}]\n")).collect::<String>();
    reply.with_lines(&lines).with_all(later.facts())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_agree_with_the_number_of_files() {
        for (one, several) in [
            ("its steps run outside", "their steps run outside"),
            ("it runs outside", "they run outside"),
        ] {
            assert_eq!(of_several(one), several);
        }
    }
}
