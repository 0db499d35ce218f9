//! The simple commands of a script in running order, with marked parts, for display.

use std::ops::Range;

use tree_sitter::{Node, Tree, TreeCursor};

use crate::command::{
    MAX_COMMANDS, RedirectedFile, Role, ShellContext, analyze_command, parse_tree,
};
use crate::read_only_commands::files_if_read_only;
use crate::shown_parts::ShownParts;

/// A simple command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStep {
    /// Its text, after the operators in front of it.
    pub text: String,
    /// Whether it may do more than read.
    pub writes: bool,
    /// The marked parts, as ranges of bytes of the text, in order.
    pub spans: Vec<(Range<usize>, StepPart)>,
}

/// What a marked part of a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPart {
    /// The name of the program.
    Program,
    /// A path.
    Path,
    /// A path that is written.
    Write,
    /// The operator of a redirection.
    Redirect,
    /// An operator or a word of the shell in front of the command.
    Operator,
}

/// The steps of a script, in running order: a substitution comes before the command that uses it. Fails with the
/// reason if the script is not parsed, or if the steps would hide a part of it, such as a function's name.
pub fn command_steps(text: &str) -> Result<Vec<CommandStep>, String> {
    let analysis = analyze_command(text, &ShellContext::default());
    if let Some(unparsed) = analysis.unparsed {
        return Err(unparsed.reason);
    }
    let tree = parse_tree(text).ok_or("it is not parsed")?;
    let (operators, open) = (Vec::new(), Vec::new());
    let shown = ShownParts::default();
    let mut walk = Walk { text, steps: Vec::new(), shown, operators, open, last: 0..0 };
    walk.run(&tree);
    if walk.steps.len() > MAX_COMMANDS {
        return Err(format!("it has more than {MAX_COMMANDS} commands"));
    }
    match walk.shown.first_hidden_line(text, &tree) {
        Some(line) => Err(format!("line {line} has a part that is not a simple command")),
        None => Ok(walk.steps),
    }
}

struct Walk<'t> {
    text: &'t str,
    steps: Vec<CommandStep>,
    /// The parts of the script that are in the steps.
    shown: ShownParts,
    /// Operators since the last command.
    operators: Vec<Range<usize>>,
    /// The operators in front of each command that the walk is in.
    open: Vec<Vec<Range<usize>>>,
    /// Where the last step is in the script.
    last: Range<usize>,
}

/// Operators and words in front of commands.
const OPERATORS: [&str; 22] = [
    "&&", "||", "|", "|&", "&", "!", "(", "{", "$(", "`", "<(", ">(", "if", "then", "elif", "else",
    "while", "until", "do", "((", "[[", "coproc",
];

