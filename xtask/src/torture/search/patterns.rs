//! Patterns that find something: made out of what the files say.

use std::path::Path;

use crate::random::Random;

/// A pattern, and how it is to be taken.
pub(super) struct Made {
    pub(super) pattern: String,
    pub(super) literal: bool,
    pub(super) ignore_case: bool,
    pub(super) multiline: bool,
}

/// Makes patterns out of a sample of a tree's lines.
pub(super) struct Maker {
    random: Random,
    words: Vec<String>,
    lines: Vec<String>,
}

const SAMPLED_FILES: u64 = 200;
const SAMPLED_LINES: usize = 4_000;

impl Maker {
    pub(super) fn new(tree: &Path, files: &[String], seed: u64) -> Maker {
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
        Maker { random, words, lines }
    }

    pub(super) fn make(&mut self) -> Made {
        let word = self.word();
        let other = self.word();
        let ignore_case = self.random.below(5) == 0;
        let made =
            |pattern: String| Made { pattern, literal: false, ignore_case, multiline: false };
        match self.random.below(16) {
            0 => made(word),
            1 => made(format!(r"\b{word}\b")),
            2 => made(format!("{word}|{other}")),
            3 => made(format!(r"^\s*{word}")),
            4 => made(format!(r"{word}\s+\w+")),
            5 => made(format!("{word}.*{other}")),
            6 => made(format!(r"{word}[^a-z]")),
            7 => made(format!("{word}$")),
            8 => made(self.with_holes(&word)),
            9 => made(r"[A-Z]{3,}_[A-Z]+\d?".to_owned()),
            10 => made(format!(r"(?:{word}|{other})\w*\(")),
            11 => made(format!(
                "[{}]{{2,}}x?",
                &word[..word.char_indices().nth(1).map_or(1, |c| c.0)]
            )),
            12 => Made { multiline: true, ..made(format!(r"{word}\s*\n\s*{other}")) },
            13 => Made { multiline: true, ..made(format!(r"{word}[^;]{{0,80}}?{other}")) },
            _ => Made { literal: true, ..made(self.piece()) },
        }
    }

    /// A word of the tree, free of what means something in a pattern.
    fn word(&mut self) -> String {
        let at = self.random.below(self.words.len() as u64) as usize;
        self.words.get(at).cloned().unwrap_or_else(|| "the".to_owned())
    }

    /// A piece of a line as it is.
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
