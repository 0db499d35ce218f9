//! What a shell command would do, as far as its text tells.
//!
//! Two parsers read it: a strict one of ours, which also follows variables, directories and wrappers,
//! and one made by others (`second.rs`). Only where both see the same commands is it understood. This
//! is for fewer questions, not for safety: that is the sandbox's task.

mod flow;
mod parse;
mod syntax;
mod tree_sitter_check;
mod value;
mod wrapper;

use std::path::{Path, PathBuf};

pub(crate) use value::PIPE;

/// Of a longer script only the beginning is read.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// More commands than a script that an agent writes has.
pub(crate) const MAX_COMMANDS: usize = 500;

/// Deeper than anybody nests.
const MAX_DEPTH: usize = 40;

/// What is known of where a command would run.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The directory it starts in.
    pub directory: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The directories of the workspace.
    pub roots: Vec<PathBuf>,
}

/// What was found in the text of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandAnalysis {
    /// Every program and builtin that it runs, those inside others too.
    pub commands: Vec<Command>,
    /// Files that redirections write.
    pub writes: Vec<Touched>,
    /// Files that redirections read.
    pub reads: Vec<Touched>,
    /// Variables that are set for all that follows.
    pub assignments: Vec<Assignment>,
    /// Functions that start themselves again and again beside themselves.
    pub bombs: Vec<String>,
    /// Why not all of it is understood; nothing, if it is.
    pub why_not: Option<WhyNot>,
}

/// A program or builtin with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The name and the arguments.
    pub words: Vec<Word>,
    /// Variables that are set for it alone.
    pub assignments: Vec<Assignment>,
    /// What it is there for.
    pub role: Role,
    /// Where it runs; nothing, if that cannot be told.
    pub directory: Option<PathBuf>,
}

/// What a command is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It does something itself.
    Acts,
    /// It only runs another command, which is listed behind it, and adds nothing to what that does.
    Wraps,
    /// It is a function of the script, whose commands are listed.
    Calls,
}

/// One argument, with what is known of its value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// As it is written.
    pub source: String,
    /// The values that it can have; empty, if they are not known. More than one in a loop.
    pub values: Vec<String>,
    /// The values are patterns of file names.
    pub glob: bool,
    /// It may become several words, or none.
    pub splits: bool,
    /// How its value begins, if no more is known.
    pub prefix: String,
}

/// A variable that is given a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Word,
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// As it is written.
    pub word: Word,
    /// The directory that it is looked for from.
    pub directory: Option<PathBuf>,
}

/// Why a command is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyNot {
    /// How bad it is.
    pub trouble: Trouble,
    /// What it is, in words.
    pub what: String,
}

/// How bad it is that something is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A shell may know what it means; we do not.
    Unclear,
    /// It looks like a syntax error. Only the shell itself can tell.
    Broken,
    /// It is longer or deeper than this reader goes.
    Limit,
}

/// Reads a command.
pub fn understand(text: &str, around: &Surroundings) -> CommandAnalysis {
    if text.len() <= MAX_BYTES {
        return flow::follow(text, around);
    }
    // The beginning still shows dangers, and commands that rules deny.
    let what = format!("it is longer than {MAX_BYTES} bytes");
    let why_not = Some(WhyNot { trouble: Trouble::Limit, what });
    CommandAnalysis { why_not, ..flow::follow(whole_lines(text), around) }
}

/// The first lines of a text, at most [`MAX_BYTES`] of them. A word that goes on in the next line is not cut.
fn whole_lines(text: &str) -> &str {
    let beginning = &text.as_bytes()[..MAX_BYTES.min(text.len())];
    let ends_line = |at: &usize| beginning[*at] == b'\n' && beginning[..*at].last() != Some(&b'\\');
    let end = (0..beginning.len()).rev().find(ends_line).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

impl CommandAnalysis {
    /// Whether everything that it does is in it.
    pub fn is_whole(&self) -> bool {
        self.why_not.is_none()
    }
}

impl Command {
    /// The name as it is written, if it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.known()
    }

    /// The program's own name, without the directories before it.
    pub fn program(&self) -> Option<&str> {
        self.name().map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// The name and the arguments as text, for people.
    pub fn shown(&self) -> Vec<&str> {
        self.words.iter().map(Word::shown).collect()
    }
}

impl Word {
    /// A word of which all is known.
    pub fn of(value: &str) -> Word {
        Word { source: value.to_owned(), values: vec![value.to_owned()], ..Word::default() }
    }

    /// Its value, if there is one only.
    pub fn known(&self) -> Option<&str> {
        match self.values.as_slice() {
            [value] if !self.glob => Some(value),
            _ => None,
        }
    }

    /// Its value, or how it is written.
    pub fn shown(&self) -> &str {
        self.known().unwrap_or(&self.source)
    }

    /// The paths it can mean, from `directory`, as patterns and without `.` and `..`; nothing, if that
    /// cannot be told.
    pub fn paths(&self, directory: Option<&Path>) -> Option<Vec<PathBuf>> {
        if self.values.is_empty() {
            return None;
        }
        let resolve = |value: &String| match value.starts_with('/') {
            true => Some(lexical(Path::new(value))),
            false => Some(lexical(&directory?.join(value))),
        };
        self.values.iter().map(resolve).collect()
    }
}

/// A path without `.` and `..`, by its letters.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}