impl Walk<'_> {
    /// Visits every node without recursion: a tree can be as deep as its text is long.
    fn run(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        loop {
            self.enter(cursor.node());
            if cursor.goto_first_child() {
                continue;
            }
            loop {
                self.leave(&mut cursor);
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn enter(&mut self, node: Node<'_>) {
        if is_step(node) {
            self.open.push(std::mem::take(&mut self.operators));
        } else if !node.is_named() && OPERATORS.contains(&node.kind()) && !is_in_words(node) {
            self.operators.push(node.byte_range());
        } else if let Some(header) = header(node) {
            let operators = std::mem::take(&mut self.operators);
            self.add(header, operators, Vec::new());
        }
    }

    fn leave(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        if is_step(node) {
            let operators = self.open.pop().unwrap_or_default();
            // Those of a substitution end with it.
            self.operators.clear();
            let whole = redirected(node).unwrap_or(node);
            let mut spans = self.word_spans(node);
            if whole != node {
                spans.extend(redirect_spans(whole));
            }
            self.add(whole.byte_range(), operators, spans);
        } else if node.kind() == "redirected_statement" {
            match node.child_by_field_name("body") {
                Some(body) if is_step(body) => {}
                Some(body) => {
                    self.add_redirects(body.end_byte()..node.end_byte(), redirect_spans(node));
                }
                // It creates or empties a file without a command.
                None => {
                    let operators = std::mem::take(&mut self.operators);
                    self.add(node.byte_range(), operators, redirect_spans(node));
                }
            }
        } else if !node.is_named() && matches!(node.kind(), ")" | "}" | ";" | "fi" | "done") {
            self.operators.clear();
            self.close(node);
        }
    }

    /// Adds the end of a compound command to its last step, so that the steps show how far it goes.
    fn close(&mut self, end: Node<'_>) {
        let Some(compound) = end.parent() else { return };
        let is_end = match compound.kind() {
            "do_group" | "if_statement" => matches!(end.kind(), "done" | "fi"),
            "subshell" => end.kind() == ")",
            "compound_statement" => end.kind() == "}",
            _ => false,
        };
        // A loop without commands has no step to add it to.
        let is_inside = self.last.start >= compound.start_byte();
        let Some(step) = self.steps.last_mut().filter(|_| is_end && is_inside) else { return };
        step.text += if end.kind() == ")" { " " } else { "; " };
        let start = step.text.len();
        step.text += end.kind();
        step.spans.push((start..step.text.len(), StepPart::Operator));
        self.last.end = end.end_byte();
    }

    /// Adds redirections behind several commands: those of the last one of a pipeline, or of a compound command.
    fn add_redirects(&mut self, range: Range<usize>, spans: Vec<(Range<usize>, StepPart)>) {
        if self.last.end != range.start {
            return self.add(range, Vec::new(), spans);
        }
        let Some((step, more)) = self.steps.last_mut().zip(self.text.get(range.clone())) else {
            return;
        };
        let front = step.text.len();
        let shift =
            |span: Range<usize>| span.start - range.start + front..span.end - range.start + front;
        step.text += more.trim_end();
        step.spans.extend(spans.into_iter().map(|(span, part)| (shift(span), part)));
        step.writes |= writes(&format!(":{more}"));
        self.shown.add(range.start..range.start + more.trim_end().len());
        self.last.end = range.end;
    }

    /// Adds a step of a range of the script.
    fn add(
        &mut self,
        range: Range<usize>,
        operators: Vec<Range<usize>>,
        mut spans: Vec<(Range<usize>, StepPart)>,
    ) {
        // One more than allowed is an error.
        if self.steps.len() > MAX_COMMANDS {
            return;
        }
        let Some(command) = self.text.get(range.clone()) else { return };
        let mut text = String::new();
        let mut marked = Vec::new();
        for operator in operators {
            let start = text.len();
            text += self.text.get(operator.clone()).unwrap_or_default();
            self.shown.add(operator);
            marked.push((start..text.len(), StepPart::Operator));
            text.push(' ');
        }
        let trimmed = command.trim_start();
        let start = range.start + (command.len() - trimmed.len());
        let (front, end) = (text.len(), start + trimmed.trim_end().len());
        text += trimmed.trim_end();
        self.last = start..end;
        self.shown.add(start..end);
        spans.sort_by_key(|(span, _)| span.start);
        let inside = |span: &Range<usize>| span.start >= start && span.end <= end;
        let spans = spans.into_iter().filter(|(span, _)| inside(span));
        marked.extend(
            spans.map(|(span, part)| (span.start - start + front..span.end - start + front, part)),
        );
        self.steps.push(CommandStep { writes: writes(trimmed), text, spans: marked });
    }

    /// The program and the paths of a command.
    fn word_spans(&self, node: Node<'_>) -> Vec<(Range<usize>, StepPart)> {
        let text = |node: Node<'_>| self.text.get(node.byte_range()).unwrap_or_default();
        let Some(name) = node.child_by_field_name("name") else { return Vec::new() };
        let mut spans = vec![(name.byte_range(), StepPart::Program)];
        let mut cursor = node.walk();
        let arguments: Vec<Node<'_>> =
            node.children_by_field_name("argument", &mut cursor).collect();
        let words: Vec<&str> = arguments.iter().map(|argument| text(*argument)).collect();
        let written = written_operands(text(name), &words);
        for (at, (argument, word)) in arguments.iter().zip(&words).enumerate() {
            if written.contains(&at) {
                spans.push((argument.byte_range(), StepPart::Write));
            } else if looks_like_path(word) {
                spans.push((argument.byte_range(), StepPart::Path));
            }
        }
        spans.extend(redirect_spans(node));
        spans
    }
}

/// Whether a node is a simple command.
fn is_step(node: Node<'_>) -> bool {
    let is_part = |node: Node<'_>| {
        let parent = node.parent().map(|parent| parent.kind());
        matches!(parent, Some("command" | "declaration_command" | "variable_assignments"))
            || matches!(parent, Some("for_statement" | "c_style_for_statement"))
    };
    match node.kind() {
        "command" | "declaration_command" | "unset_command" | "test_command" => node.is_named(),
        "variable_assignment" | "variable_assignments" => !is_part(node),
        _ => false,
    }
}

/// Whether an anonymous node belongs to the words of a test or an expansion.
fn is_in_words(node: Node<'_>) -> bool {
    let parent = node.parent().map_or("", |parent| parent.kind());
    matches!(parent, "test_command" | "binary_expression" | "unary_expression" | "expansion")
        || matches!(parent, "parenthesized_expression" | "negation_expression" | "extglob_pattern")
}

/// The first part of a loop over words or of a choice by patterns.
fn header(node: Node<'_>) -> Option<Range<usize>> {
    let end = match node.kind() {
        "for_statement" | "c_style_for_statement" if node.is_named() => {
            node.child_by_field_name("body")?.start_byte()
        }
        "case_statement" if node.is_named() => node.child_by_field_name("value")?.end_byte(),
        _ => return None,
    };
    Some(node.start_byte()..end)
}

/// The statement that redirects a command.
fn redirected(node: Node<'_>) -> Option<Node<'_>> {
    let parent = node.parent().filter(|parent| parent.kind() == "redirected_statement")?;
    (parent.child_by_field_name("body") == Some(node)).then_some(parent)
}

fn redirect_spans(node: Node<'_>) -> Vec<(Range<usize>, StepPart)> {
    let mut cursor = node.walk();
    let mut spans = Vec::new();
    for redirect in node.children(&mut cursor) {
        if redirect.kind() != "file_redirect" {
            continue;
        }
        let mut inner = redirect.walk();
        let operator = redirect.children(&mut inner).find(|child| !child.is_named());
        let Some(operator) = operator else { continue };
        spans.push((operator.byte_range(), StepPart::Redirect));
        let part = if operator.kind().contains('>') { StepPart::Write } else { StepPart::Path };
        let target = redirect.child_by_field_name("destination");
        // `2>&1` names no file.
        if let Some(target) = target.filter(|target| target.kind() != "number") {
            spans.push((target.byte_range(), part));
        }
    }
    spans
}

/// Whether a command may do more than read.
fn writes(text: &str) -> bool {
    let analysis = analyze_command(text, &ShellContext::default());
    let is_nowhere = |file: &RedirectedFile| file.word.known() == Some("/dev/null");
    let mut acting = analysis.commands.iter().filter(|command| command.role != Role::Wrapper);
    analysis.unparsed.is_some()
        || !analysis.writes.iter().all(is_nowhere)
        || acting.any(|command| files_if_read_only(command).is_none())
}

/// Which operands of some well-known programs are written.
fn written_operands(program: &str, words: &[&str]) -> Vec<usize> {
    let is_operand = |at: &usize| !words[*at].starts_with('-');
    let operands: Vec<usize> = (0..words.len()).filter(is_operand).collect();
    let without_first = || operands.iter().skip(1).copied().collect();
    match program.rsplit('/').next().unwrap_or(program) {
        "rm" | "rmdir" | "mkdir" | "touch" | "tee" | "truncate" | "shred" | "unlink" | "mkfifo"
        | "mv" => operands,
        "chmod" | "chown" | "chgrp" => without_first(),
        "cp" | "ln" | "install" | "rsync" => operands.last().copied().into_iter().collect(),
        "dd" => operands.into_iter().filter(|at| words[*at].starts_with("of=")).collect(),
        "sed" if words.iter().any(|word| word.starts_with("-i") || *word == "--in-place") => {
            without_first()
        }
        _ => Vec::new(),
    }
}

/// Whether a word is probably a path.
fn looks_like_path(word: &str) -> bool {
    let word = word.trim_matches(['\'', '"']);
    if word.starts_with('-') || word.contains("://") || word.is_empty() {
        return false;
    }
    let has_ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        let is_ending = (1..=5).contains(&ending.len());
        !stem.is_empty() && is_ending && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    word.contains('/') || word.starts_with('~') || matches!(word, "." | "..") || has_ending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        command_steps(script).unwrap().into_iter().map(|step| step.text).collect()
    }

    #[test]
    fn steps_are_in_running_order_with_their_operators() {
        assert_eq!(
            texts("cd src && rm -rf -- *.o | tee log > out.txt; echo done"),
            ["cd src", "&& rm -rf -- *.o", "| tee log > out.txt", "echo done"]
        );
        assert_eq!(texts("echo $(rm x) end"), ["$( rm x", "echo $(rm x) end"]);
        assert_eq!(
            texts("if test -f a; then rm a; else touch a; fi; ls"),
            ["if test -f a", "then rm a", "else touch a; fi", "ls"]
        );
        assert_eq!(
            texts("for f in *.c; do rm \"$f\"; done"),
            ["for f in *.c;", "do rm \"$f\"; done"]
        );
        assert_eq!(
            texts("while read a; do (echo \"$a\"; ls)\ndone < list | sort"),
            ["while read a", "do ( echo \"$a\"", "ls ); done < list", "| sort"]
        );
        assert_eq!(texts("{ echo a; echo b; } > both"), ["{ echo a", "echo b; } > both"]);
        assert_eq!(texts("A=1; B=2 make all\nexport C=3"), ["A=1", "B=2 make all", "export C=3"]);
        assert_eq!(texts("(cd x; make) & wait"), ["( cd x", "make )", "& wait"]);
        assert!(command_steps("echo 'open").is_err());
    }

    #[test]
    fn paths_and_writes_are_marked() {
        let parts = |script: &str| -> Vec<(String, StepPart)> {
            let steps = command_steps(script).unwrap();
            let parts = steps.iter().flat_map(|step| {
                step.spans.iter().map(|(span, part)| (step.text[span.clone()].to_owned(), *part))
            });
            parts.collect()
        };
        let expected = |parts: &[(&str, StepPart)]| -> Vec<(String, StepPart)> {
            parts.iter().map(|(text, part)| ((*text).to_owned(), *part)).collect()
        };
        use StepPart::{Operator, Path, Program, Redirect, Write};
        assert_eq!(
            parts("cat src/ä.rs > out && rm -r build 2>&1"),
            expected(&[
                ("cat", Program),
                ("src/ä.rs", Path),
                (">", Redirect),
                ("out", Write),
                ("&&", Operator),
                ("rm", Program),
                ("build", Write),
                (">&", Redirect),
            ])
        );
        assert_eq!(
            parts("cp a.txt b.txt < in.txt"),
            expected(&[
                ("cp", Program),
                ("a.txt", Path),
                ("b.txt", Write),
                ("<", Redirect),
                ("in.txt", Path)
            ])
        );
        let writes = |script: &str| command_steps(script).unwrap()[0].writes;
        assert!(!writes("cat a | wc") && !writes("ls > /dev/null") && !writes("cd x"));
        assert!(writes("ls > x") && writes("make") && writes("sed -i s/a/b/ x"));
    }
}
