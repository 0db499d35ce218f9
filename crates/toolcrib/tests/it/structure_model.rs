//! A tree of source files is changed at random between questions about its definitions, in one runtime with an index.
//! Each answer of Grep (`definitions`), Read (`symbol`) and Read (`outline`) must be that of the files as they are. The
//! expected answer is found without the parser: generated functions begin and end at known lines.
//!
//! `TOOLCRIB_STEPS` sets the number of changes, `TOOLCRIB_SEED` the seed. The full run is `cargo xtask torture index`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, IndexSettings, Options, Reply, Runtime};

use crate::eventually;

/// Number of changes in an ordinary test run.
const STEPS: usize = 600;

/// Maximum number of changes between two questions, and between two builds of the index.
const MAX_CHANGES_BETWEEN: usize = 3;
const CHANGES_BETWEEN_BUILDS: usize = 60;

/// A tree that only grows takes longer and finds no more errors.
const MAX_FILES: usize = 40;

const DIRECTORIES: [&str; 5] = ["", "a", "b", "a/deep", "src"];
const FILES: [&str; 5] = ["x.rs", "y.rs", "z.py", "w.py", "v.go"];

/// Names of one length, so that a file can change without a new size.
const NAMES: [&str; 6] = ["alpha", "bravo", "delta", "gamma", "hotel", "india"];

const INDEXED: IndexSettings = IndexSettings {
    least_files: 0,
    least_files_often: 0,
    max_bytes: 1 << 30,
    chunk_bytes: 512,
    max_watches: usize::MAX,
    trial_pause: Duration::from_secs(600),
};

#[test]
fn definitions_are_those_of_the_current_files() {
    run(INDEXED, number("TOOLCRIB_STEPS", STEPS), number("TOOLCRIB_SEED", 1));
}

#[test]
fn definitions_are_those_of_the_current_files_without_watches() {
    let settings = IndexSettings { max_watches: 0, ..INDEXED };
    run(settings, number("TOOLCRIB_STEPS", STEPS) / 4, 2);
}

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

fn run(settings: IndexSettings, steps: usize, seed: usize) {
    let top = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().root(top.path()).index(settings).build().unwrap();
    let mut model = Model { top: top.path().to_owned(), random: Random(seed as u64), changes: 0 };
    let mut history: Vec<String> = Vec::new();
    let (mut step, mut next_build, mut answered) = (0, 10, Answered::default());
    let mut has_index = false;
    while step < steps {
        for _ in 0..=model.random.below(MAX_CHANGES_BETWEEN) {
            let done = model.change().unwrap_or_else(|error| format!("nothing: {error}"));
            history.push(done);
            step += 1;
        }
        history.drain(..history.len().saturating_sub(30));
        let name = model.random.one_of(&NAMES);
        if let Err(wrong) = model.ask(&runtime, name, &mut answered) {
            panic!("step {step}: {wrong}\nafter\n{}", history.join("\n"));
        }
        if step >= next_build {
            next_build = step + CHANGES_BETWEEN_BUILDS;
            runtime.build_indexes().unwrap();
            if !has_index {
                // Files that were just changed are not indexed.
                eventually(|| runtime.build_indexes().is_ok() && runtime.indexed_files() > 0);
                has_index = true;
            }
        }
    }
    // The questions would mean nothing if there were no index, or never an answer.
    assert!(has_index, "there is an index");
    let Answered { definitions, symbols, ambiguous, outlines } = answered;
    assert!(definitions.min(symbols).min(ambiguous).min(outlines) > 0, "{answered:?}");
}

/// Answers that were not empty.
#[derive(Debug, Default, Clone, Copy)]
struct Answered {
    definitions: usize,
    symbols: usize,
    ambiguous: usize,
    outlines: usize,
}

/// A function in a generated file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Function {
    first: usize,
    last: usize,
    name: String,
}

struct Model {
    top: PathBuf,
    random: Random,
    changes: usize,
}

