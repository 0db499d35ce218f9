//! Follows a script as the shell would run it: the commands, their directories and their values.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::parse::{Parsed, parse};
use super::syntax::{
    Compound, CompoundKind, Entry, List, Node, Operator, Piece, RawWord, Redirect, Simple, Target,
};
use super::value::{Values, Variables, expand, text_of};
use super::wrapper::{INPUT_PLACEHOLDER, Wrapped, wrapped_command};
use super::{
    Assignment, Command, CommandAnalysis, MAX_BYTES, MAX_COMMANDS, RedirectedFile, Role,
    ShellContext, Unparsed, UnparsedKind, Word, normalize_lexically, tree_sitter_cross_check,
};

/// Characters that make a word a pattern.
const GLOB_CHARS: [char; 4] = ['*', '?', '[', ']'];

/// A number with this many digits fits in the shell's integers.
const MAX_DIGITS: usize = 18;

/// The limit of scripts inside scripts.
const MAX_NESTED_SCRIPTS: usize = 10;

/// Analyzes a script and all scripts in it.
pub(super) fn analyze(text: &str, context: &ShellContext) -> CommandAnalysis {
    let home = context.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned);
    let mut walk = ScriptWalk {
        home,
        analysis: CommandAnalysis::default(),
        directory: Some(normalize_lexically(&context.directory)),
        changes_directory: false,
        functions: HashSet::new(),
        has_functions: false,
        open_functions: Vec::new(),
        scripts: 0,
        bytes: 0,
    };
    walk.script(text);
    if walk.changes_directory && walk.has_functions {
        walk.note_unsupported("it defines functions and changes its directory");
    }
    walk.analysis
}

/// The state of the analysis.
struct ScriptWalk {
    home: Option<String>,
    analysis: CommandAnalysis,
    directory: Option<PathBuf>,
    changes_directory: bool,
    functions: HashSet<String>,
    has_functions: bool,
    /// The functions whose bodies are being followed.
    open_functions: Vec<String>,
    scripts: usize,
    bytes: usize,
}

/// The known output of a command into a pipe.
#[derive(Debug, Default)]
struct PipedOutput {
    text: Option<String>,
    /// Patterns of the file names in the output.
    files: Vec<String>,
}

/// A script that is being followed, and the known values of its variables.
struct Frame<'a> {
    text: &'a str,
    parsed: &'a Parsed,
    variables: Variables,
}

/// How a part of the script is executed.
#[derive(Debug, Clone, Copy, Default)]
struct Execution {
    /// It may or may not run.
    conditional: bool,
    /// It may run repeatedly, or later.
    repeated: bool,
    /// It runs in a process of its own, so its assignments are lost.
    in_subprocess: bool,
    /// It runs concurrently with other commands.
    concurrent: bool,
}

impl ScriptWalk {
    fn record(&mut self, kind: UnparsedKind, reason: &str) {
        if self.analysis.unparsed.as_ref().is_none_or(|worst| worst.kind < kind) {
            self.analysis.unparsed = Some(Unparsed { kind, reason: reason.to_owned() });
        }
    }

    fn note_unsupported(&mut self, reason: &str) {
        self.record(UnparsedKind::Unsupported, reason);
    }

    /// Follows a script, which has its own variables.
    fn script(&mut self, text: &str) {
        self.scripts += 1;
        self.bytes += text.len();
        if self.scripts > MAX_NESTED_SCRIPTS || self.bytes > 2 * MAX_BYTES {
            self.record(UnparsedKind::Limit, "it has too many nested scripts");
            return;
        }
        let parsed = parse(text);
        match &parsed.unparsed {
            Some(why) => self.record(why.kind, &why.reason),
            None => self.compare_with_tree_sitter(text, &parsed),
        }
        // A separate shell does not share functions with this one.
        let functions = std::mem::take(&mut self.functions);
        let mut frame = Frame { text, parsed: &parsed, variables: Variables::new() };
        let defaulted = parsed.assigned_by_expansion.iter();
        self.analysis.assignments.extend(
            defaulted.map(|name| Assignment { name: name.clone(), value: Word::default() }),
        );
        self.list(&mut frame, &parsed.list, Execution::default());
        self.has_functions |= !self.functions.is_empty();
        self.functions = functions;
    }

