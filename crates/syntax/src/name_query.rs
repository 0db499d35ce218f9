//! Finds definitions by a name that may have names around it.

use crate::definition::{Definition, Outline};

/// Words that a name may begin with: `fn call`.
const WORDS: &[&str] = &[
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "fun",
    "func",
    "function",
    "impl",
    "interface",
    "macro",
    "method",
    "mod",
    "module",
    "namespace",
    "record",
    "static",
    "struct",
    "trait",
    "type",
    "union",
];

/// Names that stand for the place of the text.
const PLACES: &[&str] = &["crate", "self", "super", "this"];

impl Outline {
    /// The definitions that a name denotes, such as `call`, `Runtime::call`, `Runtime.call` or `impl Runtime`, with
    /// their indices. `places` are names around the text: the directories and the stem of a file. Prototypes,
    /// blocks and members are found only if the name denotes nothing else.
    pub fn find<'a>(
        &'a self,
        name: &str,
        places: &[&str],
    ) -> impl Iterator<Item = (usize, &'a Definition)> {
        let wanted = Wanted::new(name);
        let all = self.definitions.iter().enumerate();
        let denoted = all.filter(|(_, one)| wanted.denotes(self, one, places));
        let denoted: Vec<(usize, &Definition)> = denoted.collect();
        let best = denoted.iter().map(|(_, one)| one.class.rank()).min();
        denoted.into_iter().filter(move |(_, one)| Some(one.class.rank()) == best)
    }
}

/// A name in parts.
struct Wanted {
    /// The name as it was given, and without the kind: some names have separators or a kind in them, such as `[]`.
    given: String,
    rest: String,
    /// The kind, if it was given.
    word: Option<String>,
    names: Vec<String>,
}

impl Wanted {
    fn new(name: &str) -> Wanted {
        let name = name.trim();
        let (word, rest) = match name.split_once(' ') {
            Some((word, rest)) if WORDS.contains(&word) => (Some(word.to_owned()), rest),
            _ => (None, name),
        };
        Wanted { given: name.to_owned(), rest: rest.to_owned(), word, names: parts(rest) }
    }

    /// Whether the name denotes a definition: its last part is the name, and the others are, in order, names around it.
    fn denotes(&self, outline: &Outline, one: &Definition, places: &[&str]) -> bool {
        if one.name == self.given {
            return true;
        }
        if self.word.as_deref().is_some_and(|word| word != one.word) {
            return false;
        }
        if one.name == self.rest {
            return true;
        }
        let Some((last, before)) = self.names.split_last() else { return false };
        if one.name.trim_start_matches('#') != *last {
            return false;
        }
        let mut around = parts(&one.qualifier);
        for outer in outline.around_and(one).skip(1) {
            around.splice(0..0, parts(&outer.name));
            around.splice(0..0, parts(&outer.qualifier));
        }
        let mut around = places.iter().copied().chain(around.iter().map(String::as_str));
        let mut wanted = before.iter().filter(|part| !PLACES.contains(&part.as_str()));
        wanted.all(|part| around.any(|name| name == part))
    }
}

/// The names in a qualified name, without type arguments and parentheses.
fn parts(name: &str) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0_usize);
    // A Go receiver: `(*T).M`.
    let name = match name.strip_prefix("(*") {
        Some(name) => &name.replacen(')', "", 1),
        None => name,
    };
    for c in name.chars() {
        match c {
            '<' | '(' | '[' if !part.starts_with("operator") => depth += 1,
            '>' | ')' | ']' if !part.starts_with("operator") => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ':' | '.' | '#' | '\\' | '/' | '›' | '*' | '&' if !part.starts_with("operator") => {
                parts.extend(Some(std::mem::take(&mut part)).filter(|part| !part.is_empty()));
            }
            ' ' if part.is_empty() => {}
            _ => part.push(c),
        }
    }
    parts.extend(Some(part).filter(|part| !part.is_empty()));
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn names_are_split_at_the_separators_of_all_languages() {
        for (name, expected) in [
            ("call", &["call"][..]),
            ("Runtime::call", &["Runtime", "call"]),
            ("Runtime<'a>::call()", &["Runtime", "call"]),
            ("A.B#c", &["A", "B", "c"]),
            ("(*T).M", &["T", "M"]),
            ("App\\Models\\User", &["App", "Models", "User"]),
            ("A::operator==", &["A", "operator=="]),
            ("", &[]),
        ] {
            assert_eq!(parts(name), expected, "{name}");
        }
    }
}
