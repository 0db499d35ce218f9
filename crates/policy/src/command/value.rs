//! From words as they are written to what they can be when the command runs.

use std::collections::HashMap;

use super::Word;
use super::syntax::{Piece, RawWord};

/// A word in braces becomes no more words than this, and a variable in a loop has no more values.
const MAX_VALUES: usize = 64;

/// So many braces already make more words than that, and each is taken apart on the stack.
const MAX_BRACES: usize = 16;

/// Longer values are not known: variables that are put into each other grow fast.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// How the name begins that `<( … )` becomes.
pub(crate) const PIPE: &str = "/dev/fd/";

/// The values that variables can have.
pub(super) type Variables = HashMap<String, Values>;

/// What a variable can hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub(super) texts: Vec<String>,
    /// They are patterns, and it holds the name of one file that fits.
    pub(super) glob: bool,
}

/// A letter, and whether it was quoted.
type Letter = (char, bool);

/// The words that one becomes.
pub(super) fn expand(
    raw: &RawWord,
    text: &str,
    home: Option<&str>,
    known: &Variables,
) -> Vec<Word> {
    let source = text.get(raw.start..raw.end).unwrap_or_default().to_owned();
    let Some(variants) = letters(raw, home, known) else {
        return vec![unknown(raw, source)];
    };
    let mut words = Vec::new();
    let several = variants.len() > 1;
    let mut joined = Word { source: source.clone(), ..Word::default() };
    for letters in &variants {
        let Some(braced) = expand_braces(letters) else {
            return vec![Word { source, splits: true, ..Word::default() }];
        };
        if several && braced.len() != 1 {
            return vec![Word { source, splits: true, ..Word::default() }];
        }
        for letters in braced {
            let value: String = letters.iter().map(|(letter, _)| letter).collect();
            let glob = is_glob(&letters);
            if several {
                joined.glob |= glob;
                joined.values.push(value);
            } else {
                words.push(Word {
                    source: source.clone(),
                    values: vec![value],
                    glob,
                    ..Word::default()
                });
            }
        }
    }
    if several { vec![joined] } else { words }
}

/// The text of a here-document or of an assignment, if all of it is known: nothing in it becomes
/// several words.
pub(super) fn text_of(pieces: &[Piece], home: Option<&str>, known: &Variables) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal { text: literal, .. } => text += literal,
            Piece::Variable { name, .. } => {
                let values = lookup(name, home, known).filter(|values| !values.glob)?;
                match values.texts.as_slice() {
                    [value] => text += value,
                    _ => return None,
                }
            }
            Piece::Unknown { .. }
            | Piece::Arithmetic { .. }
            | Piece::Commands { .. }
            | Piece::Script { .. } => return None,
        }
        if text.len() > MAX_VALUE_BYTES.max(super::MAX_BYTES) {
            return None;
        }
    }
    Some(text)
}

/// The letters that a word can consist of, one list for each value of a variable in it.
fn letters(raw: &RawWord, home: Option<&str>, known: &Variables) -> Option<Vec<Vec<Letter>>> {
    let mut variants: Vec<Vec<Letter>> = vec![Vec::new()];
    for (number, piece) in raw.pieces.iter().enumerate() {
        match piece {
            Piece::Literal { text, quoted } => {
                let rest = match text.strip_prefix('~').filter(|_| number == 0 && !quoted) {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                        push(&mut variants, home?, true);
                        rest
                    }
                    Some(_) => return None,
                    None => text,
                };
                push(&mut variants, rest, *quoted);
            }
            Piece::Variable { name, quoted } => {
                let Values { texts: values, glob } = lookup(name, home, known)?;
                // Unquoted, a value is split into words and taken as a pattern.
                let is_split = |value: &String| {
                    value.is_empty() && raw.pieces.len() == 1
                        || value.contains([' ', '\t', '\n', '*', '?', '['])
                };
                if !quoted && (glob || values.iter().any(is_split))
                    || values.len() * variants.len() > MAX_VALUES
                {
                    return None;
                }
                variants = variants
                    .iter()
                    .flat_map(|before| {
                        values.iter().map(|value| {
                            let mut variant = before.clone();
                            variant.extend(value.chars().map(|letter| (letter, !glob)));
                            variant
                        })
                    })
                    .collect();
            }
            Piece::Unknown { .. }
            | Piece::Arithmetic { .. }
            | Piece::Commands { .. }
            | Piece::Script { .. } => return None,
        }
        if variants.iter().map(Vec::len).sum::<usize>() > MAX_VALUE_BYTES {
            return None;
        }
    }
    Some(variants)
}