    /// Compares our parser's offsets with those of tree-sitter.
    fn compare_with_tree_sitter(&mut self, text: &str, parsed: &Parsed) {
        match tree_sitter_cross_check::command_offsets(text) {
            None => self.note_unsupported("tree-sitter finds a syntax error in it"),
            Some(theirs) if !theirs.iter().eq(&parsed.offsets) => {
                self.note_unsupported("tree-sitter parses it differently");
            }
            Some(_) => {}
        }
    }

    fn list(&mut self, frame: &mut Frame<'_>, list: &List, execution: Execution) {
        for entry in &list.0 {
            self.entry(frame, entry, execution);
        }
    }

    fn entry(&mut self, frame: &mut Frame<'_>, entry: &Entry, execution: Execution) {
        let several = entry.pipeline.len() > 1;
        let apart = several || entry.background;
        let execution = Execution {
            conditional: execution.conditional || entry.is_conditional,
            in_subprocess: execution.in_subprocess || apart,
            concurrent: execution.concurrent || apart,
            ..execution
        };
        let before = apart.then(|| self.directory.clone());
        let mut piped = PipedOutput::default();
        for node in &entry.pipeline {
            let first = self.analysis.commands.len();
            self.node(frame, node, execution, std::mem::take(&mut piped));
            if several {
                piped = piped_output(&self.analysis.commands[first..]);
            }
            if let Some(before) = &before {
                self.directory.clone_from(before);
            }
        }
    }

    /// `piped` is the known output of the previous command of the pipeline.
    fn node(
        &mut self,
        frame: &mut Frame<'_>,
        node: &Node,
        execution: Execution,
        piped: PipedOutput,
    ) {
        match node {
            Node::Simple(simple) => self.simple(frame, simple, execution, piped),
            Node::Compound(compound) => self.compound(frame, compound, execution),
            Node::Function { name, body } => self.function(frame, name, body, execution),
        }
    }

    fn compound(&mut self, frame: &mut Frame<'_>, compound: &Compound, execution: Execution) {
        let before = self.directory.clone();
        for word in &compound.words {
            self.substitutions(frame, &word.pieces, execution);
        }
        self.redirects(frame, &compound.redirects, execution);
        if let Some(name) = &compound.variable {
            self.loop_variable(frame, name, &compound.words);
            let assignment = Assignment { name: name.clone(), value: Word::default() };
            self.analysis.assignments.push(assignment);
        }
        let inner = match compound.kind {
            CompoundKind::Group => execution,
            CompoundKind::Subshell => {
                Execution { in_subprocess: true, repeated: false, ..execution }
            }
            CompoundKind::Branches => Execution { conditional: true, ..execution },
            CompoundKind::Loop => Execution { conditional: true, repeated: true, ..execution },
        };
        for list in &compound.lists {
            self.list(frame, list, inner);
            if compound.kind == CompoundKind::Branches && self.directory != before {
                // It is not known which branch was taken.
                self.directory = None;
            }
        }
        if compound.kind == CompoundKind::Subshell {
            self.directory = before;
        }
        // After the loop the variable has its old value if the loop ran in a process of its own.
        if let Some(name) = &compound.variable {
            frame.variables.remove(name);
        }
    }

    /// Gives the variable of a `for` the values of its words.
    fn loop_variable(&mut self, frame: &mut Frame<'_>, name: &str, words: &[RawWord]) {
        let mut values = Values::default();
        for word in words.iter().flat_map(|word| self.words(frame, word)) {
            // Literal pattern characters would be mistaken for a pattern.
            let is_mixed = word.values.iter().any(|value| {
                value.contains(['{', '}']) || !word.glob && value.contains(GLOB_CHARS)
            });
            if word.values.is_empty() || word.splits || is_mixed {
                frame.variables.remove(name);
                return;
            }
            values.glob |= word.glob;
            values.texts.extend(word.values);
        }
        if is_assigned_once(frame.parsed, name) && !values.texts.is_empty() {
            frame.variables.insert(name.to_owned(), values);
        }
    }

