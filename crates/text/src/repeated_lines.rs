//! Folds runs of repeated lines: equal lines, and messages of a program that differ only in one path, such as
//! `rm: cannot remove 'a/b': Permission denied`. The first lines of a run are kept, the others are counted.

/// Lines of a run that are kept.
const KEPT_LINES: usize = 3;

/// Minimum number of characters to fold. For fewer, the note would save little.
const MIN_CHARS: usize = 1_000;

/// Minimum number of equal words in messages that differ in a path.
const MIN_EQUAL_WORDS: usize = 3;

/// What the lines of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Similarity {
    /// Everything.
    Equal,
    /// Everything except the path that is the word at this position.
    ExceptPath(usize),
}

/// Output of a [`Folder`], in the order of the lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Folded {
    /// A line that is kept.
    Line(String),
    /// Number of lines that were folded.
    Run(u64, Similarity),
}

/// Folds lines as they come. It holds a few lines only.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    last: String,
    similarity: Option<Similarity>,
    /// Lines of the run so far.
    lines: usize,
    /// Lines after the kept ones, until there are enough to fold them.
    held: Vec<String>,
    held_chars: usize,
}

impl Folder {
    /// Adds the next line.
    pub(crate) fn line(&mut self, line: &str, mut out: impl FnMut(Folded)) {
        let similarity = if self.lines == 0 { None } else { similarity(&self.last, line) };
        let continues = similarity.is_some() && (self.lines == 1 || similarity == self.similarity);
        if !continues {
            self.end_run(&mut out);
        }
        self.similarity = if continues { similarity } else { None };
        self.lines += 1;
        line.clone_into(&mut self.last);
        if self.lines <= KEPT_LINES {
            out(Folded::Line(line.to_owned()));
        } else if self.held_chars < MIN_CHARS {
            self.held_chars += line.chars().count() + 1;
            self.held.push(line.to_owned());
        }
    }

    /// Ends the current run.
    pub(crate) fn end_run(&mut self, mut out: impl FnMut(Folded)) {
        let run = std::mem::take(self);
        match run.similarity {
            Some(similarity) if run.held_chars >= MIN_CHARS => {
                out(Folded::Run((run.lines - KEPT_LINES) as u64, similarity));
            }
            _ => run.held.into_iter().for_each(|line| out(Folded::Line(line))),
        }
    }
}

fn similarity(one: &str, other: &str) -> Option<Similarity> {
    if one == other {
        return Some(Similarity::Equal);
    }
    // The name of a program comes first. Lines that begin with a path are a list of paths, as grep prints it.
    let mut words = one.split(' ').zip(other.split(' ')).enumerate();
    words.next().filter(|(_, (word, other))| word == other && word.ends_with(':'))?;
    let (mut differs_at, mut equal_words) = (None, 1);
    for (position, (word, other)) in words {
        if word == other {
            equal_words += usize::from(!word.is_empty());
        } else if differs_at.is_none() && is_path(word) && is_path(other) {
            differs_at = Some(position);
        } else {
            return None;
        }
    }
    let same_length = one.split(' ').count() == other.split(' ').count();
    let differs_at = differs_at.filter(|_| same_length && equal_words >= MIN_EQUAL_WORDS)?;
    Some(Similarity::ExceptPath(differs_at))
}

/// Whether a word looks like a path in a message: it has a slash or a quote.
fn is_path(word: &str) -> bool {
    word.contains('/') || word.starts_with(['\'', '"', '`', '‘', '“'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Folded> {
        let (mut folder, mut all) = (Folder::default(), Vec::new());
        for line in lines {
            folder.line(line, |folded| all.push(folded));
        }
        folder.end_run(|folded| all.push(folded));
        all
    }

    #[test]
    fn equal_lines_are_folded() {
        let folded = fold(std::iter::repeat_n("error: bad thing", 20_000).chain(["end"]));
        assert_eq!(folded.len(), KEPT_LINES + 2);
        assert_eq!(folded[KEPT_LINES], Folded::Run(19_997, Similarity::Equal));
        assert_eq!(folded[KEPT_LINES + 1], Folded::Line("end".to_owned()));
    }

    #[test]
    fn messages_about_many_files_are_folded() {
        let message = |number| format!("rm: cannot remove '.git/{number}': Permission denied");
        let lines: Vec<String> = (0..100).map(message).collect();
        let folded = fold(lines.iter().map(String::as_str));
        assert_eq!(folded.len(), KEPT_LINES + 1);
        assert_eq!(folded[KEPT_LINES], Folded::Run(97, Similarity::ExceptPath(3)));
    }

    #[test]
    fn lines_with_new_information_are_kept() {
        let lines = |line: &dyn Fn(u32) -> String| (0..500).map(line).collect::<Vec<String>>();
        for kept in [
            lines(&|number| number.to_string()),
            lines(&|number| format!("src/file/{number}.rs")),
            lines(&|number| format!("src/file/{number}.rs: C source, ASCII text, with CRLF")),
            lines(&|number| format!("src/file/{number}.rs:fn main() -> Result<(), Error> {{")),
            lines(&|number| format!("100644 blob src/file/{number}.rs")),
            lines(&|number| format!("FAILED tests/{number}.py - assert one is two")),
            lines(&|number| format!("test number {number} of them ok")),
            lines(&|number| format!("cp: cannot read the file a/{number}: error {number}")),
            lines(&|number| format!("cp: not read: a/{number} {}", "x ".repeat(number as usize))),
        ] {
            let folded = fold(kept.iter().map(String::as_str));
            let all: Vec<Folded> = kept.iter().cloned().map(Folded::Line).collect();
            assert_eq!(folded, all);
        }
    }

    #[test]
    fn a_few_characters_are_not_folded() {
        assert_eq!(fold(std::iter::repeat_n("x", 400)).len(), 400);
    }

    proptest! {
        #[test]
        fn every_line_is_kept_or_similar_to_the_last_kept_line(
            runs in prop::collection::vec(("[a-c ]{0,9}|no: such file: [a/]{1,3} is here|a{300}", 1usize..30), 0..20),
        ) {
            let lines: Vec<&str> = runs.iter()
                .flat_map(|(line, count)| std::iter::repeat_n(line.as_str(), *count)).collect();
            let (mut at, mut shown) = (0, "");
            for folded in fold(lines.iter().copied()) {
                match folded {
                    Folded::Line(line) => {
                        prop_assert_eq!(&line, lines[at]);
                        shown = lines[at];
                        at += 1;
                    }
                    Folded::Run(count, run) => {
                        for line in &lines[at..at + count as usize] {
                            prop_assert!(shown == *line || similarity(shown, line) == Some(run));
                        }
                        at += count as usize;
                    }
                }
            }
            prop_assert_eq!(at, lines.len());
        }
    }
}
