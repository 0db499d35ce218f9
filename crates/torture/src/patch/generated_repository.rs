//! Generates a small repository with everything that diffs can contain, including features that are rare in real
//! histories.

use std::fs;
use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::random::Random;

use super::repository::git;
use super::tree::{File, Tree};

/// The number of random commits after the fixed ones.
const RANDOM_COMMITS: usize = 40;

/// Creates the repository in a new directory.
pub(super) fn make(directory: &Path) -> Result<()> {
    fs::create_dir(directory)?;
    process::run(git(directory).args(["init", "--quiet"]))?;
    let mut tree = Tree::default();
    for (number, step) in (1..).zip(STEPS) {
        step(&mut tree);
        commit(directory, &tree, number)?;
    }
    let mut random = Random::new(5);
    for number in 1..=RANDOM_COMMITS {
        change(&mut tree, &mut random);
        commit(directory, &tree, STEPS.len() + number)?;
    }
    link(directory)
}

fn commit(directory: &Path, tree: &Tree, number: usize) -> Result<()> {
    tree.write(directory)?;
    process::run(git(directory).args(["add", "--all", "--force", "."]))?;
    let message = format!("commit {number}");
    process::run(with_fixed_author(git(directory).args([
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        &message,
    ])))
}

/// Adds a last commit with a symlink and a submodule.
fn link(directory: &Path) -> Result<()> {
    std::os::unix::fs::symlink("empty", directory.join("link"))?;
    process::run(git(directory).args(["add", "link"]))?;
    let head = process::capture(git(directory).args(["rev-parse", "HEAD"]))?;
    let submodule = format!("160000,{},submodule", head.trim());
    process::run(git(directory).args(["update-index", "--add", "--cacheinfo", &submodule]))?;
    process::run(with_fixed_author(git(directory).args(["commit", "--quiet", "-m", "links"])))
}

/// Sets the same author and dates in each run.
fn with_fixed_author(command: &mut Command) -> &mut Command {
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "nobody");
        command.env(format!("GIT_{who}_EMAIL"), "nobody@example.org");
        command.env(format!("GIT_{who}_DATE"), "2024-01-01T00:00:00Z");
    }
    command
}

/// Names that need quoting.
const ODD_NAMES: [&str; 9] = [
    "with blank.txt",
    " leading.txt",
    "trailing ",
    "tab\there.txt",
    "new\nline.txt",
    "quote\"d.txt",
    "back\\slash.txt",
    "b/a/b/ähre.txt",
    "*** End Patch",
];

