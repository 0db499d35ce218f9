//! The files that a server reads, as they were at a moment, to tell it what has changed since.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use toolcrib_fs::{BulkReader, Stamp};
use toolcrib_lsp::{FileChange, FileChangeKind};
use toolcrib_search::{Deadline, FileId, Listing, mtimes};

use super::definition::LanguageServer;

/// Files of a project. In larger ones, changes are not followed and nothing is checked.
const MAX_FILES: usize = 100_000;

/// Files that are examined between two checks of the time.
const FILES_PER_CHECK: usize = 2_000;

/// Changes that a server is told. After more of them it is started again.
const MAX_CHANGES: usize = 500;

/// A file that changed this shortly before it was examined may change again with the same time.
const RACY_NANOSECONDS: i128 = 100_000_000;

type Time = (i64, i64);

/// The files of a project that a server reads.
#[derive(Debug, Clone)]
pub(crate) struct ProjectFiles {
    root: PathBuf,
    sources: HashMap<PathBuf, Time>,
    /// Settings and installed packages: the server is started again when they change.
    environment: Vec<(PathBuf, Option<Time>)>,
    /// When they were examined, in nanoseconds since 1970.
    examined: i128,
}

/// What changed between two moments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProjectChanges {
    Files(Vec<FileChange>),
    /// Too much, or something that a server reads only at its start.
    Restart,
}

