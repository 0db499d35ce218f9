//! Compares our diffs with git's for random edits: the hunks must be identical. `TOOLCRIB_STEPS` sets the
//! number of edits.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "git is the oracle and needs files"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::unified_diff;

/// Number of file pairs that one run of git compares.
const BATCH: usize = 500;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn line(&mut self, words: usize, kind: usize) -> String {
        let word = self.below(words);
        match kind {
            // Text in which nearly all lines repeat.
            0 => format!("{word}"),
            // Code: indentation, blank lines, braces, tabs.
            _ => match self.below(10) {
                0 | 1 => String::new(),
                2 => format!("{}}}", "    ".repeat(self.below(3))),
                3 => format!("{}word{word}", "\t".repeat(self.below(3))),
                4 => "   ".to_owned(),
                _ => format!("{}word{word}", "    ".repeat(self.below(4))),
            },
        }
    }

    /// Two versions of a text. Sizes, repetition and the number of edits vary.
    fn versions(&mut self) -> (Vec<u8>, Vec<u8>) {
        let length = [5, 12, 40, 150, 900][self.below(5)];
        let words = [2, 4, 10, 60, 2_000][self.below(5)];
        let kind = self.below(3);
        let old: Vec<String> = (0..self.below(length)).map(|_| self.line(words, kind)).collect();
        let mut new = old.clone();
        let most = [1, 2, 4, 12, length][self.below(5)];
        for _ in 0..=self.below(most) {
            let at = self.below(new.len() + 1);
            let end = (at + self.below(6)).min(new.len());
            match self.below(5) {
                0 => drop(new.drain(at..end)),
                1 => {
                    let moved: Vec<String> = new.drain(at..end).collect();
                    let to = self.below(new.len() + 1);
                    new.splice(to..to, moved);
                }
                2 => {
                    let copied = new[at..end].to_vec();
                    let to = self.below(new.len() + 1);
                    new.splice(to..to, copied);
                }
                _ => {
                    let put: Vec<String> =
                        (0..=self.below(4)).map(|_| self.line(words, kind)).collect();
                    let end = if self.below(2) == 0 { end } else { at };
                    new.splice(at..end, put);
                }
            }
        }
        (self.text(&old), self.text(&new))
    }

    fn text(&mut self, lines: &[String]) -> Vec<u8> {
        let mut text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        if self.below(8) == 0 {
            text.pop();
        }
        text.into_bytes()
    }
}

/// The hunks of each file in the output of `git diff`, without the function names in their headers.
fn hunks_by_file(output: &str) -> HashMap<String, String> {
    let mut files: HashMap<String, String> = HashMap::new();
    let mut name = String::new();
    let mut in_hunks = false;
    for line in output.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("diff --git a/old/") {
            name = rest.split(' ').next().unwrap_or_default().to_owned();
            in_hunks = false;
        } else if line.starts_with("@@ -") {
            in_hunks = true;
            let end = line[3..].find("@@").map_or(line.len(), |end| end + 5);
            let hunks = files.entry(name.clone()).or_default();
            hunks.push_str(&line[..end]);
            hunks.push('\n');
        } else if in_hunks {
            files.entry(name.clone()).or_default().push_str(line);
        }
    }
    files
}

fn git_hunks(directory: &Path) -> HashMap<String, String> {
    let output = Command::new("git")
        .args(["diff", "--no-index", "--no-color", "--no-ext-diff", "--no-renames", "--text"])
        .args(["--diff-algorithm=myers", "--indent-heuristic", "--unified=3", "old", "new"])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
    hunks_by_file(&String::from_utf8(output.stdout).unwrap())
}

struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn hunks_equal_those_of_git() {
    let rounds = std::env::var("TOOLCRIB_STEPS").ok().and_then(|steps| steps.parse().ok());
    let rounds: usize = rounds.unwrap_or(BATCH);
    let name = format!("toolcrib-diff-{}", std::process::id());
    let directory = Temporary(std::env::temp_dir().join(name));
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for batch in 0..rounds.div_ceil(BATCH) {
        let _ = std::fs::remove_dir_all(&directory.0);
        for side in ["old", "new"] {
            std::fs::create_dir_all(directory.0.join(side)).unwrap();
        }
        let pairs: Vec<_> = (0..BATCH.min(rounds)).map(|_| random.versions()).collect();
        for (at, (old, new)) in pairs.iter().enumerate() {
            std::fs::write(directory.0.join(format!("old/{at}")), old).unwrap();
            std::fs::write(directory.0.join(format!("new/{at}")), new).unwrap();
        }
        let expected = git_hunks(&directory.0);
        for (at, (old, new)) in pairs.iter().enumerate() {
            let ours = unified_diff("n", Some(old), Some(new), 10_000, None).text;
            let ours: String = ours.split_inclusive('\n').skip(2).collect();
            let theirs = expected.get(&at.to_string()).cloned().unwrap_or_default();
            if ours != theirs {
                let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
                panic!(
                    "batch {batch}, pair {at}\nold:\n{old}\nnew:\n{new}\nours:\n{ours}\ngit's:\n{theirs}"
                );
            }
        }
    }
}
