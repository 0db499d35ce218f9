//! Sizes in `config.toml`: `4GiB`, `500MB`, `75%` or `none`.

use toolcrib::Amount;

/// The units, and their number of bytes.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Parses the value of a key.
pub(super) fn parse(key: &str, text: &str) -> Result<Amount, String> {
    amount(text).ok_or_else(|| {
        format!(
            "{key} = {text:?} is not a size; use a number with a unit such as \"4GiB\", a percentage from \"1%\" to \"100%\", or \"none\""
        )
    })
}

fn amount(text: &str) -> Option<Amount> {
    if text == "none" {
        return Some(Amount::Unlimited);
    }
    if let Some(percent) = text.strip_suffix('%') {
        let percent = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent))?;
        return Some(Amount::Percent(percent));
    }
    let (unit, factor) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let count: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    count.checked_mul(factor).filter(|bytes| *bytes > 0).map(Amount::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        for (text, expected) in [
            ("none", Amount::Unlimited),
            ("75%", Amount::Percent(75)),
            ("4GiB", Amount::Bytes(4 << 30)),
            ("500 MB", Amount::Bytes(500_000_000)),
            ("16777216B", Amount::Bytes(16 << 20)),
        ] {
            assert_eq!(parse("memory", text), Ok(expected), "{text}");
        }
        for text in ["", "4", "4 G", "0%", "101%", "0GiB", "-1GiB", "1.5GiB", "99999999999TiB"] {
            assert!(parse("memory", text).is_err(), "{text}");
        }
    }
}
