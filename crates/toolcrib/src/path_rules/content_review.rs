//! Review of the content that commands write to protected files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toolcrib_fs::BulkReader;
use toolcrib_policy::git_sequencer::{self, SequencerFile};

use super::{PathRules, VERSION_CONTROL};
use crate::git::directory::{self, Part};
use crate::path_rules::known_content::RepositoryLocations;
use crate::path_rules::other_version_control::{MERCURIAL, mercurial_dangers};

/// Mode of a restored file whose own mode is not known.
const USUAL_MODE: u32 = 0o644;

/// Why a content is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Danger {
    /// These configuration variables can make programs execute code.
    Variables(Vec<String>),
    /// The file makes programs execute code, and the content is not the user's own.
    Unknown,
}

impl PathRules {
    /// Why the new content of a reviewed file is rejected. `None` if it is accepted.
    pub(crate) fn danger(&self, path: &Path, new: &[u8], is_new: bool) -> Option<Danger> {
        let place = self.workspace.tree_of(path);
        let (tree, relative) = place.or_else(|| self.caches.as_ref()?.tree_of(path))?;
        // Other protected files are not git configurations, whatever is beside them.
        let pattern = self.protection.find(&relative);
        let is_other = pattern.is_some_and(|pattern| !VERSION_CONTROL.contains(&pattern));
        let part = directory::part_of(&tree, &relative);
        let is_configuration = matches!(part, Some((_, Part::Configuration | Part::Sequence(_))))
            || relative.file_name().is_some_and(|name| name == MERCURIAL);
        // The directory is about to become a git directory with this configuration.
        if is_new || (is_configuration && !is_other) {
            return self.danger_in(&tree, &relative, new, is_new);
        }
        if !self.known.allows(self.repository_locations(), &tree, &relative, new) {
            return Some(Danger::Unknown);
        }
        if let Some(old) = directory::read(&tree, &relative) {
            self.known.remember_removed(path, &old, USUAL_MODE);
        }
        self.known.accept(path, new);
        None
    }

    /// Whether a protected file may be removed. `mode` is its mode if the file is captured, so that Undo can
    /// restore it. Otherwise a commit of the user must contain it.
    pub(crate) fn may_be_removed(&self, path: &Path, mode: Option<u32>) -> bool {
        let Some((tree, relative)) = self.workspace.tree_of(path) else { return false };
        let content = directory::read(&tree, &relative);
        let is_known = |content: &Vec<u8>| {
            self.known.accepts_anywhere(content)
                || self.known.allows(self.repository_locations(), &tree, &relative, content)
        };
        let may = mode.is_some() && self.protection.may_be_removed(&relative)
            || content.as_ref().is_some_and(is_known);
        if let Some(content) = content.filter(|_| may) {
            self.known.remember_removed(path, &content, mode.unwrap_or(USUAL_MODE));
        }
        may
    }

    /// Whether the content of a file is the user's own: a commit from before the commands has it at this path, or the
    /// protected file had it when a command removed it. Git in the sandbox may write the same contents.
    pub(crate) fn is_users_content(&self, path: &Path, content: &[u8]) -> bool {
        let Some((tree, relative)) = self.workspace.tree_of(path) else { return false };
        let part = directory::part_of(&tree, &relative);
        part.is_none_or(|(_, part)| part == Part::Structure)
            && self.known.allows(self.repository_locations(), &tree, &relative, content)
    }

    /// Whether a file has content of the user's own.
    pub(crate) fn has_users_content(&self, path: &Path) -> bool {
        let place = self.workspace.tree_of(path);
        let content = place.and_then(|(tree, relative)| directory::read(&tree, &relative));
        content.is_some_and(|content| self.is_users_content(path, &content))
    }

    /// Content and mode of a protected file that a command has removed.
    pub(crate) fn removed(&self, path: &Path) -> Option<(Vec<u8>, u32)> {
        self.known.removed(path)
    }

    fn repository_locations(&self) -> RepositoryLocations<'_> {
        RepositoryLocations {
            workspace: &self.workspace,
            caches: self.caches.as_ref(),
            hidden: &self.hidden,
        }
    }

    /// Like [`PathRules::danger`] for a configuration, by its path relative to the root of a tree.
    pub(crate) fn danger_in(
        &self,
        tree: &BulkReader,
        relative: &Path,
        new: &[u8],
        is_new: bool,
    ) -> Option<Danger> {
        self.configured.forget();
        let found = if relative.file_name().is_some_and(|name| name == MERCURIAL) {
            mercurial_dangers(new)
        } else {
            let old = directory::read(tree, relative).filter(|_| !is_new);
            match directory::part_of(tree, relative) {
                Some((directory, Part::Sequence(kind))) => {
                    let known = self.known_programs(tree.path().join(directory), kind, old);
                    let programs = git_sequencer::programs(kind, new);
                    programs.into_iter().filter(|program| !known.contains(program)).collect()
                }
                _ => directory::dangerous_variables(relative, old.as_deref(), new),
            }
        };
        (!found.is_empty()).then_some(Danger::Variables(found))
    }

    /// The programs that a stopped rebase has contained so far. Git removes a step from the list before it runs
    /// it, and restores the step if it fails.
    fn known_programs(
        &self,
        directory: PathBuf,
        kind: SequencerFile,
        old: Option<Vec<u8>>,
    ) -> HashSet<String> {
        let mut all = self.programs.lock();
        let known = all.entry(directory).or_default();
        known.extend(git_sequencer::programs(kind, &old.unwrap_or_default()));
        known.clone()
    }
}
