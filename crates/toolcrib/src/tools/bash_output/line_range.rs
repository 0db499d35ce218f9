//! A range of output lines.

use toolcrib_text::visible_name;

use crate::error::Error;
use crate::phrases::counted;

/// Lines by number, or the last lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRange {
    Numbers { first: u64, last: u64 },
    Last(usize),
}

impl LineRange {
    /// Parses `7`, `7-9`, `7-`, or `-9` for the last nine.
    pub(super) fn parse(text: &str) -> Result<LineRange, Error> {
        let range = match text.trim().split_once('-') {
            None => {
                text.trim().parse().ok().map(|line| LineRange::Numbers { first: line, last: line })
            }
            Some(("", last)) => last.parse().ok().map(LineRange::Last),
            Some((first, last)) => {
                let last = if last.is_empty() { Some(u64::MAX) } else { last.parse().ok() };
                first.parse().ok().zip(last).map(|(first, last)| LineRange::Numbers { first, last })
            }
        };
        let valid = |range: &LineRange| match *range {
            LineRange::Numbers { first, last } => 0 < first && first <= last,
            LineRange::Last(count) => 0 < count,
        };
        range.filter(valid).ok_or_else(|| {
            Error::invalid(format!(
                "`lines` is {}, which is not a range of lines",
                visible_name(text.as_bytes())
            ))
            .hint("Lines are counted from 1: \"7\", \"7-9\", \"7-\", or \"-9\" for the last nine.")
        })
    }

    pub(super) fn contains(self, number: u64) -> bool {
        match self {
            LineRange::Numbers { first, last } => first <= number && number <= last,
            LineRange::Last(_) => true,
        }
    }

    /// Whether the range has no line after this one.
    pub(super) fn is_past(self, number: u64) -> bool {
        matches!(self, LineRange::Numbers { last, .. } if last <= number)
    }

    /// The note if the output has no line of the range. `last` is the number of the last available line.
    pub(super) fn missing_note(self, last: u64) -> String {
        match self {
            LineRange::Numbers { first, last: until } if first < last => {
                format!("lines {first} to {} were dropped", until.min(last))
            }
            _ if last == 1 => "there is 1 line".to_owned(),
            _ => format!("there are {}", counted(last, "line")),
        }
    }

    /// The number of last lines, for a range of that form.
    pub(super) fn last(self) -> Option<usize> {
        match self {
            LineRange::Numbers { .. } => None,
            LineRange::Last(count) => Some(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lines_are_explained() {
        let numbers = |first, last| LineRange::Numbers { first, last };
        assert_eq!(numbers(11, 12).missing_note(10), "there are 10 lines");
        assert_eq!(numbers(5, u64::MAX).missing_note(1), "there is 1 line");
        assert_eq!(numbers(3, 4).missing_note(10), "lines 3 to 4 were dropped");
        assert_eq!(LineRange::Last(3).missing_note(0), "there are 0 lines");
    }

    #[test]
    fn four_forms_of_ranges_are_parsed() {
        let parse = |text| LineRange::parse(text).ok();
        assert_eq!(parse("7"), Some(LineRange::Numbers { first: 7, last: 7 }));
        assert_eq!(parse("7-9"), Some(LineRange::Numbers { first: 7, last: 9 }));
        assert_eq!(parse("7-"), Some(LineRange::Numbers { first: 7, last: u64::MAX }));
        assert_eq!(parse("-9"), Some(LineRange::Last(9)));
        for wrong in ["", "-", "0", "-0", "9-7", "a", "1-b", "1,2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
