//! Removes line numbers from text that was copied from a reply.

/// Separators between a number and its line, in our replies and in those of other tools.
const SEPARATORS: [&str; 5] = ["\t", "→", "| ", "|", ": "];

/// The first line number and the text without numbers. `None` unless every line has a number and they
/// increase by one.
pub fn without_line_numbers(text: &str) -> Option<(u64, String)> {
    SEPARATORS.into_iter().find_map(|separator| strip(text, separator))
}

fn strip(text: &str, separator: &str) -> Option<(u64, String)> {
    let mut stripped = String::new();
    let mut first = None;
    for (line, before) in text.split_inclusive('\n').zip(0..) {
        let (number, rest) = split_number(line, separator)?;
        if *first.get_or_insert(number) != number.checked_sub(before)? {
            return None;
        }
        stripped += rest;
    }
    first.map(|first| (first, stripped))
}

/// The number at the start of a line, and the rest. An empty line may lack the whitespace of its separator.
fn split_number<'a>(line: &'a str, separator: &str) -> Option<(u64, &'a str)> {
    let from_digit = line.trim_start_matches(' ');
    let digits = from_digit.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = from_digit.split_at(digits);
    let number = number.parse().ok()?;
    if let Some(rest) = rest.strip_prefix(separator) {
        return Some((number, rest));
    }
    let bare = separator.trim_end();
    (!bare.is_empty() && rest.trim_end() == bare).then(|| (number, line_end(rest)))
}

fn line_end(line: &str) -> &str {
    if line.ends_with('\n') { "\n" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_line_numbers_are_removed_and_other_numbers_are_kept() {
        let stripped = |text| without_line_numbers(text);
        let numbered = |first, text: &str| Some((first, text.to_owned()));
        assert_eq!(stripped("     9\ta\n    10\t\tb\n"), numbered(9, "a\n\tb\n"));
        assert_eq!(stripped("7→x"), numbered(7, "x"));
        assert_eq!(stripped("  7: x\n  8:\n  9: y"), numbered(7, "x\n\ny"));
        assert_eq!(stripped("1\ta\n2\t\n3\tb"), numbered(1, "a\n\nb"));
        assert_eq!(stripped("1\ta\n1\tb"), None, "a table, not line numbers");
        assert_eq!(stripped("1\ta\nb"), None);
        assert_eq!(stripped("a"), None);
        assert_eq!(stripped("1"), None, "a number is no line number");
        assert_eq!(stripped(""), None);
        assert_eq!(stripped("99999999999999999999999\ta"), None);
    }
}
