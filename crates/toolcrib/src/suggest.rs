//! Similar names, for suggestions.

use std::ffi::OsString;

use toolcrib_fs::{Directory, FsError, ResolvedPath};
use toolcrib_text::invisible_name;
use unicode_normalization::UnicodeNormalization;

/// Quotes that callers copy together with a name.
const QUOTES: [char; 3] = ['`', '"', '\''];

/// Directory entries compared with a name. In a larger directory, only the first ones are.
const MAX_NAMES: usize = 10_000;

/// Minimum similarity of two names.
const MIN_SIMILARITY: f64 = 0.75;

/// The candidates most similar to `name`, best first, at most `most`. Case is ignored.
pub fn similar_names<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let name = fold(name);
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &fold(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
    scored.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// The file names most similar to `name`, best first, at most `most`: names that differ in a few characters, in
/// case or in the extension.
pub(crate) fn similar_files<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = fold(name);
    // In a short name, two other characters make another word.
    let few = 1 + wanted.split('.').next().map_or(0, |stem| stem.chars().count()) / 5;
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| {
            *distance <= few
                || stem(&wanted).is_some_and(|wanted| stem(&fold(candidate)) == Some(wanted))
        })
        .collect();
    found.sort_unstable();
    // Next to a name that differs in one character, a name that differs in two is noise.
    let fewest = found.first().map_or(0, |(distance, _)| *distance);
    found.retain(|(distance, _)| *distance == fewest || *distance > few);
    found.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// The name up to its first dot, if it is longer than one character.
fn stem(name: &str) -> Option<&str> {
    name.split('.').next().filter(|stem| stem.len() > 1)
}

/// The unique name that looks the same as `name`: another Unicode normalization, or other whitespace. `None` if
/// there are several.
pub(crate) fn lookalike<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let look = |name: &str| -> String {
        name.nfc().map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
    };
    let wanted = look(name);
    let mut alike = candidates.into_iter().filter(|candidate| look(candidate) == wanted);
    alike.next().filter(|_| alike.next().is_none())
}

/// The names of the entries of a directory, sorted, and whether they are all of them.
pub(crate) fn entry_names(directory: &ResolvedPath) -> Result<(Vec<OsString>, bool), FsError> {
    let mut names = Vec::new();
    Directory::open(directory)?.each(|name, _| {
        names.push(name.to_owned());
        names.len() <= MAX_NAMES
    })?;
    let all = names.len() <= MAX_NAMES;
    names.truncate(MAX_NAMES);
    names.sort();
    Ok((names, all))
}

/// A name without invisible characters, surrounding whitespace and quotes.
pub(crate) fn bare_name(name: &str) -> String {
    let visible = name.nfc().filter(|&c| c.is_whitespace() || invisible_name(c).is_none());
    let visible: String = visible.map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    visible.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c)).to_owned()
}

/// A name without a line and column after it, as in `a.rs:12`, `a.rs:12:5` and `a.rs:12-20`. `None` if it has none.
pub(crate) fn without_line(name: &str) -> Option<&str> {
    let is_number = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let without_number = |name| str::rsplit_once(name, ':').filter(|(_, number)| is_number(number));
    let (name, _) = without_number(name)?;
    let name = without_number(name).map_or(name, |(name, _)| name);
    Some(name).filter(|name| !name.is_empty())
}

/// A name without case and `_`, for comparing tool and field names.
pub(crate) fn fold(name: &str) -> String {
    name.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_lookalike_is_found() {
        let names = ["Shot 3\u{202f}PM.png", "cafe\u{301}.txt", "a b", "a\u{a0}b"];
        assert_eq!(lookalike("Shot 3 PM.png", names), Some("Shot 3\u{202f}PM.png"));
        assert_eq!(lookalike("caf\u{e9}.txt", names), Some("cafe\u{301}.txt"));
        assert_eq!(lookalike("a\u{2003}b", names), None, "two look the same");
        assert_eq!(lookalike("Cafe.txt", names), None);
    }

    #[test]
    fn a_name_is_found_in_what_surrounds_it() {
        for name in ["a.txt", "`a.txt`", "a.txt\n", " \"a.txt\"", "a\u{200b}.txt\u{feff}"] {
            assert_eq!(bare_name(name), "a.txt");
        }
        assert_eq!(bare_name("it's"), "it's");
        assert_eq!(without_line("a.rs:12"), Some("a.rs"));
        assert_eq!(without_line("a.rs:12:5"), Some("a.rs"));
        assert_eq!(without_line("a.rs:12-20"), Some("a.rs"));
        assert_eq!(without_line("a:b"), None);
        assert_eq!(without_line("a.rs"), None);
        assert_eq!(without_line(":12"), None);
    }

    #[test]
    fn dissimilar_files_are_not_suggested() {
        assert_eq!(similar_files("nodir", ["NOTICE", "notes.md", "index"], 3), [""; 0]);
        assert_eq!(similar_files("clik", ["click", "clap"], 3), ["click"]);
        assert_eq!(similar_files("scr", ["lib", "src"], 3), ["src"]);
        assert_eq!(similar_files("x", [".git", "lib"], 3), [""; 0]);
        assert_eq!(similar_files("README.txt", ["readme.md", "LICENSE"], 3), ["readme.md"]);
        assert_eq!(similar_files("mian.rs", ["main.rs", "lib.rs"], 3), ["main.rs"]);
    }

    #[test]
    fn most_similar_name_comes_first() {
        let names = ["file_path", "offset", "limit"];
        assert_eq!(similar_names("fil_path", names, 1), ["file_path"]);
        assert_eq!(similar_names("filePath", names, 1), ["file_path"]);
        assert_eq!(similar_names("colour", names, 1), [""; 0]);
    }
}