    fn function(&mut self, frame: &mut Frame<'_>, name: &str, body: &Node, execution: Execution) {
        if execution.conditional || execution.in_subprocess || execution.repeated {
            self.note_unsupported("a function is defined conditionally");
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.chars().all(is_plain) || wrapped_command(name, &[]).is_some() || name == "cd" {
            self.note_unsupported("a function replaces a command that the analysis depends on");
        }
        if !self.functions.insert(name.to_owned()) {
            self.note_unsupported("a function is defined twice");
        }
        self.open_functions.push(name.to_owned());
        let inner = Execution { conditional: true, repeated: true, ..Execution::default() };
        self.node(frame, body, inner, PipedOutput::default());
        self.open_functions.pop();
    }

    fn simple(
        &mut self,
        frame: &mut Frame<'_>,
        simple: &Simple,
        execution: Execution,
        piped: PipedOutput,
    ) {
        for assignment in &simple.assignments {
            self.substitutions(frame, &assignment.value.pieces, execution);
        }
        for word in &simple.words {
            self.substitutions(frame, &word.pieces, execution);
        }
        self.redirects(frame, &simple.redirects, execution);
        let assignments: Vec<Assignment> = simple
            .assignments
            .iter()
            .map(|one| Assignment { name: one.name.clone(), value: self.value(frame, &one.value) })
            .collect();
        let mut words = Vec::with_capacity(simple.words.len());
        for word in &simple.words {
            self.expand_into(&mut words, frame, word);
        }
        if words.is_empty() {
            if !simple.words.is_empty() {
                self.note_unsupported("a command expands to nothing");
            }
            self.assign(frame, assignments, execution);
            return;
        }
        let input = match self.literal_input(frame, &simple.redirects) {
            Some(text) => PipedOutput { text: Some(text), files: Vec::new() },
            None => piped,
        };
        self.command(words, assignments, execution, input, 0);
    }

    /// The input of a command from a here-document or here-string, if known.
    fn literal_input(&self, frame: &Frame<'_>, redirects: &[Redirect]) -> Option<String> {
        let pieces = redirects.iter().rev().find_map(|redirect| match &redirect.target {
            Target::Here(number) => frame.parsed.here_documents.get(*number),
            Target::Word(word) if redirect.operator == Operator::Text => Some(&word.pieces),
            Target::Word(_) => None,
        })?;
        text_of(pieces, self.home.as_deref(), &frame.variables)
    }

    /// Records variables that are set for the rest of the script.
    fn assign(
        &mut self,
        frame: &mut Frame<'_>,
        assignments: Vec<Assignment>,
        execution: Execution,
    ) {
        for assignment in assignments {
            let is_known = is_assigned_once(frame.parsed, &assignment.name)
                && !execution.conditional
                && !execution.repeated
                && !execution.in_subprocess;
            match assignment.value.known() {
                Some(value) if is_known => {
                    let values = Values { texts: vec![value.to_owned()], glob: false };
                    frame.variables.insert(assignment.name.clone(), values);
                }
                _ => {
                    frame.variables.remove(&assignment.name);
                }
            }
            self.analysis.assignments.push(assignment);
        }
    }

    /// Records a command and the commands that it runs.
    fn command(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<Assignment>,
        execution: Execution,
        input: PipedOutput,
        depth: usize,
    ) {
        if self.analysis.commands.len() >= MAX_COMMANDS || depth > MAX_NESTED_SCRIPTS {
            self.record(UnparsedKind::Limit, "it runs too many commands");
            return;
        }
        let directory = self.directory.clone();
        let mut command = Command { words, assignments, role: Role::Ordinary, directory };
        let at = self.analysis.commands.len();
        let Some(program) = command.program() else {
            self.note_unsupported("the name of a command is not known before it runs");
            self.analysis.commands.push(command);
            return;
        };
        // Wrappers run programs, not functions.
        let is_function =
            depth == 0 && command.name().is_some_and(|name| self.functions.contains(name));
        if is_function {
            if execution.concurrent && self.open_functions.iter().any(|open| open == program) {
                self.analysis.fork_bombs.push(program.to_owned());
            }
            command.role = Role::FunctionCall;
            self.analysis.commands.push(command);
            return;
        }
        self.apply_builtin(program, &command, execution);
        let Some(inner) = wrapped_command(program, &command.words[1..]) else {
            self.analysis.commands.push(command);
            return;
        };
        let program = program.to_owned();
        self.analysis.commands.push(command);
        let neutral = self.follow_wrapped(&program, inner, execution, input, depth);
        if neutral {
            self.analysis.commands[at].role = Role::Wrapper;
        }
    }

    /// Follows the command that a wrapper runs. Returns whether the wrapper itself has no effect.
    fn follow_wrapped(
        &mut self,
        program: &str,
        inner: Wrapped,
        execution: Execution,
        input: PipedOutput,
        depth: usize,
    ) -> bool {
        match inner {
            Wrapped::Command { mut words, assignments, neutral } => {
                if let Some(last) = words.last_mut().filter(|word| word.source == INPUT_PLACEHOLDER)
                {
                    last.glob = !input.files.is_empty();
                    last.values.clone_from(&input.files);
                }
                if words.is_empty() {
                    return neutral && program == "exec";
                }
                let assignments = assignments
                    .into_iter()
                    .map(|(name, value)| Assignment { name, value })
                    .collect();
                self.command(words, assignments, execution, input, depth + 1);
                neutral
            }
            Wrapped::Script { text, neutral } => match text.known() {
                Some(text) => {
                    let before = self.directory.clone();
                    self.script(text);
                    if program == "eval" {
                        self.note_unsupported("`eval` can change the meaning of later commands");
                    }
                    self.directory = before;
                    neutral
                }
                None => {
                    self.note_unsupported("a script inside it is not known before it runs");
                    false
                }
            },
            Wrapped::Input => match input.text {
                Some(text) => {
                    let before = self.directory.clone();
                    self.script(&text);
                    self.directory = before;
                    true
                }
                None => {
                    self.note_unsupported("a shell reads commands from its input");
                    false
                }
            },
            Wrapped::Unknown => {
                self.note_unsupported("a command inside it is not known before it runs");
                false
            }
        }
    }

    /// Applies builtins that change the meaning of later commands.
    fn apply_builtin(&mut self, program: &str, command: &Command, execution: Execution) {
        match program {
            "cd" => self.change_directory(command, execution),
            "pushd" | "popd" => {
                self.changes_directory = true;
                self.directory = None;
            }
            "alias" | "unalias" | "hash" | "enable" | "shopt" | "bind" | "complete" => {
                self.note_unsupported(&format!(
                    "`{program}` can change the meaning of later commands"
                ));
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
                    self.note_unsupported("`set` can change the meaning of later commands");
                }
            }
            _ => {}
        }
    }

