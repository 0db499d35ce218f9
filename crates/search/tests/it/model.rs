//! A tree is changed at random, in as many ways as possible, between two searches with the same caches. Each
//! result is compared with that of a fresh walk and a full search.
//!
//! `TOOLCRIB_STEPS` sets the number of changes, `TOOLCRIB_SEED` the seed. The full run is `cargo xtask
//! torture index`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use toolcrib_search::{IndexSettings, ListingCaches, PatternOptions, walk};

use crate::indexed::{ALWAYS, PartialDecoder, search};
use crate::random::Random;
use crate::tree::TestTree;

/// Number of changes in an ordinary test run.
const STEPS: usize = 1_200;

/// Length of a sequence of changes that watches alone can report.
const QUIET_CHANGES: usize = 40;

/// Maximum number of changes between two searches, and between two builds.
const MAX_CHANGES_BETWEEN: usize = 4;
const CHANGES_BETWEEN_BUILDS: usize = 100;

const NAMES: [&str; 9] = ["a", "b", "src", "x.rs", "y.rs", "z.log", ".hidden", "c.txt", "deep"];
const WORDS: [&str; 8] = ["word", "other", "Word", "needle", "haystack", "w0rd", "漢字", "end"];
const RULES: [&str; 7] = ["*.log\n", "src/\n", "/a\n", "b/**\n!b/x.rs\n", "!*.log\n", "x.rs\n", ""];
const PATTERNS: [&str; 9] = [
    "word",
    "other",
    "needle|haystack",
    "w.rd",
    "ne+dle",
    "漢字",
    r"\bend$",
    "wo",
    r"word\s+other",
];