impl Model {
    /// Asks for a name in all three ways.
    fn ask(
        &mut self,
        runtime: &Runtime,
        name: &str,
        answered: &mut Answered,
    ) -> Result<(), String> {
        let files = self.files();
        let functions: BTreeMap<&str, Vec<Function>> =
            files.iter().map(|(path, text)| (path.as_str(), functions(text))).collect();
        let mut expected: Vec<(String, usize, usize)> = Vec::new();
        for (path, defined) in &functions {
            let named = defined.iter().filter(|one| one.name == name);
            expected.extend(named.map(|one| ((*path).to_owned(), one.first, one.last)));
        }
        let args = json!({"pattern": name, "output_mode": "definitions", "head_limit": 0});
        let text = call(runtime, "Grep", args).map_err(|error| error.to_string())?.text();
        let found = listed(&text);
        if found != expected {
            return Err(format!("definitions of {name}: {text}\nexpected {expected:?}"));
        }
        answered.definitions += usize::from(!found.is_empty());
        if files.is_empty() {
            return Ok(());
        }
        let path = files.keys().nth(self.random.below(files.len())).unwrap();
        let defined = functions.get(path.as_str()).unwrap();
        check_symbol(runtime, path, &files[path], name, defined, answered)?;
        check_outline(runtime, path, defined, answered)
    }

    /// The files with their texts, by path.
    fn files(&self) -> BTreeMap<String, String> {
        let (mut files, mut pending) = (BTreeMap::new(), vec![self.top.clone()]);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                } else {
                    let shown = entry.path().strip_prefix(&self.top).unwrap().to_owned();
                    let text = fs::read_to_string(entry.path()).unwrap();
                    files.insert(shown.to_str().unwrap().to_owned(), text);
                }
            }
        }
        files
    }

    /// Makes a random change. Returns its description.
    fn change(&mut self) -> io::Result<String> {
        self.changes += 1;
        let files: Vec<String> = self.files().into_keys().collect();
        if files.len() > MAX_FILES {
            fs::remove_dir_all(self.top.join("a"))?;
        }
        let path = match files.len() {
            0 => self.random_path(),
            _ if self.random.below(3) == 0 => self.random_path(),
            count => self.top.join(&files[self.random.below(count)]),
        };
        // A text of another language would have other functions.
        let other = self.random_path().with_extension(path.extension().unwrap_or_default());
        fs::create_dir_all(other.parent().unwrap_or(&self.top))?;
        let what = match self.random.below(12) {
            0..=2 => self.write(&path)?,
            3 => self.append(&path)?,
            4 | 5 => self.rename_unseen(&path)?,
            6 => self.replace(&path)?,
            7 => fs::rename(&path, &other).map(|()| "rename")?,
            8 => fs::remove_file(&path).map(|()| "remove")?,
            9 => self.swap(&path, &other)?,
            10 => self.move_directory()?,
            _ => fs::copy(&path, &other).map(|_| "copy")?,
        };
        Ok(format!("{what} {} {}", path.display(), other.display()))
    }

    fn write(&mut self, path: &Path) -> io::Result<&'static str> {
        fs::create_dir_all(path.parent().unwrap_or(&self.top))?;
        fs::write(path, self.text(path))?;
        Ok("write")
    }

    fn append(&mut self, path: &Path) -> io::Result<&'static str> {
        let text = self.function(path);
        fs::File::options().append(true).open(path)?.write_all(text.as_bytes())?;
        Ok("append")
    }

    /// Renames the functions of a file, with the same size and modification time.
    fn rename_unseen(&mut self, path: &Path) -> io::Result<&'static str> {
        let text = fs::read_to_string(path)?;
        let modified = fs::metadata(path)?.modified()?;
        let (from, to) = (self.random.one_of(&NAMES), self.random.one_of(&NAMES));
        let mut file = fs::File::options().write(true).open(path)?;
        file.write_all(text.replace(from, to).as_bytes())?;
        file.set_modified(modified)?;
        Ok("rename functions unseen")
    }

    /// Replaces the file by a rename, as editors do.
    fn replace(&mut self, path: &Path) -> io::Result<&'static str> {
        let aside = path.with_extension("tmp");
        fs::write(&aside, self.text(path))?;
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

    fn move_directory(&mut self) -> io::Result<&'static str> {
        let name = ["b", "src", "moved"];
        fs::rename(
            self.top.join(self.random.one_of(&name)),
            self.top.join(self.random.one_of(&name)),
        )?;
        Ok("move directory")
    }

    fn random_path(&mut self) -> PathBuf {
        self.top.join(self.random.one_of(&DIRECTORIES)).join(self.random.one_of(&FILES))
    }

    /// A file of several functions, and names that are only used.
    fn text(&mut self, path: &Path) -> String {
        let package = if has_extension(path, "go") { "package p\n\n" } else { "" };
        let count = self.random.below(5);
        let functions: String = (0..count).map(|_| self.function(path)).collect();
        format!("{package}{functions}")
    }

    fn function(&mut self, path: &Path) -> String {
        let name = self.random.one_of(&NAMES);
        let lines = 1 + self.random.below(4);
        let used = self.random.one_of(&NAMES);
        let (header, line, end) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("py") => (format!("def {name}():"), format!("    {used}()"), ""),
            Some("go") => (format!("func {name}() {{"), format!("\t{used}()"), "}\n"),
            _ => (format!("fn {name}() {{"), format!("    {used}();"), "}\n"),
        };
        format!("{header}\n{}{end}\n", format!("{line}\n").repeat(lines))
    }
}