    fn change_directory(&mut self, command: &Command, execution: Execution) {
        self.changes_directory = true;
        if execution.repeated {
            self.note_unsupported("it has `cd` in a loop or a function");
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
            (Some(path), Some(from)) => Some(normalize_lexically(&from.join(path))),
            (Some(path), None) if path.starts_with('/') => {
                Some(normalize_lexically(Path::new(&path)))
            }
            _ => None,
        };
    }

    fn redirects(&mut self, frame: &mut Frame<'_>, redirects: &[Redirect], execution: Execution) {
        for redirect in redirects {
            let word = match &redirect.target {
                Target::Word(word) => word,
                Target::Here(number) => {
                    let parsed = frame.parsed;
                    if let Some(body) = parsed.here_documents.get(*number) {
                        self.substitutions(frame, body, execution);
                    }
                    continue;
                }
            };
            self.substitutions(frame, &word.pieces, execution);
            let (reads, writes) = match redirect.operator {
                Operator::Read => (true, false),
                Operator::Write => (false, true),
                Operator::ReadWrite => (true, true),
                Operator::Duplicate | Operator::Text => continue,
            };
            // A process substitution is not a file.
            if word.pieces.iter().any(|piece| matches!(piece, Piece::Commands { .. }))
                && frame.text[word.start..].starts_with(['<', '>'])
            {
                continue;
            }
            for word in self.words(frame, word) {
                if word.values.iter().chain([&word.prefix]).any(|path| is_connection(path)) {
                    self.note_unsupported("a redirection opens a connection");
                }
                let file = RedirectedFile { word, directory: self.directory.clone() };
                if reads {
                    self.analysis.reads.push(file.clone());
                }
                if writes {
                    self.analysis.writes.push(file);
                }
            }
        }
    }