fn push(variants: &mut [Vec<Letter>], text: &str, quoted: bool) {
    for variant in variants {
        variant.extend(text.chars().map(|letter| (letter, quoted)));
    }
}

fn lookup(name: &str, home: Option<&str>, known: &Variables) -> Option<Values> {
    match known.get(name) {
        Some(values) => Some(values.clone()),
        None if name == "HOME" => {
            home.map(|home| Values { texts: vec![home.to_owned()], glob: false })
        }
        None => None,
    }
}

/// A word whose value is not known, with what is known of its beginning.
fn unknown(raw: &RawWord, source: String) -> Word {
    let quoted = |piece: &Piece| match piece {
        Piece::Literal { text, quoted } => *quoted || !text.contains(['*', '?', '[', '{']),
        Piece::Variable { quoted, .. }
        | Piece::Unknown { quoted, .. }
        | Piece::Arithmetic { quoted, .. }
        | Piece::Commands { quoted, .. }
        | Piece::Script { quoted, .. } => *quoted,
    };
    let splits = !raw.pieces.iter().all(quoted);
    let mut prefix = String::new();
    if source.starts_with("<(") || source.starts_with(">(") {
        prefix += PIPE;
    }
    for piece in &raw.pieces {
        match piece {
            Piece::Literal { text, quoted }
                if *quoted || !text.contains(['*', '?', '[', '{', '~']) =>
            {
                prefix += text;
            }
            _ => break,
        }
    }
    Word { source, splits, prefix, ..Word::default() }
}

/// Whether an unquoted letter makes it a pattern of file names.
fn is_glob(letters: &[Letter]) -> bool {
    let has = |wanted: char| letters.contains(&(wanted, false));
    has('*') || has('?') || (has('[') && has(']'))
}

/// `a{b,c}` is two words. Nothing, if it is more than lists, or too many.
fn expand_braces(letters: &[Letter]) -> Option<Vec<Vec<Letter>>> {
    if letters.iter().filter(|letter| **letter == ('{', false)).count() > MAX_BRACES {
        return None;
    }
    let Some((open, close, commas)) = find_braces(letters)? else {
        return Some(vec![letters.to_vec()]);
    };
    let mut starts = vec![open + 1];
    starts.extend(commas.iter().map(|comma| comma + 1));
    let mut ends = commas;
    ends.push(close);
    let mut words = Vec::new();
    for (start, end) in starts.into_iter().zip(ends) {
        let word = [&letters[..open], &letters[start..end], &letters[close + 1..]].concat();
        words.extend(expand_braces(&word)?);
        if words.len() > MAX_VALUES {
            return None;
        }
    }
    Some(words)
}

/// An opening brace, the closing one and the commas between, at one level.
type Braces = (usize, usize, Vec<usize>);

fn find_braces(letters: &[Letter]) -> Option<Option<Braces>> {
    let mut open = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            // One in the other is more than anybody writes by hand.
            ('{', false) if !open.is_empty() => return None,
            ('{', false) => open.push((at, Vec::new())),
            (',', false) => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            ('}', false) => match open.pop() {
                Some((start, commas)) if !commas.is_empty() => {
                    return Some(Some((start, at, commas)));
                }
                // `{1..5}`
                Some((start, _)) if letters[start..at].windows(2).any(is_range) => return None,
                _ => {}
            },
            _ => {}
        }
    }
    Some(None)
}

fn is_range(letters: &[Letter]) -> bool {
    matches!(letters, [('.', false), ('.', false)])
}
