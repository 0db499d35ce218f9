//! Follows a script as the shell would run it: which commands, where, with which values.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::parse::{Parsed, parse};
use super::syntax::{
    Compound, Entry, Kind, List, Node, Operator, Piece, RawWord, Redirect, Simple, Target,
};
use super::value::{Values, Variables, expand, text_of};
use super::wrapper::{INPUT, Inner, look_through};
use super::{
    Assignment, Command, CommandAnalysis, MAX_BYTES, MAX_COMMANDS, Role, Surroundings, Touched,
    Trouble, WhyNot, Word, lexical, tree_sitter_check,
};

/// Letters that make a pattern of a word.
const PATTERN: [char; 4] = ['*', '?', '[', ']'];

/// A number of so many digits fits in the shell's integers.
const MAX_DIGITS: usize = 18;

/// Scripts in scripts in scripts.
const MAX_SCRIPTS: usize = 10;

/// Reads a script and all scripts in it.
pub(super) fn follow(text: &str, around: &Surroundings) -> CommandAnalysis {
    let home = around.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned);
    let mut walk = ScriptWalk {
        home,
        found: CommandAnalysis::default(),
        directory: Some(lexical(&around.directory)),
        changes_directory: false,
        functions: HashSet::new(),
        has_functions: false,
        inside: Vec::new(),
        scripts: 0,
        bytes: 0,
    };
    walk.script(text);
    if walk.changes_directory && walk.has_functions {
        walk.doubt("functions in a script that changes its directory");
    }
    walk.found
}

/// What has been seen so far.
struct ScriptWalk {
    home: Option<String>,
    found: CommandAnalysis,
    directory: Option<PathBuf>,
    changes_directory: bool,
    functions: HashSet<String>,
    has_functions: bool,
    /// The functions that are being defined.
    inside: Vec<String>,
    scripts: usize,
    bytes: usize,
}

/// What a command writes into a pipe, if that is known.
#[derive(Debug, Default)]
struct Said {
    text: Option<String>,
    /// Names of files: patterns that they fit.
    files: Vec<String>,
}

/// A script that is being followed, and what its variables are known to hold.
struct Frame<'a> {
    text: &'a str,
    parsed: &'a Parsed,
    variables: Variables,
}

/// How a command stands in the script.
#[derive(Debug, Clone, Copy, Default)]
struct Stand {
    /// It may run or not.
    conditional: bool,
    /// It may run again, or later.
    repeated: bool,
    /// In a process of its own: what it sets is lost.
    apart: bool,
    /// Beside others.
    beside: bool,
}

impl ScriptWalk {
    fn note(&mut self, trouble: Trouble, what: &str) {
        if self.found.why_not.as_ref().is_none_or(|why| why.trouble < trouble) {
            self.found.why_not = Some(WhyNot { trouble, what: what.to_owned() });
        }
    }

    fn doubt(&mut self, what: &str) {
        self.note(Trouble::Unclear, what);
    }

    /// A script, from its text on; it has variables of its own.
    fn script(&mut self, text: &str) {
        self.scripts += 1;
        self.bytes += text.len();
        if self.scripts > MAX_SCRIPTS || self.bytes > 2 * MAX_BYTES {
            self.note(Trouble::Limit, "there are too many scripts in scripts");
            return;
        }
        let parsed = parse(text);
        match &parsed.trouble {
            Some(why) => self.note(why.trouble, &why.what),
            None => self.ask_second(text, &parsed),
        }
        // A shell of its own knows no functions of this one, nor this one its.
        let functions = std::mem::take(&mut self.functions);
        let mut frame = Frame { text, parsed: &parsed, variables: Variables::new() };
        let defaulted = parsed.defaulted.iter();
        self.found.assignments.extend(
            defaulted.map(|name| Assignment { name: name.clone(), value: Word::default() }),
        );
        self.list(&mut frame, &parsed.list, Stand::default());
        self.has_functions |= !self.functions.is_empty();
        self.functions = functions;
    }