/// The functions of a generated text: each begins at the left margin, and a line break follows its last line.
fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let begins = ["fn ", "def ", "func "].iter().find_map(|word| line.strip_prefix(word));
        let Some(name) = begins.and_then(|rest| rest.split('(').next()) else { continue };
        let length = lines[at..].iter().take_while(|line| !line.is_empty()).count();
        found.push(Function { first: at + 1, last: at + length, name: name.to_owned() });
    }
    found
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// A new session has seen nothing, so that replies have no notes about changes.
fn call(runtime: &Runtime, tool: &str, args: Value) -> Result<Reply, Error> {
    runtime.call(&runtime.session(), Call::new(tool, args), Options::default())
}

/// The files and lines of a list of definitions.
fn listed(text: &str) -> Vec<(String, usize, usize)> {
    let (mut found, mut file) = (Vec::new(), String::new());
    for line in text.lines() {
        match line.split_once(": ").and_then(|(lines, _)| range(lines)) {
            Some((first, last)) => found.push((file.clone(), first, last)),
            None => line.clone_into(&mut file),
        }
    }
    found
}

/// `3-7`, or `3`.
fn range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn check_symbol(
    runtime: &Runtime,
    path: &str,
    text: &str,
    name: &str,
    defined: &[Function],
    answered: &mut Answered,
) -> Result<(), String> {
    let named: Vec<&Function> = defined.iter().filter(|one| one.name == name).collect();
    let reply = call(runtime, "Read", json!({"file_path": path, "symbol": name}));
    match (&named[..], reply) {
        ([], Err(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        ([_, _, ..], Err(error)) if error.kind() == ErrorKind::Ambiguous => {
            answered.ambiguous += 1;
            Ok(())
        }
        ([one], Ok(reply)) => {
            answered.symbols += 1;
            let lines = text.lines().enumerate().take(one.last).skip(one.first - 1);
            let expected: String =
                lines.map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect();
            let shown = reply.text();
            let is_right = shown.contains(&expected)
                && shown.matches('\t').count() == expected.matches('\t').count();
            is_right
                .then_some(())
                .ok_or_else(|| format!("{name} in {path}: {shown}\nexpected {expected}"))
        }
        (_, reply) => Err(format!("{name} in {path}: {reply:?}\nexpected {named:?}")),
    }
}

fn check_outline(
    runtime: &Runtime,
    path: &str,
    defined: &[Function],
    answered: &mut Answered,
) -> Result<(), String> {
    let reply = call(runtime, "Read", json!({"file_path": path, "outline": true}));
    let text = reply.map_err(|error| format!("{path}: {error}"))?.text();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let listed: Vec<Function> = lines
        .filter_map(|(lines, signature)| {
            let (first, last) = range(lines.trim())?;
            let name = signature.split_whitespace().nth(1)?.split('(').next()?.to_owned();
            Some(Function { first, last, name })
        })
        .collect();
    answered.outlines += usize::from(!listed.is_empty());
    (listed == defined).then_some(()).ok_or_else(|| format!("{path}: {text}\nexpected {defined:?}"))
}

/// Reproducible pseudo-random numbers.
struct Random(u64);

impl Random {
    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % bound as u64).unwrap()
    }

    fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }
}