/// The changes, one commit each.
const STEPS: &[fn(&mut Tree)] = &[
    |tree| {
        for name in ["one.py", "two.py", "dir/three.py", "dir/deep/four.py"] {
            tree.put(name, &program(name, 12));
        }
        tree.put("empty", "");
        tree.put("unended", "a\nb\nc");
        tree.put("dos.txt", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n");
        tree.put("mixed.txt", "one\r\ntwo\nthree\r\nfour\nfive\r\n");
        tree.put("mark.txt", "\u{feff}one\ntwo\nthree\n");
        tree.put("looks.patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n-- \n2.0\n");
    },
    |tree| ODD_NAMES.iter().for_each(|name| tree.put(name, "one\ntwo\nthree\n")),
    |tree| ODD_NAMES.iter().for_each(|name| tree.put(name, "one\nTWO\nthree\n")),
    // Newlines at the end of files.
    |tree| tree.put("unended", "a\nb\nc\n"),
    |tree| tree.put("unended", "a\nb\nC"),
    |tree| tree.put("unended", "a\nb\nC\nd"),
    |tree| tree.put("unended", ""),
    |tree| tree.put("empty", "\n"),
    |tree| tree.put("empty", "no end"),
    // Line endings.
    |tree| tree.put("dos.txt", "one\r\nTWO\r\nthree\r\nfour\r\nfive\r\nsix\r\n"),
    |tree| tree.put("dos.txt", "one\nTWO\nthree\nfour\nfive\nsix\n"),
    |tree| tree.put("mixed.txt", "one\r\ntwo\nTHREE\r\nfour\r\nfive\n"),
    |tree| tree.put("old-mac", "one\rtwo\rthree\r"),
    |tree| tree.put("old-mac", "one\rTWO\rthree\r"),
    |tree| tree.put("mark.txt", "\u{feff}one\nTWO\nthree\n"),
    |tree| tree.put("mark.txt", "one\nTWO\nthree\n"),
    // Modes.
    |tree| tree.mode("one.py", true),
    |tree| {
        tree.mode("one.py", false);
        tree.mode("two.py", true);
        tree.edit("two.py", "step_2", "step_two");
    },
    |tree| {
        tree.put("run", "#!/bin/sh\n");
        tree.mode("run", true);
    },
    // Names.
    |tree| tree.rename("one.py", "moved/to/one.py"),
    |tree| {
        tree.rename("two.py", "2.py");
        tree.edit("2.py", "step_3", "step_three");
    },
    |tree| {
        tree.rename("2.py", "swapped");
        tree.rename("dir/three.py", "2.py");
        tree.rename("swapped", "dir/three.py");
    },
    |tree| {
        tree.rename("dir/deep/four.py", "next.py");
        tree.put("dir/deep/four.py", "something else\nin its place\n");
    },
    |tree| {
        let text = tree.text("moved/to/one.py");
        tree.put("copy.py", &text.replace("step_9", "step_nine"));
        tree.edit("moved/to/one.py", "step_1 ", "step_one ");
    },
    |tree| tree.rename("run", "walk"),
    |tree| tree.remove("looks.patch"),
    |tree| tree.remove("old-mac"),
    |tree| tree.put("looks.patch", "diff --git a/x b/x\n@@\n*** Begin Patch\n*** End Patch\n"),
    |tree| tree.put("looks.patch", "diff --git a/x b/y\n@@\n*** End Patch\n--- \n+++ \n"),
    // Binary files, and text that is not UTF-8.
    |tree| tree.put_bytes("picture", b"\x89PNG\0\0\x01\x02"),
    |tree| tree.put_bytes("latin", b"caf\xe9\nna\xefve\n"),
    |tree| {
        tree.put_bytes("latin", b"caf\xe9\nNA\xcfVE\n");
        tree.put_bytes("picture", b"\x89PNG\0\0\x01\x03");
        tree.edit("2.py", "step_5", "step_five");
    },
    // Repeated lines.
    |tree| tree.put("same", &"x\n".repeat(30)),
    |tree| tree.put("same", &"x\n".repeat(31)),
    |tree| tree.put("same", &format!("{}y\n{}", "x\n".repeat(15), "x\n".repeat(16))),
];

/// A small program with similar parts.
fn program(name: &str, parts: usize) -> String {
    let part = |n: usize| {
        format!(
            "def step_{n} (value):\n    if value is None:\n        return None\n    return value + {n}\n\n\n"
        )
    };
    format!("# {name}\n\n{}", (0..parts).map(part).collect::<String>())
}

/// Adds, removes or changes a few lines of one file.
fn change(tree: &mut Tree, random: &mut Random) {
    let names: Vec<Vec<u8>> = tree.0.keys().cloned().collect();
    let name = &names[random.below(names.len() as u64) as usize];
    let Some(file) = tree.0.get_mut(name) else { return };
    let Ok(text) = std::str::from_utf8(&file.bytes) else { return };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len() as u64 + 1) as usize;
        let new = format!("    value = {}\n", random.below(5));
        match random.below(4) {
            0 | 1 => lines.insert(at, new),
            2 if at < lines.len() => lines[at] = new,
            _ => drop(lines.drain(at..(at + 3).min(lines.len()))),
        }
    }
    file.bytes = lines.concat().into_bytes();
}

impl Tree {
    fn put(&mut self, name: &str, text: &str) {
        self.put_bytes(name, text.as_bytes());
    }

    fn put_bytes(&mut self, name: &str, bytes: &[u8]) {
        let executable = self.0.get(name.as_bytes()).is_some_and(|file| file.executable);
        self.0.insert(name.into(), File { executable, bytes: bytes.into() });
    }

    fn text(&self, name: &str) -> String {
        let file = self.0.get(name.as_bytes());
        file.map_or(String::new(), |file| String::from_utf8_lossy(&file.bytes).into_owned())
    }

    fn edit(&mut self, name: &str, old: &str, new: &str) {
        let text = self.text(name).replace(old, new);
        self.put(name, &text);
    }

    fn mode(&mut self, name: &str, executable: bool) {
        if let Some(file) = self.0.get_mut(name.as_bytes()) {
            file.executable = executable;
        }
    }

    fn rename(&mut self, old: &str, new: &str) {
        if let Some(file) = self.0.remove(old.as_bytes()) {
            self.0.insert(new.into(), file);
        }
    }

    fn remove(&mut self, name: &str) {
        self.0.remove(name.as_bytes());
    }
}
