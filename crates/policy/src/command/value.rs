//! Expands words of a script to their possible values.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Word;
use super::syntax::{Piece, RawWord};

/// The limit of words from one brace expansion, and of values of a loop variable.
const MAX_VALUES: usize = 64;

/// This many braces already exceed [`MAX_VALUES`], and each adds a level of recursion.
const MAX_BRACES: usize = 16;

/// Longer values count as unknown: nested variables grow fast.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// The prefix of the path that `<( … )` expands to.
pub(crate) const PIPE_PREFIX: &str = "/dev/fd/";

/// The possible values of variables.
pub(super) type Variables = HashMap<String, Values>;

/// The possible values of one variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub(super) texts: Vec<String>,
    /// Whether the values are patterns. The variable then holds the name of one matching file.
    pub(super) glob: bool,
}

/// A character, and whether it was quoted.
type QuotedChar = (char, bool);

/// Expands a word to one or more words and adds them to `words`.
pub(super) fn expand(
    words: &mut Vec<Word>,
    raw: &RawWord,
    text: &str,
    home: Option<&str>,
    known: &Variables,
) {
    let source = text.get(raw.start..raw.end).unwrap_or_default().to_owned();
    if let Some((value, glob)) = literal_value(raw) {
        words.push(Word { source, values: vec![value], glob, ..Word::default() });
        return;
    }
    expand_characters(words, raw, source, home, known);
}

