//! The syntax tree of a script, before expansion.

use std::borrow::Cow;

/// A sequence of pipelines.
#[derive(Debug, Default)]
pub(super) struct List(pub(super) Vec<Entry>);

/// A pipeline in a list.
#[derive(Debug)]
pub(super) struct Entry {
    /// Whether it follows `&&` or `||`.
    pub(super) is_conditional: bool,
    pub(super) pipeline: Vec<Node>,
    pub(super) background: bool,
}

#[derive(Debug)]
pub(super) enum Node {
    Simple(Simple),
    Compound(Compound),
    Function { name: String, body: Box<Node> },
}

/// A command with its arguments. Also `[[ … ]]`.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<RawAssignment>,
    pub(super) words: Vec<RawWord>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) struct RawAssignment {
    pub(super) name: String,
    pub(super) value: RawWord,
}

/// A command that contains other commands.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) kind: CompoundKind,
    /// The variable of a `for`.
    pub(super) variable: Option<String>,
    /// The words of a `for`, or the subject and the patterns of a `case`.
    pub(super) words: Vec<RawWord>,
    pub(super) lists: Vec<List>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompoundKind {
    /// `{ … }`
    Group,
    /// `( … )`
    Subshell,
    /// `if`, `case`: each list may run or not run.
    Branches,
    /// `for`, `while`, `until`: each list may run repeatedly.
    Loop,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) operator: Operator,
    pub(super) target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Read,
    Write,
    ReadWrite,
    /// `2>&1`: no file.
    Duplicate,
    /// A here-document or here-string.
    Text,
}

#[derive(Debug)]
pub(super) enum Target {
    Word(RawWord),
    /// The index of a here-document.
    Here(usize),
}

/// An unexpanded word.
#[derive(Debug, Default)]
pub(super) struct RawWord {
    /// The byte range in the script.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(super) enum Piece {
    Literal {
        text: String,
        quoted: bool,
    },
    /// `$name` and `${name}`.
    Variable {
        name: String,
        quoted: bool,
    },
    /// A value that is not known before the command runs. Its parts may contain commands.
    Unknown {
        inner: Vec<Piece>,
        quoted: bool,
    },
    /// `$(( … ))`, an array subscript or an offset. The shell also evaluates the value of each name in it as
    /// an expression, and an expression can contain commands.
    Arithmetic {
        inner: Vec<Piece>,
        names: Vec<String>,
        quoted: bool,
    },
    /// `$( … )`, backquotes, `<( … )`.
    Commands {
        list: List,
        quoted: bool,
    },
    /// The script in backquotes with escapes, after the escapes are removed.
    Script {
        text: String,
        quoted: bool,
    },
}

impl RawWord {
    /// The word, if it is a literal without quoting.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// The word without its quotes, if it contains no expansion.
    pub(super) fn literal(&self) -> Option<Cow<'_, str>> {
        if let [Piece::Literal { text, .. }] = self.pieces.as_slice() {
            return Some(Cow::Borrowed(text));
        }
        let text = |piece: &Piece| match piece {
            Piece::Literal { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.pieces.iter().map(text).collect::<Option<String>>().map(Cow::Owned)
    }
}
