//! One commit after another: what it makes of its files through us, and what is counted.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::super::report::Row;
use super::envelope;
use super::finding::Findings;
use super::judge::{Weight, judge};
use super::oracles::Oracles;
use super::ours::{Ours, Outcome};
use super::repository::{FileChange, Repository, Version};
use super::tree::{File, Tree};
use crate::error::Result;

/// How many commits older the files are that a patch is applied to.
const DRIFTS: [usize; 3] = [2, 8, 32];

/// Lines around each change, as git has them by default.
const CONTEXT: usize = 3;

/// Refusals that say what we do not do, or will not: whatever the files are.
const BY_DESIGN: [&str; 4] = ["protected", "unsupported", "too_large", "limit"];

pub(super) struct Trial {
    repository: String,
    ours: Ours,
    oracles: Oracles,
    findings: Findings,
    left_out: Row,
    with_all: Row,
    at_base: Row,
    bare: Row,
    again: Row,
    undone: Row,
    enveloped: Row,
    drifted: Vec<Row>,
}

/// A commit as far as a patch can say it.
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
            left_out: row("files left out, which are no text of UTF-8"),
            with_all: row("with what is no file of text"),
            at_base: row("on its own base"),
            bare: row("on its own base, without context"),
            again: row("sent again"),
            undone: row("taken back"),
            enveloped: row("as *** Begin Patch"),
            drifted: DRIFTS.map(|by| row(&format!("{by} commits too early"))).into(),
            repository: name,
        })
    }

    pub(super) fn rows(self) -> Vec<Row> {
        let mut rows = vec![self.left_out, self.with_all, self.at_base, self.bare, self.again];
        rows.extend([self.undone, self.enveloped]);
        rows.extend(self.drifted);
        rows
    }

    /// Tries one commit in all ways.
    pub(super) fn commit(&mut self, repository: &mut Repository, id: &str) -> Result<()> {
        self.try_commit(repository, id).map_err(|error| format!("commit {id}: {error}").into())
    }

    fn try_commit(&mut self, repository: &mut Repository, id: &str) -> Result<()> {
        let all = repository.changes(id, CONTEXT)?;
        let changes: Vec<&FileChange> =
            all.iter().filter(|change| self.can_be_said(change)).collect();
        let mut base = Tree::default();
        for version in all.iter().filter_map(|change| change.old.as_ref()) {
            insert(&mut base, repository, version)?;
        }
        if changes.len() < all.len() {
            self.with_all_of_it(id, &all, &base)?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let patch: Vec<&str> =
            changes.iter().filter_map(|change| std::str::from_utf8(&change.diff).ok()).collect();
        let commit = Commit { id, changes, base, patch: patch.concat() };
        let expected = commit.expected(repository, |_| true)?;
        if self.on_its_base(&commit, &expected)? {
            self.without_context(repository, &commit, &expected)?;
            self.sent_again(&commit, &expected)?;
        }
        self.as_envelope(repository, &commit)?;
        (0..DRIFTS.len()).try_for_each(|at| self.with_drift(repository, &commit, at))
    }

    /// Whether it is about text in regular files; else it is counted.
    fn can_be_said(&mut self, change: &FileChange) -> bool {
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
        self.left_out.tally.add(why);
        false
    }

    /// A diff that has more than text in files is refused as a whole. One of another encoding does not
    /// come through a door, since calls are JSON.
    fn with_all_of_it(&mut self, id: &str, all: &[FileChange], base: &Tree) -> Result<()> {
        let diff: Vec<u8> = all.iter().flat_map(|change| change.diff.iter().copied()).collect();
        let Ok(patch) = String::from_utf8(diff) else { return Ok(()) };
        self.ours.put(base)?;
        match self.ours.apply(&patch)?.0 {
            Outcome::Refused(refusal) => {
                self.with_all.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(_) => {
                self.with_all.tally.add("WRONG");
                self.with_all.violate("a part of it was applied", format!("commit {id}"));
            }
        }
        Ok(())
    }

    /// Applied to what it was made from, and taken back. Answers whether it could be.
    fn on_its_base(&mut self, commit: &Commit<'_>, expected: &Tree) -> Result<bool> {
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&commit.patch)?;
        let wrong = match &outcome {
            Outcome::Applied(tree) => tree.difference(expected),
            Outcome::Refused(refusal) if BY_DESIGN.contains(&refusal.kind.as_str()) => {
                self.at_base.tally.add(&format!("refused ({})", refusal.kind));
                return Ok(false);
            }
            Outcome::Refused(refusal) => Some(refusal.says.clone()),
        };
        if let Some(what) = wrong {
            self.at_base.tally.add("WRONG");
            let right = Outcome::Applied(expected.clone());
            let kept = [("ours", &outcome), ("right", &right)];
            let again = self.keep(commit, "base", &commit.base, &commit.patch, &kept)?;
            self.at_base.violate(what, again);
            return Ok(false);
        }
        self.at_base.tally.add("applied");
        if commit.base == *expected {
            return Ok(true);
        }
        match self.ours.undo()? {
            Outcome::Applied(tree) if tree == commit.base => self.undone.tally.add("as before"),
            outcome => {
                self.undone.tally.add("WRONG");
                let kept = [("undone", &outcome)];
                let again = self.keep(commit, "undo", &commit.base, &commit.patch, &kept)?;
                self.undone.violate("Undo does not give the files back", again);
            }
        }
        Ok(true)
    }

    /// The same diff with nothing around its changes: lines that come in have only a line number. What
    /// fits at other places too may be refused.
    fn without_context(
        &mut self,
        repository: &Repository,
        commit: &Commit<'_>,
        expected: &Tree,
    ) -> Result<()> {
        let all = repository.changes(commit.id, 0)?;
        let said = |change: &&FileChange| {
            commit.changes.iter().any(|said| said.old == change.old && said.new == change.new)
        };
        let diff = all.iter().filter(said).map(|change| String::from_utf8_lossy(&change.diff));
        let patch = diff.collect::<String>();
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&patch)?;
        match &outcome {
            Outcome::Applied(tree) if tree == expected => self.bare.tally.add("applied"),
            // Without context nothing shows which line endings are meant, and those of the file are taken.
            Outcome::Applied(tree)
                if tree.with_plain_endings() == expected.with_plain_endings() =>
            {
                self.bare.tally.add("applied, with the file's line endings");
            }
            Outcome::Refused(refusal) => {
                self.bare.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(_) => {
                self.bare.tally.add("WRONG");
                let again =
                    self.keep(commit, "bare", &commit.base, &patch, &[("ours", &outcome)])?;
                self.bare.violate("applied otherwise", again);
            }
        }
        Ok(())
    }

    /// Applied to what it has made. A patch whose lines fit once more may be a patch that is meant twice:
    /// that is counted, and is no error.
    fn sent_again(&mut self, commit: &Commit<'_>, expected: &Tree) -> Result<()> {
        self.ours.put(expected)?;
        let (outcome, reply) = self.ours.apply(&commit.patch)?;
        let known = reply["metadata"]["already_applied"] == Value::Bool(true);
        match &outcome {
            Outcome::Refused(refusal) => {
                self.again.tally.add(&format!("refused ({})", refusal.kind));
            }
            Outcome::Applied(tree) if tree == expected && known => self.again.tally.add("known"),
            Outcome::Applied(_) => {
                self.again.tally.add("applied twice");
                self.keep(commit, "again", expected, &commit.patch, &[("ours", &outcome)])?;
            }
        }
        Ok(())
    }

    fn as_envelope(&mut self, repository: &mut Repository, commit: &Commit<'_>) -> Result<()> {
        let Some(said) = envelope::of(&commit.changes, &commit.base) else { return Ok(()) };
        let expected = commit.expected(repository, |at| said.said.contains(&at))?;
        self.ours.put(&commit.base)?;
        let (outcome, _) = self.ours.apply(&said.text)?;
        let wrong = match &outcome {
            Outcome::Applied(tree) => tree.difference(&expected),
            Outcome::Refused(refusal)
                if !said.is_plain || BY_DESIGN.contains(&refusal.kind.as_str()) =>
            {
                self.enveloped.tally.add(&format!("refused ({})", refusal.kind));
                return Ok(());
            }
            Outcome::Refused(refusal) => Some(refusal.says.clone()),
        };
        let Some(what) = wrong else {
            self.enveloped.tally.add("applied");
            return Ok(());
        };
        self.enveloped.tally.add("WRONG");
        let right = Outcome::Applied(expected);
        let kept = [("ours", &outcome), ("right", &right)];
        let again = self.keep(commit, "envelope", &commit.base, &said.text, &kept)?;
        self.enveloped.violate(what, again);
        Ok(())
    }

    /// Applied to the files of an earlier commit, if any of them was another then.
    fn with_drift(
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
        let kept = [("ours", &ours), ("patch", &gnu), ("3way", &merged)];
        let what = format!("drift-{by}-{}", verdict.name.replace([' ', ':'], "-"));
        let again = self.keep(commit, &what, &base, &commit.patch, &kept)?;
        if verdict.weight == Weight::Wrong {
            self.drifted[at].violate(verdict.name, again);
        }
        Ok(())
    }

    fn keep(
        &mut self,
        commit: &Commit<'_>,
        what: &str,
        base: &Tree,
        patch: &str,
        outcomes: &[(&str, &Outcome)],
    ) -> Result<String> {
        let name = format!("{what}-{}", &commit.id[..12]);
        let path = self.findings.keep(&name, base, patch, outcomes)?;
        Ok(format!("commit {} of {}; {path}", commit.id, self.repository))
    }
}

impl Commit<'_> {
    /// The files as the commit leaves them, with those of its changes that `counts`.
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

    /// The files that the patch names, as they are among others.
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
