//! Static analysis of a shell command.
//!
//! Two parsers read the text: a strict one of our own, which also follows variables, directories and
//! wrappers, and tree-sitter (`tree_sitter_cross_check.rs`). A command counts as parsed only if both find the
//! same commands. The purpose is fewer approval requests. Safety is the task of the sandbox.

mod flow;
mod parse;
mod syntax;
mod tree_sitter_cross_check;
mod value;
mod wrapper;

use std::path::{Path, PathBuf};

pub(crate) use tree_sitter_cross_check::parse_tree;
pub(crate) use value::PIPE_PREFIX;

/// A longer script is analyzed only up to this length.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// More commands than a script written by an agent contains.
pub(crate) const MAX_COMMANDS: usize = 500;

/// Deeper than any hand-written nesting.
const MAX_DEPTH: usize = 40;

/// Where a command would run.
#[derive(Debug, Clone, Default)]
pub struct ShellContext {
    /// The directory that the command starts in.
    pub directory: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The roots of the workspace.
    pub roots: Vec<PathBuf>,
}

/// The result of the analysis of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandAnalysis {
    /// Every program and builtin that it runs, including nested ones.
    pub commands: Vec<Command>,
    /// Files that redirections write.
    pub writes: Vec<RedirectedFile>,
    /// Files that redirections read.
    pub reads: Vec<RedirectedFile>,
    /// Variables set for the rest of the script.
    pub assignments: Vec<Assignment>,
    /// Functions that start themselves concurrently (fork bombs).
    pub fork_bombs: Vec<String>,
    /// Why part of the command is unparsed; `None` if all of it is parsed.
    pub unparsed: Option<Unparsed>,
}

/// A program or builtin with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The name and the arguments.
    pub words: Vec<Word>,
    /// Variables set for this command alone.
    pub assignments: Vec<Assignment>,
    /// Its role in the script.
    pub role: Role,
    /// The working directory; `None` if it is not known.
    pub directory: Option<PathBuf>,
}

/// The role of a command in its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A program or builtin that acts itself.
    Ordinary,
    /// It only runs another command, which follows in the list, and has no effect of its own.
    Wrapper,
    /// A call of a function of the script, whose commands are listed.
    FunctionCall,
}

/// A command word, with its possible values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The text in the script.
    pub source: String,
    /// The possible values; empty if unknown. A loop variable has more than one.
    pub values: Vec<String>,
    /// Whether the values are file name patterns.
    pub glob: bool,
    /// Whether it may expand to several words, or to none.
    pub splits: bool,
    /// The known beginning of an unknown value.
    pub prefix: String,
}

/// An assignment to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the variable.
    pub name: String,
    /// The assigned value.
    pub value: Word,
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectedFile {
    /// The path as written.
    pub word: Word,
    /// The directory that a relative path starts from; `None` if it is not known.
    pub directory: Option<PathBuf>,
}

/// Why a command is unparsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unparsed {
    /// The kind of problem.
    pub kind: UnparsedKind,
    /// A description for people.
    pub reason: String,
}

/// The kinds of problem with an unparsed command, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnparsedKind {
    /// Shell syntax that the analysis does not support.
    Unsupported,
    /// It looks like a syntax error. Only the shell itself can decide.
    SyntaxError,
    /// It exceeds a length or nesting limit of the analysis.
    Limit,
}

/// Analyzes a command. Never fails: problems are reported in [`CommandAnalysis::unparsed`].
pub fn analyze_command(text: &str, context: &ShellContext) -> CommandAnalysis {
    if text.len() <= MAX_BYTES {
        return flow::analyze(text, context);
    }
    // The beginning can still contain destructive commands and commands that rules deny.
    let reason = format!("it is longer than {MAX_BYTES} bytes");
    let unparsed = Some(Unparsed { kind: UnparsedKind::Limit, reason });
    CommandAnalysis { unparsed, ..flow::analyze(whole_lines(text), context) }
}

/// The first lines of a text, at most [`MAX_BYTES`] bytes. Never ends at a line continuation.
fn whole_lines(text: &str) -> &str {
    let beginning = &text.as_bytes()[..MAX_BYTES.min(text.len())];
    let ends_line = |at: &usize| beginning[*at] == b'\n' && beginning[..*at].last() != Some(&b'\\');
    let end = (0..beginning.len()).rev().find(ends_line).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

impl CommandAnalysis {
    /// Whether the whole command is parsed.
    pub fn is_complete(&self) -> bool {
        self.unparsed.is_none()
    }
}

impl Command {
    /// The name as written; `None` if it is not known before the command runs.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.known()
    }

    /// The name without leading directories.
    pub fn program(&self) -> Option<&str> {
        self.name().map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// The name and the arguments for display.
    pub fn shown(&self) -> Vec<&str> {
        self.words.iter().map(Word::shown).collect()
    }
}

impl Word {
    /// A word with a known value.
    pub fn of(value: &str) -> Word {
        Word { source: value.to_owned(), values: vec![value.to_owned()], ..Word::default() }
    }

    /// The value, if there is exactly one.
    pub fn known(&self) -> Option<&str> {
        match self.values.as_slice() {
            [value] if !self.glob => Some(value),
            _ => None,
        }
    }

    /// The value, or the text in the script if the value is unknown.
    pub fn shown(&self) -> &str {
        self.known().unwrap_or(&self.source)
    }

    /// The possible paths, relative ones resolved against `directory`, as patterns without `.` and `..`.
    /// `None` if a value or the directory is unknown.
    pub fn paths(&self, directory: Option<&Path>) -> Option<Vec<PathBuf>> {
        if self.values.is_empty() {
            return None;
        }
        let resolve = |value: &String| {
            let path = if value.starts_with('/') { value.into() } else { directory?.join(value) };
            Some(normalize_lexically(&path))
        };
        self.values.iter().map(resolve).collect()
    }
}

/// Removes `.` and `..` without looking at the file system.
pub(crate) fn normalize_lexically(path: &Path) -> PathBuf {
    let mut clean = PathBuf::with_capacity(path.as_os_str().len());
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
