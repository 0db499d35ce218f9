//! A definition, and the definitions of a text.

/// A kind of definition, as far as answers differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A function, method or constructor with a body, or a macro.
    Callable,
    /// A type.
    Type,
    /// A block that adds definitions to a name: a module, namespace, `impl` or extension.
    Block,
    /// A constant or variable outside functions.
    Value,
    /// A field or an enum value. Outlines omit it.
    Member,
    /// A declaration whose definition is elsewhere.
    Prototype,
}

impl Class {
    /// The order in which a name denotes definitions: a declaration only if there is no definition.
    pub fn rank(self) -> u8 {
        match self {
            Class::Callable | Class::Type | Class::Value => 0,
            Class::Block => 1,
            Class::Prototype => 2,
            Class::Member => 3,
        }
    }
}

/// A definition in a text. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name, without the names around it.
    pub name: String,
    /// Names that its own header puts before the name: `T` of the Go method `func (t *T) M()`.
    pub qualifier: String,
    /// The kind in the words of the language: `fn`, `class`.
    pub word: &'static str,
    /// The kind.
    pub class: Class,
    /// Header of an `impl` block or extension, which has no name of its own.
    pub header: Option<String>,
    /// Index of the definition around it.
    pub outer: Option<usize>,
    /// First line of the comments and attributes directly before it, or its first line.
    pub doc_line: u64,
    /// First line.
    pub first_line: u64,
    /// Line of the name.
    pub name_line: u64,
    /// Last line.
    pub last_line: u64,
    /// The text up to the body in one line, shortened.
    pub signature: String,
}

/// The definitions of a text, in the order of their beginnings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// All definitions, members included.
    pub definitions: Vec<Definition>,
    /// Whether the text has syntax errors, so that definitions may be missing.
    pub has_errors: bool,
    /// The first and last lines of invalid parts, in order. Some of a text with many errors.
    pub(crate) invalid_lines: Vec<(u64, u64)>,
    /// Whether the grammar may not know valid text, because the language has macros.
    pub(crate) has_macros: bool,
    /// Whether definitions were left out: there were too many, or the time was over.
    pub is_cut: bool,
}

impl Outline {
    /// The first line that does not parse, if it can concern a definition in these lines. In a language with macros
    /// only an error in or directly behind them counts: the grammar does not know everything in such a text.
    pub fn error_near(&self, first: u64, last: u64) -> Option<u64> {
        let is_near = |(from, to): &&(u64, u64)| {
            !self.has_macros || *from <= last.saturating_add(1) && *to >= first
        };
        self.invalid_lines.iter().find(is_near).map(|(from, _)| *from)
    }

    /// The innermost definition that contains a line, with its documentation. Members do not count.
    pub fn around(&self, line: u64) -> Option<&Definition> {
        let contains = |one: &&Definition| {
            one.class != Class::Member && one.doc_line <= line && line <= one.last_line
        };
        // An inner definition begins after the outer one.
        self.definitions.iter().rev().find(contains)
    }

    /// The definition around another one.
    pub fn outer(&self, one: &Definition) -> Option<&Definition> {
        self.definitions.get(one.outer?)
    }

    /// The kind and name with those around it: `impl Runtime › fn call`.
    pub fn path(&self, one: &Definition) -> String {
        let mut labels: Vec<String> = self.around_and(one).map(Definition::label).collect();
        labels.reverse();
        labels.join(" › ")
    }

    /// A definition and those around it, inside out.
    pub(crate) fn around_and<'a>(
        &'a self,
        one: &'a Definition,
    ) -> impl Iterator<Item = &'a Definition> {
        std::iter::successors(Some(one), |one| self.outer(one))
    }
}

impl Definition {
    /// The kind and name: `fn call`.
    pub fn label(&self) -> String {
        match &self.header {
            Some(header) => header.clone(),
            None if self.qualifier.is_empty() => format!("{} {}", self.word, self.name),
            None => format!("{} {}{}", self.word, self.qualifier, self.name),
        }
    }
}