/// Expands a word character by character, with its variables and braces.
fn expand_characters(
    words: &mut Vec<Word>,
    raw: &RawWord,
    source: String,
    home: Option<&str>,
    known: &Variables,
) {
    let Some(variants) = character_variants(raw, home, known) else {
        words.push(unknown(raw, source));
        return;
    };
    let before = words.len();
    let several = variants.len() > 1;
    let mut joined = Word { source: source.clone(), ..Word::default() };
    for chars in &variants {
        let braced = expand_braces(chars).filter(|braced| !several || braced.len() == 1);
        let Some(braced) = braced else {
            words.truncate(before);
            words.push(Word { source, splits: true, ..Word::default() });
            return;
        };
        for chars in braced {
            let value: String = chars.iter().map(|(c, _)| c).collect();
            let glob = is_glob(&chars);
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
    if several {
        words.push(joined);
    }
}

/// The value of a word that is only text, and whether it is a pattern. `None` if it has to be expanded, as words with
/// `~` and braces have.
fn literal_value(raw: &RawWord) -> Option<(String, bool)> {
    let mut length = 0;
    let (mut wildcard, mut opens, mut closes) = (false, false, false);
    for (number, piece) in raw.pieces.iter().enumerate() {
        let Piece::Literal { text, quoted } = piece else { return None };
        length += text.len();
        if *quoted {
            continue;
        }
        if number == 0 && text.starts_with('~') {
            return None;
        }
        for byte in text.bytes() {
            match byte {
                b'{' => return None,
                b'*' | b'?' => wildcard = true,
                b'[' => opens = true,
                b']' => closes = true,
                _ => {}
            }
        }
    }
    if length > MAX_VALUE_BYTES {
        return None;
    }
    let mut value = String::with_capacity(length);
    for piece in &raw.pieces {
        if let Piece::Literal { text, .. } = piece {
            value += text;
        }
    }
    Some((value, wildcard || opens && closes))
}

/// The text of a here-document or an assignment, which are not split into words. `None` if part of it is unknown.
pub(super) fn text_of(pieces: &[Piece], home: Option<&str>, known: &Variables) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal { text: literal, .. } => text += literal,
            Piece::Variable { name, .. } => {
                let values = lookup(name, home, known)?;
                if values.glob {
                    return None;
                }
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

/// The possible contents of a word, one for each value of a variable in it. `None` if unknown.
fn character_variants(
    raw: &RawWord,
    home: Option<&str>,
    known: &Variables,
) -> Option<Vec<Vec<QuotedChar>>> {
    let mut variants: Vec<Vec<QuotedChar>> = vec![Vec::new()];
    for (number, piece) in raw.pieces.iter().enumerate() {
        match piece {
            Piece::Literal { text, quoted } => {
                let rest = match text.strip_prefix('~').filter(|_| number == 0 && !quoted) {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                        push_text(&mut variants, home?, true);
                        rest
                    }
                    Some(_) => return None,
                    None => text,
                };
                push_text(&mut variants, rest, *quoted);
            }
            Piece::Variable { name, quoted } => {
                let found = lookup(name, home, known)?;
                let (values, glob) = (&found.texts, found.glob);
                // The shell splits an unquoted value into words and treats it as a pattern.
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
                            variant.extend(value.chars().map(|c| (c, !glob)));
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

fn push_text(variants: &mut [Vec<QuotedChar>], text: &str, quoted: bool) {
    for variant in variants {
        variant.extend(text.chars().map(|c| (c, quoted)));
    }
}

fn lookup<'a>(name: &str, home: Option<&str>, known: &'a Variables) -> Option<Cow<'a, Values>> {
    match known.get(name) {
        Some(values) => Some(Cow::Borrowed(values)),
        None if name == "HOME" => {
            home.map(|home| Cow::Owned(Values { texts: vec![home.to_owned()], glob: false }))
        }
        None => None,
    }
}

/// A word with an unknown value and its known prefix.
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
        prefix += PIPE_PREFIX;
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

/// Whether an unquoted character makes the word a file name pattern.
fn is_glob(chars: &[QuotedChar]) -> bool {
    let has = |wanted: char| chars.contains(&(wanted, false));
    has('*') || has('?') || (has('[') && has(']'))
}

/// Expands `a{b,c}` to two words. `None` for ranges, nested braces or too many words.
fn expand_braces(chars: &[QuotedChar]) -> Option<Vec<Vec<QuotedChar>>> {
    if chars.iter().filter(|c| **c == ('{', false)).count() > MAX_BRACES {
        return None;
    }
    let Some((open, close, commas)) = find_braces(chars)? else {
        return Some(vec![chars.to_vec()]);
    };
    let mut starts = vec![open + 1];
    starts.extend(commas.iter().map(|comma| comma + 1));
    let mut ends = commas;
    ends.push(close);
    let mut words = Vec::new();
    for (start, end) in starts.into_iter().zip(ends) {
        let word = [&chars[..open], &chars[start..end], &chars[close + 1..]].concat();
        words.extend(expand_braces(&word)?);
        if words.len() > MAX_VALUES {
            return None;
        }
    }
    Some(words)
}

/// An opening brace, the closing one and the commas between, at one level.
type Braces = (usize, usize, Vec<usize>);

fn find_braces(chars: &[QuotedChar]) -> Option<Option<Braces>> {
    let mut open = Vec::new();
    for (at, c) in chars.iter().enumerate() {
        match c {
            // Nested braces are not supported; they are rare in hand-written commands.
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
                Some((start, _)) if chars[start..at].windows(2).any(is_range) => return None,
                _ => {}
            },
            _ => {}
        }
    }
    Some(None)
}

fn is_range(chars: &[QuotedChar]) -> bool {
    matches!(chars, [('.', false), ('.', false)])
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_that_are_only_text_expand_as_character_by_character(
            texts in vec(("[a~/{},*?\\[\\].é ]{0,6}", any::<bool>()), 0..4),
        ) {
            let literal = |(text, quoted)| Piece::Literal { text, quoted };
            let pieces = texts.into_iter().map(literal).collect();
            let raw = RawWord { pieces, ..RawWord::default() };
            let (home, known) = (Some("/home/me"), Variables::new());
            let (mut words, mut slow) = (Vec::new(), Vec::new());
            expand(&mut words, &raw, "", home, &known);
            expand_characters(&mut slow, &raw, String::new(), home, &known);
            prop_assert_eq!(words, slow);
        }
    }

    #[test]
    fn the_limit_of_a_value_is_in_characters() {
        for (letter, count, is_known) in [
            ("a", MAX_VALUE_BYTES, true),
            ("a", MAX_VALUE_BYTES + 1, false),
            ("é", MAX_VALUE_BYTES, true),
        ] {
            let pieces = vec![Piece::Literal { text: letter.repeat(count), quoted: true }];
            let mut words = Vec::new();
            expand(
                &mut words,
                &RawWord { pieces, ..RawWord::default() },
                "",
                None,
                &Variables::new(),
            );
            assert_eq!(words[0].known().is_some(), is_known, "{count} times {letter}");
        }
    }
}
