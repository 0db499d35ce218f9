//! Tests ApplyPatch on one commit after another and counts the outcomes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use toolcrib_devtools::error::Result;

use super::super::report::Row;
use super::envelope;
use super::finding::Findings;
use super::judge::{Weight, judge};
use super::oracles::Oracles;
use super::ours::{Ours, Outcome};
use super::repository::{FileChange, Repository, Version};
use super::tree::{File, Tree};

/// A patch is also applied to files that are this many commits older.
const DRIFTS: [usize; 3] = [2, 8, 32];

/// The number of context lines, which is git's default.
const CONTEXT: usize = 3;

/// Error kinds of deliberate refusals, which do not depend on the files.
const DELIBERATE_REFUSALS: [&str; 4] = ["protected", "unsupported", "too_large", "limit"];

pub(super) struct Trial {
    repository: String,
    ours: Ours,
    oracles: Oracles,
    findings: Findings,
    unsupported: Row,
    with_unsupported: Row,
    on_base: Row,
    no_context: Row,
    repeated: Row,
    undo: Row,
    envelope: Row,
    drifted: Vec<Row>,
}

/// The part of a commit that a patch can express.
struct Commit<'a> {
    id: &'a str,
    changes: Vec<&'a FileChange>,
    base: Tree,
    patch: String,
}

impl Trial {
    pub(super) fn new(binary: &Path, repository: &Repository) -> Result<Trial> {
        let name = repository.name();
        let row = |what: &str| Row::new("commits", format!("{name}: {what}"));
        Ok(Trial {
            ours: Ours::new(binary)?,
            oracles: Oracles::new(repository)?,
            findings: Findings::about(&name)?,
            unsupported: row("unsupported files, which are not UTF-8 text"),
            with_unsupported: row("with unsupported files"),
            on_base: row("on its own base"),
            no_context: row("on its own base, without context"),
            repeated: row("applied again"),
            undo: row("undone"),
            envelope: row("as *** Begin Patch"),
            drifted: DRIFTS.map(|by| row(&format!("{by} commits earlier"))).into(),
            repository: name,
        })
    }

    pub(super) fn rows(self) -> Vec<Row> {
        let mut rows = vec![
            self.unsupported,
            self.with_unsupported,
            self.on_base,
            self.no_context,
            self.repeated,
        ];
        rows.extend([self.undo, self.envelope]);
        rows.extend(self.drifted);
        rows
    }

    /// Tests one commit in all ways.
    pub(super) fn commit(&mut self, repository: &mut Repository, id: &str) -> Result<()> {
        self.try_commit(repository, id).map_err(|error| format!("commit {id}: {error}").into())
    }