    /// Follows the command substitutions inside words.
    fn substitutions(&mut self, frame: &mut Frame<'_>, pieces: &[Piece], execution: Execution) {
        for piece in pieces {
            match piece {
                Piece::Commands { list, .. } => {
                    let before = self.directory.clone();
                    self.list(frame, list, Execution { in_subprocess: true, ..execution });
                    self.directory = before;
                }
                Piece::Script { text, .. } => {
                    let before = self.directory.clone();
                    self.script(text);
                    self.directory = before;
                }
                Piece::Unknown { inner, .. } => self.substitutions(frame, inner, execution),
                Piece::Arithmetic { inner, names, .. } => {
                    self.substitutions(frame, inner, execution);
                    if !names.iter().all(|name| is_number(&frame.variables, name)) {
                        self.note_unsupported(
                            "an arithmetic expression has a value that is not known before it runs",
                        );
                    }
                }
                Piece::Literal { .. } | Piece::Variable { .. } => {}
            }
        }
    }

    fn words(&self, frame: &Frame<'_>, word: &RawWord) -> Vec<Word> {
        let mut words = Vec::with_capacity(1);
        self.expand_into(&mut words, frame, word);
        words
    }

    fn expand_into(&self, words: &mut Vec<Word>, frame: &Frame<'_>, word: &RawWord) {
        expand(words, word, frame.text, self.home.as_deref(), &frame.variables);
    }

    /// The value of an assignment, which is never split into words.
    fn value(&self, frame: &Frame<'_>, word: &RawWord) -> Word {
        let source = frame.text.get(word.start..word.end).unwrap_or_default().to_owned();
        let value = text_of(&word.pieces, self.home.as_deref(), &frame.variables);
        Word { source, values: value.into_iter().collect(), ..Word::default() }
    }
}

/// Whether a variable has a single, explicit assignment in the whole script.
fn is_assigned_once(parsed: &Parsed, name: &str) -> bool {
    parsed.assignment_counts.get(name) == Some(&1)
        && !parsed.assigned_indirectly.contains(name)
        && !parsed.sets_unknown_variables
        && !matches!(name, "IFS" | "RANDOM" | "SECONDS" | "LINENO" | "_" | "REPLY" | "PWD")
        && !name.starts_with("BASH")
}

/// Whether a variable is known to contain only digits.
fn is_number(variables: &Variables, name: &str) -> bool {
    let is_digits = |text: &String| {
        (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    variables
        .get(name)
        .is_some_and(|values| !values.texts.is_empty() && values.texts.iter().all(is_digits))
}

/// Whether bash opens a network connection for this path.
fn is_connection(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

/// The text that `echo` or `printf` writes into a pipe, or the files that `find` lists.
fn piped_output(commands: &[Command]) -> PipedOutput {
    let [command] = commands else { return PipedOutput::default() };
    if !matches!(command.name(), Some("find" | "echo" | "printf")) {
        return PipedOutput::default();
    }
    let words: Option<Vec<&str>> = command.words.iter().map(Word::known).collect();
    let text = match words.unwrap_or_default().as_slice() {
        ["find", arguments @ ..] if !arguments.iter().any(|word| word.starts_with("-print")) => {
            let is_start = |word: &&&str| !word.starts_with(['-', '(', '!']);
            let starts: Vec<&&str> = arguments.iter().take_while(is_start).collect();
            let files = match starts.as_slice() {
                [] => vec!["./**".to_owned()],
                starts => starts.iter().map(|start| format!("{start}/**")).collect(),
            };
            return PipedOutput { text: None, files };
        }
        ["echo", "-e" | "-n" | "-E", texts @ ..] | ["echo", texts @ ..] => Some(texts.join(" ")),
        ["printf", "%s" | "%s\\n", text] | ["printf", text] => Some((*text).to_owned()),
        _ => None,
    };
    PipedOutput { text, files: Vec::new() }
}