impl ProjectFiles {
    /// Examines the files of a listing. `None` if there are too many, if the listing is not complete, or if the time is
    /// over.
    pub(crate) fn examine(
        tree: &BulkReader,
        listing: &Listing,
        server: &LanguageServer,
        stop: &Deadline<'_>,
    ) -> Option<ProjectFiles> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let examined = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        let reads =
            |file: &FileId| listing.name(*file).to_str().is_some_and(|name| server.reads(name));
        let files: Vec<FileId> = listing.files().iter().copied().filter(reads).collect();
        if !listing.complete || files.len() > MAX_FILES {
            return None;
        }
        let mut times = Vec::with_capacity(files.len());
        for files in files.chunks(FILES_PER_CHECK) {
            if stop.is_over() {
                return None;
            }
            times.extend(mtimes(tree, listing, files));
        }
        let (mut sources, mut environment) = (HashMap::new(), Vec::new());
        for (file, time) in files.into_iter().zip(times) {
            let Some(time) = time else { continue };
            let path = tree.path().join(listing.path(file));
            if listing.name(file).to_str().is_some_and(|name| server.has_settings(name)) {
                environment.push((path, Some(time)));
            } else {
                sources.insert(path, time);
            }
        }
        environment.extend(server.environment.iter().map(|relative| {
            let path = tree.path().join(relative);
            let time = Stamp::at(&path).map(|stamp| stamp.modified);
            (path, time)
        }));
        Some(ProjectFiles { root: tree.path().to_owned(), sources, environment, examined })
    }

    /// What changed since an earlier moment.
    pub(crate) fn changes_since(&self, earlier: &ProjectFiles) -> ProjectChanges {
        if self.environment != earlier.environment {
            return ProjectChanges::Restart;
        }
        let mut changes = Vec::new();
        let mut add = |path: &Path, kind| changes.push(FileChange { path: path.to_owned(), kind });
        for (path, time) in &self.sources {
            match earlier.sources.get(path) {
                None => add(path, FileChangeKind::Created),
                Some(was) if was != time || earlier.is_racy(*was) => {
                    add(path, FileChangeKind::Changed);
                }
                Some(_) => {}
            }
        }
        for path in earlier.sources.keys().filter(|path| !self.sources.contains_key(*path)) {
            add(path, FileChangeKind::Removed);
        }
        let new = self.directories_missing_in(earlier, &changes, FileChangeKind::Created);
        let removed = earlier.directories_missing_in(self, &changes, FileChangeKind::Removed);
        changes.extend(new.into_iter().chain(removed));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        if changes.len() > MAX_CHANGES {
            ProjectChanges::Restart
        } else {
            ProjectChanges::Files(changes)
        }
    }

    /// The directories above files with this kind of change that have no sources in `other`. Some servers resolve
    /// imports by directories, and notice a new package only by its directory.
    fn directories_missing_in(
        &self,
        other: &ProjectFiles,
        changes: &[FileChange],
        kind: FileChangeKind,
    ) -> Vec<FileChange> {
        let mut changed = changes.iter().filter(|change| change.kind == kind).peekable();
        if changed.peek().is_none() {
            return Vec::new();
        }
        let is_inside = |path: &&Path| *path != self.root && path.starts_with(&self.root);
        let above = |path| Path::ancestors(path).skip(1).take_while(is_inside);
        let known: HashSet<&Path> = other.sources.keys().flat_map(|path| above(path)).collect();
        let missing: HashSet<&Path> = changed
            .flat_map(|change| above(&change.path))
            .filter(|directory| !known.contains(directory))
            .collect();
        let directory = |path: &Path| FileChange { path: path.to_owned(), kind };
        missing.into_iter().map(directory).collect()
    }

    fn is_racy(&self, (seconds, nanoseconds): Time) -> bool {
        let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        time > self.examined - RACY_NANOSECONDS
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use toolcrib_fs::{Root, RootMode, Workspace};
    use toolcrib_search::{Walk, walk};

    use super::*;

    fn files(sources: &[(&str, Time)], environment: &[(&str, Option<Time>)]) -> ProjectFiles {
        ProjectFiles {
            root: "root".into(),
            sources: sources.iter().map(|(path, time)| (PathBuf::from(path), *time)).collect(),
            environment: environment.iter().map(|(path, time)| (path.into(), *time)).collect(),
            examined: 1_000_000_000_000,
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test makes a file")]
    fn files_are_examined_until_the_time_is_over() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("a.py"), "").unwrap();
        let root = Root::open(top.path(), RootMode::ReadWrite).unwrap();
        let workspace = Workspace::new(vec![root]).unwrap();
        let (tree, _) = workspace.tree_of(&top.path().canonicalize().unwrap()).unwrap();
        let server = LanguageServer::known().into_iter().find(|server| server.reads("a.py"));
        let server = server.unwrap();
        let (now, own) = (Instant::now(), Vec::new());
        let later = Deadline::new(now + Duration::from_secs(600), &|| false);
        let walked = Walk {
            tree: &tree,
            start: Path::new(""),
            ignored: false,
            named: &[],
            own: &own,
            stop: &later,
        };
        let listing = walk(&walked);
        let examined = ProjectFiles::examine(&tree, &listing, &server, &later).unwrap();
        assert_eq!(examined.sources.len(), 1);
        let over = Deadline::new(now, &|| false);
        assert!(ProjectFiles::examine(&tree, &listing, &server, &over).is_none());
    }

    #[test]
    fn changes_are_found() {
        let was = files(&[("a", (1, 0)), ("b", (1, 0)), ("c", (1, 0)), ("now", (1_000, 0))], &[]);
        let is = files(&[("a", (1, 0)), ("b", (2, 0)), ("d", (1, 0)), ("now", (1_000, 0))], &[]);
        let ProjectChanges::Files(changes) = is.changes_since(&was) else { panic!() };
        let found: Vec<(&str, FileChangeKind)> =
            changes.iter().map(|one| (one.path.to_str().unwrap(), one.kind)).collect();
        let expected = [
            ("b", FileChangeKind::Changed),
            ("c", FileChangeKind::Removed),
            ("d", FileChangeKind::Created),
            ("now", FileChangeKind::Changed),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn new_and_removed_directories_are_named() {
        let was = files(&[("root/a.py", (1, 0)), ("root/old/in/b.py", (1, 0))], &[]);
        let is = files(&[("root/a.py", (1, 0)), ("root/pkg/c.py", (1, 0))], &[]);
        let ProjectChanges::Files(changes) = is.changes_since(&was) else { panic!() };
        let found: Vec<(&str, FileChangeKind)> =
            changes.iter().map(|one| (one.path.to_str().unwrap(), one.kind)).collect();
        let expected = [
            ("root/old", FileChangeKind::Removed),
            ("root/old/in", FileChangeKind::Removed),
            ("root/old/in/b.py", FileChangeKind::Removed),
            ("root/pkg", FileChangeKind::Created),
            ("root/pkg/c.py", FileChangeKind::Created),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn changed_settings_need_a_new_start() {
        let was = files(&[], &[("tsconfig.json", Some((1, 0))), ("node_modules", None)]);
        assert_eq!(was.changes_since(&was), ProjectChanges::Files(Vec::new()));
        let is = files(&[], &[("tsconfig.json", Some((1, 0))), ("node_modules", Some((1, 0)))]);
        assert_eq!(is.changes_since(&was), ProjectChanges::Restart);
    }
}
