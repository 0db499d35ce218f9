//! What a script is made of, as the parser hands it on: commands and words, nothing expanded yet.

/// Commands one after the other.
#[derive(Debug, Default)]
pub(super) struct List(pub(super) Vec<Entry>);

/// One pipeline of a list.
#[derive(Debug)]
pub(super) struct Entry {
    /// Whether it runs only if what stands before it went well or badly (`&&`, `||`).
    pub(super) depends: bool,
    pub(super) pipeline: Vec<Node>,
    pub(super) background: bool,
}

#[derive(Debug)]
pub(super) enum Node {
    Simple(Simple),
    Compound(Compound),
    Function { name: String, body: Box<Node> },
}

/// A command with its arguments; `[[ … ]]` as well.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<RawWord>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: RawWord,
}

/// What holds other commands.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) kind: Kind,
    /// The variable of a `for`.
    pub(super) variable: Option<String>,
    /// What a `for` goes over, what a `case` looks at, and its patterns.
    pub(super) words: Vec<RawWord>,
    pub(super) lists: Vec<List>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `{ … }`
    Group,
    /// `( … )`
    Subshell,
    /// `if`, `case`: each list may run or not.
    Branches,
    /// `for`, `while`, `until`: each list may run again and again.
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
    /// Text of the script itself.
    Text,
}

#[derive(Debug)]
pub(super) enum Target {
    Word(RawWord),
    /// The number of a here-document.
    Here(usize),
}

/// A word as it is written.
#[derive(Debug, Default)]
pub(super) struct RawWord {
    /// Where it begins and ends in the script.
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
    /// A value that is not known before the command runs; what stands in it may hold commands.
    Unknown {
        inner: Vec<Piece>,
        quoted: bool,
    },
    /// `$(( … ))`, the subscript of an array, an offset. The shell evaluates the value of each name in it as
    /// an expression too, and an expression can hold commands.
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
    /// Backquotes with escapes in them: the script without these.
    Script {
        text: String,
        quoted: bool,
    },
}

impl RawWord {
    /// The word, if it is written in plain letters without any quoting.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// The word without its quotes, if nothing in it is to be found out.
    pub(super) fn literal(&self) -> Option<String> {
        let text = |piece: &Piece| match piece {
            Piece::Literal { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.pieces.iter().map(text).collect()
    }
}
