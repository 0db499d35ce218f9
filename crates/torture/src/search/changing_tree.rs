//! A tree that changes at random between searches: edits, renames, ignore files, symlinks, modes, whole
//! directories. After each step both programs list the files and search for a word.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::peers::Peers;
use toolcrib_devtools::random::Random;

use super::super::Effort;
use super::super::report::{Report, Row};
use super::search_pair::SearchPair;

const STEPS: usize = 3_000;
const SMOKE: usize = 60;

const NAMES: [&str; 10] =
    ["a", "b", "src", "build", "x.rs", "y.rs", "z.log", ".hidden", "node_modules", "c.txt"];
const RULES: [&str; 9] = [
    "*.log\n",
    "src/\n",
    "/a\n",
    "b/**\n!b/x.rs\n",
    "build\n",
    "!*.log\n",
    "x.rs\n",
    "",
    "*\n!*/\n",
];

pub(super) fn run(binary: &Path, peers: &Peers, effort: Effort, report: &mut Report) -> Result<()> {
    let steps = effort.rounds.unwrap_or(if effort.smoke { SMOKE } else { STEPS });
    let mut row = Row::new("model", "a tree that changes between two questions");
    let directory = tempfile::tempdir()?;
    let tree = directory.path().join("tree");
    fs::create_dir(&tree)?;
    fs::write(tree.join(".gitignore"), "")?;
    let mut both = SearchPair::begin(binary, peers, &tree)?;
    let mut random = Random::new(3);
    let mut history = Vec::new();
    for step in 0..steps {
        let done = change(&tree, &mut random).unwrap_or_else(|error| format!("nothing: {error}"));
        row.tally.add(done.split(' ').next().unwrap_or_default());
        history.push(done);
        both.write_default_excludes()?;
        if let Some(difference) = compare(&mut both, &tree)? {
            let last = history[history.len().saturating_sub(5)..].join("; ");
            row.violate(format!("after step {step}: {difference}"), last);
            if effort.smoke {
                break;
            }
        }
    }
    report.add(row);
    Ok(())
}

fn compare(both: &mut SearchPair<'_>, tree: &Path) -> Result<Option<String>> {
    let list = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    let arguments = json!({"pattern": "**/*", "hidden": true, "limit": 1000});
    let reply = both.ask("Glob", &arguments)?;
    let found = reply["metadata"]["files"].as_array().cloned().unwrap_or_default();
    let ours: BTreeSet<String> =
        found.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect();
    let theirs = list(both.rg(&["--files"])?);
    // Glob lists symlinks to files; ripgrep lists them only if it follows symlinks.
    let ours: BTreeSet<String> =
        ours.into_iter().filter(|path| !tree.join(path).is_symlink()).collect();
    if ours != theirs {
        let missing: Vec<_> = theirs.difference(&ours).take(3).collect();
        let wrong: Vec<_> = ours.difference(&theirs).take(3).collect();
        return Ok(Some(format!("files: missing {missing:?}, wrongly there {wrong:?}")));
    }
    let ours = both.matching("word", &json!({}))?;
    let theirs = list(both.rg(&["-l", "word"])?);
    Ok((ours != theirs).then(|| format!("word: ours {ours:?}, theirs {theirs:?}")))
}

/// Makes a random change. Returns its description.
fn change(tree: &Path, random: &mut Random) -> std::io::Result<String> {
    let what = random.below(12);
    let path = match what {
        0 | 1 | 6 => random_path(tree, random),
        _ => existing_path(tree, random)?,
    };
    let shown = path.strip_prefix(tree).unwrap_or(&path).display().to_string();
    match what {
        0..=2 => {
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)?;
            }
            let word = if random.below(2) == 0 { "word" } else { "other" };
            fs::write(&path, format!("{word} {}\n", random.number()))?;
            Ok(format!("write {shown}"))
        }
        3 => {
            // In place, so that the directory's mtime does not change.
            let text = fs::read_to_string(&path)?;
            let text =
                if text.contains("word") { text.replace("word", "drow") } else { text + "word\n" };
            fs::write(&path, text)?;
            Ok(format!("edit {shown}"))
        }
        4 => {
            let other = random_path(tree, random);
            fs::rename(&path, &other)?;
            Ok(format!("rename {shown} to {}", other.display()))
        }
        5 => {
            fs::remove_file(&path)?;
            Ok(format!("remove {shown}"))
        }
        6 => {
            fs::create_dir_all(&path)?;
            fs::write(path.join("x.rs"), "word\n")?;
            Ok(format!("mkdir {shown}"))
        }
        7 => {
            fs::remove_dir_all(&path)?;
            Ok(format!("rmdir {shown}"))
        }
        8 | 9 => {
            let name = if random.below(3) == 0 { ".ignore" } else { ".gitignore" };
            let directory = if path.is_dir() { path } else { tree.to_owned() };
            let rules = RULES[random.below(RULES.len() as u64) as usize];
            fs::write(directory.join(name), rules)?;
            Ok(format!("ignore {rules:?} in {}", directory.display()))
        }
        10 => {
            let link = tree.join(format!("link{}", random.below(3)));
            let _ = fs::remove_file(&link);
            symlink(&path, &link)?;
            Ok(format!("symlink to {shown}"))
        }
        _ => {
            let mode = if path.is_dir() { 0o755 } else { [0o644, 0o600][random.below(2) as usize] };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            Ok(format!("chmod {shown}"))
        }
    }
}

/// A random existing_path path.
fn existing_path(tree: &Path, random: &mut Random) -> std::io::Result<PathBuf> {
    let (mut all, mut pending) = (Vec::new(), vec![tree.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
            all.push(entry.path());
        }
    }
    all.sort();
    let at = random.below(all.len() as u64) as usize;
    all.get(at).cloned().ok_or_else(|| std::io::Error::other("the tree is empty"))
}

/// A random path, which may not exist.
fn random_path(tree: &Path, random: &mut Random) -> PathBuf {
    let mut path = tree.to_owned();
    for _ in 0..=random.below(3) {
        path.push(NAMES[random.below(NAMES.len() as u64) as usize]);
    }
    path
}