    fn try_commit(&mut self, repository: &mut Repository, id: &str) -> Result<()> {
        let all = repository.changes(id, CONTEXT)?;
        let changes: Vec<&FileChange> =
            all.iter().filter(|change| self.is_supported(change)).collect();
        let mut base = Tree::default();
        for version in all.iter().filter_map(|change| change.old.as_ref()) {
            insert(&mut base, repository, version)?;
        }
        if changes.len() < all.len() {
            self.check_unsupported(id, &all, &base)?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let patch: Vec<&str> =
            changes.iter().filter_map(|change| std::str::from_utf8(&change.diff).ok()).collect();
        let commit = Commit { id, changes, base, patch: patch.concat() };
        let expected = commit.expected(repository, |_| true)?;
        if self.check_base(&commit, &expected)? {
            self.check_without_context(repository, &commit, &expected)?;
            self.check_repeated(&commit, &expected)?;
        }
        self.check_envelope(repository, &commit)?;
        (0..DRIFTS.len()).try_for_each(|at| self.check_drift(repository, &commit, at))
    }

    /// Whether a change is text in regular files. Counts the others.
    fn is_supported(&mut self, change: &FileChange) -> bool {
        let mut versions = [&change.old, &change.new].into_iter().flatten();
        let starts = |line: &[u8]| line.starts_with(b"Binary files ");
        let why = if versions.any(|version| !version.is_file()) {
            "link or submodule"
        } else if change.diff.split(|byte| *byte == b'\n').any(starts) {
            "binary"
        } else if std::str::from_utf8(&change.diff).is_err() {
            "another encoding"
        } else {
            return true;
        };
        self.unsupported.tally.add(why);
        false
    }

    /// A diff with more than text files must be refused as a whole. A diff in another encoding cannot be sent, since
    /// calls are JSON.
    fn check_unsupported(&mut self, id: &str, all: &[FileChange], base: &Tree) -> Result<()> {
        let diff: Vec<u8> = all.iter().flat_map(|change| change.diff.iter().copied()).collect();
        let Ok(patch) = String::from_utf8(diff) else { return Ok(()) };
        self.ours.put(base)?;
        match self.ours.apply(&patch)?.0 {
            Outcome::Refused(refusal) => {
                self.with_unsupported.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(_) => {
                self.with_unsupported.tally.add("WRONG");
                self.with_unsupported.violate("a part of it was applied", format!("commit {id}"));
            }
        }
        Ok(())
    }

    /// Applies the patch to its base and undoes it. Returns whether it was applied.
    fn check_base(&mut self, commit: &Commit<'_>, expected: &Tree) -> Result<bool> {
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&commit.patch)?;
        let wrong = match &outcome {
            Outcome::Applied(tree) => tree.difference(expected),
            Outcome::Refused(refusal) if DELIBERATE_REFUSALS.contains(&refusal.kind.as_str()) => {
                self.on_base.tally.add(&format!("refused ({})", refusal.kind));
                return Ok(false);
            }
            Outcome::Refused(refusal) => Some(refusal.message.clone()),
        };
        if let Some(what) = wrong {
            self.on_base.tally.add("WRONG");
            let right = Outcome::Applied(expected.clone());
            let outcomes = [("ours", &outcome), ("right", &right)];
            let again = self.save(commit, "base", &commit.base, &commit.patch, &outcomes)?;
            self.on_base.violate(what, again);
            return Ok(false);
        }
        self.on_base.tally.add("applied");
        if commit.base == *expected {
            return Ok(true);
        }
        match self.ours.undo()? {
            Outcome::Applied(tree) if tree == commit.base => self.undo.tally.add("as before"),
            outcome => {
                self.undo.tally.add("WRONG");
                let outcomes = [("undo", &outcome)];
                let again = self.save(commit, "undo", &commit.base, &commit.patch, &outcomes)?;
                self.undo.violate("Undo does not restore the files", again);
            }
        }
        Ok(true)
    }

    /// Applies the diff without context lines: added lines have only a line number. An ambiguous hunk may be refused.
    fn check_without_context(
        &mut self,
        repository: &Repository,
        commit: &Commit<'_>,
        expected: &Tree,
    ) -> Result<()> {
        let all = repository.changes(commit.id, 0)?;
        let is_included = |change: &&FileChange| {
            commit.changes.iter().any(|other| other.old == change.old && other.new == change.new)
        };
        let diff =
            all.iter().filter(is_included).map(|change| String::from_utf8_lossy(&change.diff));
        let patch = diff.collect::<String>();
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&patch)?;
        match &outcome {
            Outcome::Applied(tree) if tree == expected => self.no_context.tally.add("applied"),
            // Without context the intended line endings are not known, and those of the file are used.
            Outcome::Applied(tree)
                if tree.with_plain_endings() == expected.with_plain_endings() =>
            {
                self.no_context.tally.add("applied, with the file's line endings");
            }
            Outcome::Refused(refusal) => {
                self.no_context.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(_) => {
                self.no_context.tally.add("WRONG");
                let again =
                    self.save(commit, "no_context", &commit.base, &patch, &[("ours", &outcome)])?;
                self.no_context.violate("applied with another result", again);
            }
        }
        Ok(())
    }

    /// Applies the patch to its own result. A patch that fits again may be meant to be applied twice, so this is
    /// counted and is not an error.
    fn check_repeated(&mut self, commit: &Commit<'_>, expected: &Tree) -> Result<()> {
        self.ours.put(expected)?;
        let (outcome, reply) = self.ours.apply(&commit.patch)?;
        let known = reply["metadata"]["already_applied"] == Value::Bool(true);
        match &outcome {
            Outcome::Refused(refusal) => {
                self.repeated.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(tree) if tree == expected && known => self.repeated.tally.add("known"),
            Outcome::Applied(_) => {
                self.repeated.tally.add("applied twice");
                self.save(commit, "again", expected, &commit.patch, &[("ours", &outcome)])?;
            }
        }
        Ok(())
    }

    fn check_envelope(&mut self, repository: &mut Repository, commit: &Commit<'_>) -> Result<()> {
        let Some(patch) = envelope::of(&commit.changes, &commit.base) else { return Ok(()) };
        let expected = commit.expected(repository, |at| patch.included.contains(&at))?;
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&patch.text)?;
        let wrong = match &outcome {
            Outcome::Applied(tree) => tree.difference(&expected),
            Outcome::Refused(refusal)
                if !patch.is_plain || DELIBERATE_REFUSALS.contains(&refusal.kind.as_str()) =>
            {
                self.envelope.tally.add(&format!("refused ({})", refusal.kind));
                return Ok(());
            }
            Outcome::Refused(refusal) => Some(refusal.message.clone()),
        };
        let Some(what) = wrong else {
            self.envelope.tally.add("applied");
            return Ok(());
        };
        self.envelope.tally.add("WRONG");
        let right = Outcome::Applied(expected);
        let outcomes = [("ours", &outcome), ("right", &right)];
        let again = self.save(commit, "envelope", &commit.base, &patch.text, &outcomes)?;
        self.envelope.violate(what, again);
        Ok(())
    }

    /// Applies the patch to the files of an earlier commit, if one of them differs.
    fn check_drift(
        &mut self,
        repository: &mut Repository,
        commit: &Commit<'_>,
        at: usize,
    ) -> Result<()> {
        let by = DRIFTS[at];
        let earlier = format!("{}~{}", commit.id, by + 1);
        let Some(files) = repository.files(&earlier)? else { return Ok(()) };
        let versions = commit.versions_in(&files);
        let mut base = Tree::default();
        for version in &versions {
            insert(&mut base, repository, version)?;
        }
        if base == commit.base {
            return Ok(());
        }
        self.ours.put(&base)?;
        let (ours, _) = self.ours.apply(&commit.patch)?;
        let gnu = self.oracles.gnu_patch(&base, commit.patch.as_bytes())?;
        let merged = self.oracles.three_way(&base, &versions, commit.patch.as_bytes())?;
        let verdict = judge(&ours, [&gnu, &merged]);
        self.drifted[at].tally.add(&verdict.name);
        if verdict.weight == Weight::Fine {
            return Ok(());
        }
        let outcomes = [("ours", &ours), ("patch", &gnu), ("3way", &merged)];
        let what = format!("drift-{by}-{}", verdict.name.replace([' ', ':'], "-"));
        let again = self.save(commit, &what, &base, &commit.patch, &outcomes)?;
        if verdict.weight == Weight::Wrong {
            self.drifted[at].violate(verdict.name, again);
        }
        Ok(())
    }

    fn save(
        &mut self,
        commit: &Commit<'_>,
        what: &str,
        base: &Tree,
        patch: &str,
        outcomes: &[(&str, &Outcome)],
    ) -> Result<String> {
        let name = format!("{what}-{}", &commit.id[..12]);
        let path = self.findings.save(&name, base, patch, outcomes)?;
        Ok(format!("commit {} of {}; {path}", commit.id, self.repository))
    }
}

impl Commit<'_> {
    /// The files after the changes for which `counts` is true.
    fn expected(
        &self,
        repository: &mut Repository,
        counts: impl Fn(usize) -> bool,
    ) -> Result<Tree> {
        let mut tree = self.base.clone();
        let changes = || self.changes.iter().enumerate().filter(|(at, _)| counts(*at));
        for (_, change) in changes() {
            if let Some(old) = change.old.as_ref().filter(|_| b"DR".contains(&change.status)) {
                tree.0.remove(&old.path);
            }
        }
        for (_, change) in changes() {
            if let Some(new) = &change.new {
                insert(&mut tree, repository, new)?;
            }
        }
        Ok(tree)
    }

    /// The versions of the patch's files among `files`.
    fn versions_in(&self, files: &BTreeMap<Vec<u8>, Version>) -> Vec<Version> {
        let named = self.changes.iter().flat_map(|change| [&change.old, &change.new]);
        let there = named.flatten().filter_map(|version| files.get(&version.path));
        let there: BTreeMap<&[u8], &Version> = there
            .filter(|version| version.is_file())
            .map(|version| (version.path.as_slice(), version))
            .collect();
        there.into_values().cloned().collect()
    }
}

fn insert(tree: &mut Tree, repository: &mut Repository, version: &Version) -> Result<()> {
    if version.is_file() {
        let bytes = repository.read(version)?;
        let file = File { executable: version.is_executable(), bytes };
        tree.0.insert(version.path.clone(), file);
    }
    Ok(())
}
