//! How a text that was written in the place of a match differs from the given text.

use super::SoughtText;
use super::indent::indent_of;
use super::required_literal::WHITESPACE;

/// The parts of a written text that were taken from the file instead of the given text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adaptation {
    line_endings: bool,
    trailing_whitespace: bool,
    indentation: bool,
    typography: bool,
    final_newlines: bool,
}

impl Adaptation {
    /// Compares both texts line by line.
    pub fn between(given: &str, written: &[u8]) -> Adaptation {
        let written = String::from_utf8_lossy(written);
        let returns = |text: &str| text.matches('\r').count();
        let mut adaptation = Adaptation {
            line_endings: returns(given) != returns(&written),
            ..Adaptation::default()
        };
        let (given, written) = (SoughtText::new(given), SoughtText::new(&written));
        adaptation.final_newlines = given.lines.len() != written.lines.len();
        for (given, written) in given.lines.iter().zip(&written.lines) {
            let [given, written] = [given, written].map(|line| LineParts::of(line));
            adaptation.indentation |= given.indentation != written.indentation;
            adaptation.typography |= given.text != written.text;
            adaptation.trailing_whitespace |= given.trailing != written.trailing;
        }
        adaptation
    }

    /// The parts in words, such as `indentation and trailing whitespace`. `None` if the text was written as given.
    pub fn words(self) -> Option<String> {
        let parts = [
            (self.line_endings, "line endings"),
            (self.indentation, "indentation"),
            (self.typography, "typographic characters"),
            (self.trailing_whitespace, "trailing whitespace"),
            (self.final_newlines, "newlines at the end"),
        ];
        let parts: Vec<&str> =
            parts.into_iter().filter(|(is_taken, _)| *is_taken).map(|(_, words)| words).collect();
        match parts.split_last()? {
            (last, []) => Some((*last).to_owned()),
            (last, others) => Some(format!("{} and {last}", others.join(", "))),
        }
    }
}

/// A line without its ending.
struct LineParts<'a> {
    indentation: &'a str,
    text: &'a str,
    trailing: &'a str,
}

impl<'a> LineParts<'a> {
    fn of(line: &'a str) -> LineParts<'a> {
        let indentation = indent_of(line);
        let rest = &line[indentation.len()..];
        let text = rest.trim_end_matches(WHITESPACE);
        // A blank line has trailing whitespace only.
        match text {
            "" => LineParts { indentation: "", text, trailing: line },
            _ => LineParts { indentation, text, trailing: &rest[text.len()..] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_file_are_named() {
        for (given, written, expected) in [
            ("a\nb", "a\nb", None),
            ("a\nb", "a\r\nb", Some("line endings")),
            ("a\n", "a", Some("newlines at the end")),
            ("a\r\nb", "a\nb", Some("line endings")),
            ("\ta\n\tb", "    a\n    b", Some("indentation")),
            ("a\nb", "a  \nb", Some("trailing whitespace")),
            ("a\n\nb", "a\n  \nb", Some("trailing whitespace")),
            (
                " \"a\"\nb",
                "  “a”\nb ",
                Some("indentation, typographic characters and trailing whitespace"),
            ),
        ] {
            let words = Adaptation::between(given, written.as_bytes()).words();
            assert_eq!(words.as_deref(), expected, "{given:?} as {written:?}");
        }
    }
}