    /// Compares what was read with what another parser reads.
    fn ask_second(&mut self, text: &str, parsed: &Parsed) {
        let mut ours = parsed.marks.clone();
        ours.sort_unstable();
        match tree_sitter_check::marks(text) {
            None => self.doubt("a second parser finds an error in it"),
            Some(theirs) if theirs != ours => self.doubt("two parsers read it differently"),
            Some(_) => {}
        }
    }

    fn list(&mut self, frame: &mut Frame<'_>, list: &List, stand: Stand) {
        for entry in &list.0 {
            self.entry(frame, entry, stand);
        }
    }

    fn entry(&mut self, frame: &mut Frame<'_>, entry: &Entry, stand: Stand) {
        let several = entry.pipeline.len() > 1;
        let apart = several || entry.background;
        let stand = Stand {
            conditional: stand.conditional || entry.depends,
            apart: stand.apart || apart,
            beside: stand.beside || apart,
            ..stand
        };
        let before = self.directory.clone();
        let mut said = Said::default();
        for node in &entry.pipeline {
            let first = self.found.commands.len();
            self.node(frame, node, stand, std::mem::take(&mut said));
            if several {
                said = said_by(&self.found.commands[first..]);
            }
            if apart {
                self.directory.clone_from(&before);
            }
        }
    }

    /// `said` is what the command before it in the pipe writes, if that is known.
    fn node(&mut self, frame: &mut Frame<'_>, node: &Node, stand: Stand, said: Said) {
        match node {
            Node::Simple(simple) => self.simple(frame, simple, stand, said),
            Node::Compound(compound) => self.compound(frame, compound, stand),
            Node::Function { name, body } => self.function(frame, name, body, stand),
        }
    }

    fn compound(&mut self, frame: &mut Frame<'_>, compound: &Compound, stand: Stand) {
        let before = self.directory.clone();
        for word in &compound.words {
            self.substitutions(frame, &word.pieces, stand);
        }
        self.redirects(frame, &compound.redirects, stand);
        if let Some(name) = &compound.variable {
            self.loop_variable(frame, name, &compound.words);
            let assignment = Assignment { name: name.clone(), value: Word::default() };
            self.found.assignments.push(assignment);
        }
        let inner = match compound.kind {
            Kind::Group => stand,
            Kind::Subshell => Stand { apart: true, repeated: false, ..stand },
            Kind::Branches => Stand { conditional: true, ..stand },
            Kind::Loop => Stand { conditional: true, repeated: true, ..stand },
        };
        for list in &compound.lists {
            self.list(frame, list, inner);
            if compound.kind == Kind::Branches && self.directory != before {
                // Which of the branches was taken is not known.
                self.directory = None;
            }
        }
        if compound.kind == Kind::Subshell {
            self.directory = before;
        }
        // Behind the loop it holds what it held before, if the loop was in a process of its own.
        if let Some(name) = &compound.variable {
            frame.variables.remove(name);
        }
    }

    /// The variable of a `for` has the values of its words, one after the other.
    fn loop_variable(&mut self, frame: &mut Frame<'_>, name: &str, words: &[RawWord]) {
        let mut values = Values::default();
        for word in words.iter().flat_map(|word| self.words(frame, word)) {
            // Letters that look like a pattern and are none would be taken for one.
            let is_mixed = word
                .values
                .iter()
                .any(|value| value.contains(['{', '}']) || !word.glob && value.contains(PATTERN));
            if word.values.is_empty() || word.splits || is_mixed {
                frame.variables.remove(name);
                return;
            }
            values.glob |= word.glob;
            values.texts.extend(word.values);
        }
        if is_settled(frame.parsed, name) && !values.texts.is_empty() {
            frame.variables.insert(name.to_owned(), values);
        }
    }

