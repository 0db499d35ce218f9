//! Generates patterns from the content of files, so that they match something.

use std::path::Path;

use toolcrib_devtools::random::Random;

/// A pattern with its options.
pub(super) struct GeneratedPattern {
    pub(super) pattern: String,
    pub(super) literal: bool,
    pub(super) ignore_case: bool,
    pub(super) multiline: bool,
}

/// Generates patterns from a sample of a tree's lines.
pub(super) struct PatternGenerator {
    random: Random,
    words: Vec<String>,
    lines: Vec<String>,
}

const SAMPLED_FILES: u64 = 200;
const SAMPLED_LINES: usize = 4_000;

impl PatternGenerator {
    pub(super) fn new(tree: &Path, files: &[String], seed: u64) -> PatternGenerator {
        let mut random = Random::new(seed);
        let mut lines = Vec::new();
        for _ in 0..SAMPLED_FILES.min(files.len() as u64) {
            let Some(file) = files.get(random.below(files.len() as u64) as usize) else { break };
            let Ok(text) = std::fs::read_to_string(tree.join(file)) else { continue };
            lines.extend(text.lines().filter(|line| line.len() < 200).map(str::to_owned));
            if lines.len() > SAMPLED_LINES {
                break;
            }
        }
        let words = lines
            .iter()
            .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .filter(|word| word.len() > 2)
            .map(str::to_owned)
            .collect();
        PatternGenerator { random, words, lines }
    }

    pub(super) fn make(&mut self) -> GeneratedPattern {
        let word = self.word();
        let other = self.word();
        let ignore_case = self.random.below(5) == 0;
        let pattern = |pattern: String| GeneratedPattern {
            pattern,
            literal: false,
            ignore_case,
            multiline: false,
        };
        match self.random.below(16) {
            0 => pattern(word),
            1 => pattern(format!(r"\b{word}\b")),
            2 => pattern(format!("{word}|{other}")),
            3 => pattern(format!(r"^\s*{word}")),
            4 => pattern(format!(r"{word}\s+\w+")),
            5 => pattern(format!("{word}.*{other}")),
            6 => pattern(format!(r"{word}[^a-z]")),
            7 => pattern(format!("{word}$")),
            8 => pattern(self.with_holes(&word)),
            9 => pattern(r"[A-Z]{3,}_[A-Z]+\d?".to_owned()),
            10 => pattern(format!(r"(?:{word}|{other})\w*\(")),
            11 => pattern(format!(
                "[{}]{{2,}}x?",
                &word[..word.char_indices().nth(1).map_or(1, |c| c.0)]
            )),
            12 => {
                GeneratedPattern { multiline: true, ..pattern(format!(r"{word}\s*\n\s*{other}")) }
            }
            13 => GeneratedPattern {
                multiline: true,
                ..pattern(format!(r"{word}[^;]{{0,80}}?{other}"))
            },
            _ => GeneratedPattern { literal: true, ..pattern(self.piece()) },
        }
    }

    /// A word of the tree without pattern syntax.
    fn word(&mut self) -> String {
        let at = self.random.below(self.words.len() as u64) as usize;
        self.words.get(at).cloned().unwrap_or_else(|| "the".to_owned())
    }

    /// A piece of a line.
    fn piece(&mut self) -> String {
        let at = self.random.below(self.lines.len() as u64) as usize;
        let line: Vec<char> = self.lines.get(at).map_or("a", |line| line.trim()).chars().collect();
        let from = self.random.below(line.len() as u64) as usize;
        let length = 1 + self.random.below(20) as usize;
        let piece: String = line.iter().skip(from).take(length).collect();
        if piece.trim().is_empty() { "=".to_owned() } else { piece }
    }

    fn with_holes(&mut self, word: &str) -> String {
        let hole = |random: &mut Random| [".", r"\w", "[^ ]", r"\S?"][random.below(4) as usize];
        let mut pattern = String::new();
        for c in word.chars() {
            match self.random.below(4) {
                0 => pattern += hole(&mut self.random),
                _ => pattern.push(c),
            }
        }
        pattern
    }
}