pub(crate) fn steps() -> usize {
    std::env::var("TOOLCRIB_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS)
}

fn seed() -> u64 {
    std::env::var("TOOLCRIB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[test]
fn a_changing_tree_is_searched_in_its_current_state() {
    run(ListingCaches::new(ALWAYS, None), steps(), seed());
}

#[test]
fn a_tree_without_an_index_is_searched_in_its_current_state() {
    run(
        ListingCaches::new(
            IndexSettings { least_files: u64::MAX, least_files_often: u64::MAX, ..ALWAYS },
            None,
        ),
        steps() / 10,
        2,
    );
}

pub(crate) fn run(caches: ListingCaches, steps: usize, seed: u64) {
    let tree_dir = TestTree::new();
    let (top, random) = (tree_dir.path().to_owned(), Random::new(seed));
    let mut model = Model { tree_dir: &tree_dir, top, random, changes: 0 };
    let mut history: Vec<String> = Vec::new();
    let (mut step, mut next_build) = (0, 5);
    while step < steps {
        for _ in 0..=model.random.below(MAX_CHANGES_BETWEEN) {
            let done = model.change().unwrap_or_else(|error| format!("nothing: {error}"));
            history.push(done);
            step += 1;
        }
        history.drain(..history.len().saturating_sub(60));
        let pattern = model.random.one_of(&PATTERNS);
        let (ignore_case, multiline) = (model.random.below(4) == 0, model.random.below(4) == 0);
        let options = PatternOptions { pattern, literal: false, ignore_case, multiline };
        let expected = search(&tree_dir, options, None);
        let result = search(&tree_dir, options, Some(&caches));
        assert_eq!(result, expected, "step {step}: {options:?} after\n{}", history.join("\n"));
        if step >= next_build {
            next_build = step + CHANGES_BETWEEN_BUILDS;
            tree_dir.with_listing(Some(&caches), |listing| {
                caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
            });
        }
    }
}

struct Model<'a> {
    tree_dir: &'a TestTree,
    top: PathBuf,
    random: Random,
    changes: usize,
}

impl Model<'_> {
    /// Makes a random change. Returns its description.
    fn change(&mut self) -> io::Result<String> {
        let path =
            if self.random.below(3) == 0 { self.random_path() } else { self.existing_path()? };
        let other = self.random_path();
        let paths = format!("{} {}", path.display(), other.display());
        self.changes += 1;
        let what = match self.random.below(20) {
            // These invalidate the whole cache, so they do not occur in every period.
            10 | 13 | 14 | 16 if !(self.changes / QUIET_CHANGES).is_multiple_of(4) => {
                self.append(&path)?
            }
            0..=3 => self.write(&path)?,
            4 => self.append(&path)?,
            5 => self.edit_keeping_mtime(&path)?,
            6 => self.replace(&path)?,
            7 => fs::rename(&path, &other).map(|()| "rename")?,
            8 => fs::remove_file(&path).map(|()| "remove")?,
            9 => fs::create_dir_all(&other).map(|()| "mkdir")?,
            10 => fs::remove_dir_all(&path).map(|()| "rmdir")?,
            11 => self.swap(&path, &other)?,
            12 => self.link(&path, &other)?,
            13 | 14 => self.rules(&path)?,
            15 => symlink(&path, &other).map(|()| "symlink")?,
            16 => self.mode(&path)?,
            17 => fs::copy(&path, &other).map(|_| "copy")?,
            18 => fs::File::options().write(true).open(&path)?.set_len(7).map(|()| "truncate")?,
            _ => self.grow(&other)?,
        };
        Ok(format!("{what} {paths}"))
    }

    fn write(&mut self, path: &Path) -> io::Result<&'static str> {
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, self.text())?;
        Ok("write")
    }

    fn append(&mut self, path: &Path) -> io::Result<&'static str> {
        let text = self.text();
        fs::File::options().append(true).open(path)?.write_all(text.as_bytes())?;
        Ok("append")
    }

    /// Writes another text of the same size and restores the mtime.
    fn edit_keeping_mtime(&mut self, path: &Path) -> io::Result<&'static str> {
        let text = fs::read(path)?;
        let modified = fs::metadata(path)?.modified()?;
        let text = match text.windows(4).position(|part| part == b"word") {
            Some(at) => [&text[..at], b"w0rd", &text[at + 4..]].concat(),
            None => text.iter().rev().copied().collect(),
        };
        let mut file = fs::File::options().write(true).open(path)?;
        file.write_all(&text)?;
        file.set_modified(modified)?;
        Ok("edit unseen")
    }

    /// Replaces the file by a rename, as editors do.
    fn replace(&mut self, path: &Path) -> io::Result<&'static str> {
        let aside = path.with_extension("tmp");
        fs::write(&aside, self.text())?;
        fs::rename(&aside, path)?;
        Ok("replace")
    }

    fn swap(&mut self, one: &Path, two: &Path) -> io::Result<&'static str> {
        let aside = self.top.join("aside");
        fs::rename(one, &aside)?;
        let swapped = fs::rename(two, one);
        fs::rename(&aside, if swapped.is_ok() { two } else { one })?;
        Ok("swap")
    }

    /// Adds a hard link, but only in a watched directory: changes through an unwatched link are documented as
    /// not detected.
    fn link(&mut self, path: &Path, other: &Path) -> io::Result<&'static str> {
        fs::hard_link(path, other)?;
        let listed = self.tree_dir.list(walk);
        if listed.iter().any(|listed| self.top.join(listed) == other) {
            Ok("link")
        } else {
            fs::remove_file(other).map(|()| "no link")
        }
    }

    fn rules(&mut self, path: &Path) -> io::Result<&'static str> {
        let name = if self.random.below(3) == 0 { ".ignore" } else { ".gitignore" };
        let directory = if path.is_dir() { path } else { &self.top };
        match self.random.below(4) {
            0 => fs::remove_file(directory.join(name))?,
            1 => {
                fs::create_dir_all(directory.join(".git/info"))?;
                fs::write(directory.join(".git/info/exclude"), self.random.one_of(&RULES))?;
            }
            _ => fs::write(directory.join(name), self.random.one_of(&RULES))?,
        }
        Ok("rules")
    }

    fn mode(&mut self, path: &Path) -> io::Result<&'static str> {
        let mode = if path.is_dir() { 0o755 } else { self.random.one_of(&[0o644, 0o600]) };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        Ok("mode")
    }

    /// Creates a directory with subdirectories.
    fn grow(&mut self, path: &Path) -> io::Result<&'static str> {
        for name in ["a/deep/x.rs", "b/y.rs"] {
            self.write(&path.join(name))?;
        }
        Ok("grow")
    }

    /// A few lines, sometimes of several chunks, sometimes not plain text.
    fn text(&mut self) -> String {
        let lines = if self.random.below(6) == 0 { 120 } else { self.random.below(6) };
        let mut text = String::new();
        for _ in 0..lines {
            for _ in 0..self.random.below(4) {
                text += self.random.one_of(&WORDS);
                text += self.random.one_of(&[" ", " ", "\t", "_"]);
            }
            text += self.random.one_of(&["\n", "\n", "\r\n"]);
        }
        match self.random.below(12) {
            0 => text + "a\0b",
            1 => text.replace('\n', "\r"),
            _ => text,
        }
    }

    /// A random existing path.
    fn existing_path(&mut self) -> io::Result<PathBuf> {
        let (mut all, mut pending) = (Vec::new(), vec![self.top.clone()]);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
                    pending.push(entry.path());
                }
                all.push(entry.path());
            }
        }
        all.sort();
        // A tree that only grows takes longer and finds no more errors.
        if all.len() > 150 {
            fs::remove_dir_all(self.top.join(self.random.one_of(&NAMES)))?;
        }
        if all.is_empty() {
            Err(io::Error::other("the tree is empty"))
        } else {
            Ok(all[self.random.below(all.len())].clone())
        }
    }

    /// A random path of a few names, existing or not.
    fn random_path(&mut self) -> PathBuf {
        let mut path = self.top.clone();
        for _ in 0..=self.random.below(3) {
            path.push(self.random.one_of(&NAMES));
        }
        path
    }
}