    fn function(&mut self, frame: &mut Frame<'_>, name: &str, body: &Node, stand: Stand) {
        if stand.conditional || stand.apart || stand.repeated {
            self.doubt("a function is defined only sometimes");
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if !name.chars().all(is_plain) || look_through(name, &[]).is_some() || name == "cd" {
            self.doubt("a function takes the name of a command that is needed to understand it");
        }
        if !self.functions.insert(name.to_owned()) {
            self.doubt("a function is defined twice");
        }
        self.inside.push(name.to_owned());
        let inner = Stand { conditional: true, repeated: true, ..Stand::default() };
        self.node(frame, body, inner, Said::default());
        self.inside.pop();
    }

    fn simple(&mut self, frame: &mut Frame<'_>, simple: &Simple, stand: Stand, said: Said) {
        for assignment in &simple.assignments {
            self.substitutions(frame, &assignment.value.pieces, stand);
        }
        for word in &simple.words {
            self.substitutions(frame, &word.pieces, stand);
        }
        self.redirects(frame, &simple.redirects, stand);
        let assignments: Vec<Assignment> = simple
            .assignments
            .iter()
            .map(|one| Assignment { name: one.name.clone(), value: self.value(frame, &one.value) })
            .collect();
        let words: Vec<Word> =
            simple.words.iter().flat_map(|word| self.words(frame, word)).collect();
        if words.is_empty() {
            if !simple.words.is_empty() {
                self.doubt("a command of which nothing is left");
            }
            self.assign(frame, assignments, stand);
            return;
        }
        let typed = match self.typed(frame, &simple.redirects) {
            Some(text) => Said { text: Some(text), files: Vec::new() },
            None => said,
        };
        self.command(words, assignments, stand, typed, 0);
    }

    /// What is given to a command as its input, if it stands in the script.
    fn typed(&self, frame: &Frame<'_>, redirects: &[Redirect]) -> Option<String> {
        let pieces = redirects.iter().rev().find_map(|redirect| match &redirect.target {
            Target::Here(number) => frame.parsed.here.get(*number),
            Target::Word(word) if redirect.operator == Operator::Text => Some(&word.pieces),
            Target::Word(_) => None,
        })?;
        text_of(pieces, self.home.as_deref(), &frame.variables)
    }

    /// Variables that are set for all that follows.
    fn assign(&mut self, frame: &mut Frame<'_>, assignments: Vec<Assignment>, stand: Stand) {
        for assignment in assignments {
            let settled = is_settled(frame.parsed, &assignment.name)
                && !stand.conditional
                && !stand.repeated
                && !stand.apart;
            match assignment.value.known() {
                Some(value) if settled => {
                    let values = Values { texts: vec![value.to_owned()], glob: false };
                    frame.variables.insert(assignment.name.clone(), values);
                }
                _ => {
                    frame.variables.remove(&assignment.name);
                }
            }
            self.found.assignments.push(assignment);
        }
    }

    /// A command and those that it runs.
    fn command(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<Assignment>,
        stand: Stand,
        typed: Said,
        depth: usize,
    ) {
        if self.found.commands.len() >= MAX_COMMANDS || depth > MAX_SCRIPTS {
            self.note(Trouble::Limit, "it runs too many commands");
            return;
        }
        let directory = self.directory.clone();
        let mut command = Command { words, assignments, role: Role::Acts, directory };
        let at = self.found.commands.len();
        let Some(program) = command.program().map(str::to_owned) else {
            self.doubt("the name of a command is not known before it runs");
            self.found.commands.push(command);
            return;
        };
        // Wrappers run programs and know no functions.
        let is_function =
            depth == 0 && command.name().is_some_and(|name| self.functions.contains(name));
        if is_function {
            command.role = Role::Calls;
            if stand.beside && self.inside.contains(&program) {
                self.found.bombs.push(program);
            }
            self.found.commands.push(command);
            return;
        }
        self.look_at_builtin(&program, &command, stand);
        let arguments = command.words[1..].to_vec();
        self.found.commands.push(command);
        let Some(inner) = look_through(&program, &arguments) else { return };
        let neutral = self.inner(&program, inner, stand, typed, depth);
        if neutral {
            self.found.commands[at].role = Role::Wraps;
        }
    }

    /// Follows what a wrapper runs; answers whether the wrapper itself is of no account.
    fn inner(
        &mut self,
        program: &str,
        inner: Inner,
        stand: Stand,
        typed: Said,
        depth: usize,
    ) -> bool {
        match inner {
            Inner::Command { mut words, assignments, neutral } => {
                if let Some(last) = words.last_mut().filter(|word| word.source == INPUT) {
                    last.glob = !typed.files.is_empty();
                    last.values.clone_from(&typed.files);
                }
                if words.is_empty() {
                    return neutral && program == "exec";
                }
                let assignments = assignments
                    .into_iter()
                    .map(|(name, value)| Assignment { name, value })
                    .collect();
                self.command(words, assignments, stand, typed, depth + 1);
                neutral
            }
            Inner::Script { text, neutral } => match text.known() {
                Some(text) => {
                    let before = self.directory.clone();
                    self.script(text);
                    if program == "eval" {
                        self.doubt("`eval` sets what follows it in another light");
                    }
                    self.directory = before;
                    neutral
                }
                None => {
                    self.doubt("a script inside it is not known before it runs");
                    false
                }
            },
            Inner::Input => match typed.text {
                Some(text) => {
                    let before = self.directory.clone();
                    self.script(&text);
                    self.directory = before;
                    true
                }
                None => {
                    self.doubt("a shell takes its commands from its input");
                    false
                }
            },
            Inner::Unclear => {
                self.doubt("a command inside it is not known before it runs");
                false
            }
        }
    }

    /// Builtins that change what the commands behind them mean.
    fn look_at_builtin(&mut self, program: &str, command: &Command, stand: Stand) {
        match program {
            "cd" => self.change_directory(command, stand),
            "pushd" | "popd" => {
                self.changes_directory = true;
                self.directory = None;
            }
            "alias" | "unalias" | "hash" | "enable" | "shopt" | "bind" | "complete" => {
                self.doubt(&format!("`{program}` sets what follows it in another light"));
            }
            "set" => {
                let is_usual = |word: &Word| {
                    matches!(
                        word.known(),
                        Some(
                            "-e" | "-u"
                                | "-x"
                                | "-o"
                                | "+e"
                                | "+u"
                                | "+x"
                                | "-eu"
                                | "-ex"
                                | "-eux"
                                | "-euo"
                                | "-exo"
                                | "-euxo"
                                | "-eo"
                                | "+o"
                                | "pipefail"
                                | "errexit"
                                | "nounset"
                                | "xtrace"
                                | "-ux"
                                | "-xe"
                                | "-ue"
                        )
                    )
                };
                if !command.words[1..].iter().all(is_usual) {
                    self.doubt("`set` sets what follows it in another light");
                }
            }
            _ => {}
        }
    }

    fn change_directory(&mut self, command: &Command, stand: Stand) {
        self.changes_directory = true;
        if stand.repeated {
            self.doubt("`cd` in a loop or a function");
            self.directory = None;
        }
        let arguments = match command.words[1..].split_first() {
            Some((first, rest)) if first.known() == Some("--") => rest,
            _ => &command.words[1..],
        };
        let target = match arguments {
            [] => self.home.clone(),
            [one] => one.known().filter(|path| !path.starts_with('-')).map(str::to_owned),
            _ => None,
        };
        self.directory = match (target, &self.directory) {
            (Some(path), Some(from)) => Some(lexical(&from.join(path))),
            (Some(path), None) if path.starts_with('/') => Some(lexical(Path::new(&path))),
            _ => None,
        };
    }

    fn redirects(&mut self, frame: &mut Frame<'_>, redirects: &[Redirect], stand: Stand) {
        for redirect in redirects {
            let word = match &redirect.target {
                Target::Word(word) => word,
                Target::Here(number) => {
                    let parsed = frame.parsed;
                    if let Some(body) = parsed.here.get(*number) {
                        self.substitutions(frame, body, stand);
                    }
                    continue;
                }
            };
            self.substitutions(frame, &word.pieces, stand);
            let (reads, writes) = match redirect.operator {
                Operator::Read => (true, false),
                Operator::Write => (false, true),
                Operator::ReadWrite => (true, true),
                Operator::Duplicate | Operator::Text => continue,
            };
            // What another command of the script writes or reads is no file.
            if word.pieces.iter().any(|piece| matches!(piece, Piece::Commands { .. }))
                && frame.text[word.start..].starts_with(['<', '>'])
            {
                continue;
            }
            for word in self.words(frame, word) {
                if word.values.iter().chain([&word.prefix]).any(|path| is_connection(path)) {
                    self.doubt("a redirection opens a connection");
                }
                let touched = Touched { word, directory: self.directory.clone() };
                if reads {
                    self.found.reads.push(touched.clone());
                }
                if writes {
                    self.found.writes.push(touched);
                }
            }
        }
    }

    /// Follows the commands inside words.
    fn substitutions(&mut self, frame: &mut Frame<'_>, pieces: &[Piece], stand: Stand) {
        for piece in pieces {
            match piece {
                Piece::Commands { list, .. } => {
                    let before = self.directory.clone();
                    self.list(frame, list, Stand { apart: true, ..stand });
                    self.directory = before;
                }
                Piece::Script { text, .. } => {
                    let before = self.directory.clone();
                    self.script(text);
                    self.directory = before;
                }
                Piece::Unknown { inner, .. } => self.substitutions(frame, inner, stand),
                Piece::Arithmetic { inner, names, .. } => {
                    self.substitutions(frame, inner, stand);
                    if !names.iter().all(|name| is_number(&frame.variables, name)) {
                        self.doubt("it calculates with a value that is not known before it runs");
                    }
                }
                Piece::Literal { .. } | Piece::Variable { .. } => {}
            }
        }
    }

    fn words(&self, frame: &Frame<'_>, word: &RawWord) -> Vec<Word> {
        expand(word, frame.text, self.home.as_deref(), &frame.variables)
    }

    /// The value of an assignment: never several words.
    fn value(&self, frame: &Frame<'_>, word: &RawWord) -> Word {
        let source = frame.text.get(word.start..word.end).unwrap_or_default().to_owned();
        let value = text_of(&word.pieces, self.home.as_deref(), &frame.variables);
        Word { source, values: value.into_iter().collect(), ..Word::default() }
    }
}

/// Whether a variable has one value in the whole script, given to it in plain sight.
fn is_settled(parsed: &Parsed, name: &str) -> bool {
    parsed.assigned.get(name) == Some(&1)
        && !parsed.mentioned.contains(name)
        && !parsed.sets_unseen
        && !matches!(name, "IFS" | "RANDOM" | "SECONDS" | "LINENO" | "_" | "REPLY" | "PWD")
        && !name.starts_with("BASH")
}

/// Whether a variable is known to hold nothing but digits.
fn is_number(variables: &Variables, name: &str) -> bool {
    let is_digits = |text: &String| {
        (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    variables
        .get(name)
        .is_some_and(|values| !values.texts.is_empty() && values.texts.iter().all(is_digits))
}

/// Bash opens connections by names that are no files.
fn is_connection(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

/// What `echo` and `printf` of a plain text write into a pipe, and the files that `find` lists.
fn said_by(commands: &[Command]) -> Said {
    let [command] = commands else { return Said::default() };
    let words: Option<Vec<&str>> = command.words.iter().map(Word::known).collect();
    let text = match words.unwrap_or_default().as_slice() {
        ["find", arguments @ ..] if !arguments.iter().any(|word| word.starts_with("-print")) => {
            let is_start = |word: &&&str| !word.starts_with(['-', '(', '!']);
            let starts: Vec<&&str> = arguments.iter().take_while(is_start).collect();
            let files = match starts.as_slice() {
                [] => vec!["./**".to_owned()],
                starts => starts.iter().map(|start| format!("{start}/**")).collect(),
            };
            return Said { text: None, files };
        }
        ["echo", "-e" | "-n" | "-E", texts @ ..] | ["echo", texts @ ..] => Some(texts.join(" ")),
        ["printf", "%s" | "%s\\n", text] | ["printf", text] => Some((*text).to_owned()),
        _ => None,
    };
    Said { text, files: Vec::new() }
}
