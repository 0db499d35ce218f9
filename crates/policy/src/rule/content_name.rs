//! Names of rules without a name: their decision, their first pattern, and a hash of their content. They stay the
//! same if the rule moves in its file, so decisions in the log still belong to it.

/// Letters of the first pattern in a name.
const MAX_WORD_CHARS: usize = 24;

/// The name of a rule with this decision and these fields, each with its values in their order.
pub(super) fn content_name(decision: &str, fields: &[(&str, &[String])]) -> String {
    let first = fields.iter().flat_map(|(_, values)| *values).next();
    let word = slug(first.map_or("", String::as_str));
    let hash = fields.iter().fold(fnv(FNV_OFFSET, decision), |hash, (name, values)| {
        values.iter().fold(fnv(hash, name), |hash, value| fnv(hash, value))
    });
    let hash = (hash >> 32) ^ (hash & u64::from(u32::MAX));
    let word = if word.is_empty() { String::new() } else { format!("-{word}") };
    format!("{decision}{word}-{hash:08x}")
}

/// The letters and digits of a pattern, with one hyphen between words.
fn slug(pattern: &str) -> String {
    let words = pattern.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join("-").to_lowercase();
    let end = joined.len().min(MAX_WORD_CHARS);
    joined[..end].trim_end_matches('-').to_owned()
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which is the same in every version. A byte that UTF-8 never contains ends the text.
fn fnv(hash: u64, text: &str) -> u64 {
    let bytes = text.bytes().chain([0xff]);
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_the_content_alone() {
        let name = |decision: &str, commands: &[&str]| {
            let commands: Vec<String> = commands.iter().map(|text| (*text).to_owned()).collect();
            content_name(decision, &[("commands", &commands), ("paths", &[])])
        };
        let first = name("ask", &["npm publish"]);
        assert!(first.starts_with("ask-npm-publish-"), "{first}");
        assert_eq!(first, name("ask", &["npm publish"]));
        let others = [
            name("deny", &["npm publish"]),
            name("ask", &["npm publish", "x"]),
            name("ask", &["npm  publish"]),
            name("ask", &[]),
        ];
        assert!(!others.contains(&first), "{others:?}");
        assert_eq!(name("ask", &["ä…\u{202e}"]).len(), "ask-".len() + 8);
        let long = name("ask", &["a-very-long-command-name with many words"]);
        assert!(long.starts_with("ask-a-very-long-command-name-"), "{long}");
    }
}
