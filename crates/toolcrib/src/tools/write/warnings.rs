//! Warnings about suspicious content.

use crate::tools::escaped_newlines::{escaped_newlines_note, has_escaped_newlines};

/// A file of at least this size that shrinks to less than a tenth gets a warning.
const LARGE_BYTES: usize = 1_000;

pub(super) fn of(content: &str, was: &[u8]) -> Vec<String> {
    let mut warnings = Vec::new();
    if was.len() >= LARGE_BYTES && content.len() < was.len() / 10 {
        warnings.push(format!(
            "Note: the file shrank from {} to {} bytes.",
            was.len(),
            content.len()
        ));
    }
    if let Some(line) = content.lines().find(|line| is_placeholder(line)) {
        warnings.push(format!(
            "Note: a line looks like a placeholder for omitted text: {:?}. It was written literally.",
            line.trim()
        ));
    }
    if has_escaped_newlines(content, was) {
        warnings.push(escaped_newlines_note("the content"));
    }
    warnings
}

/// Whether a line is a placeholder such as `// ... rest of the code unchanged`.
fn is_placeholder(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let is_comment = ["//", "#", "/*", "<!--", "--", ";"].iter().any(|mark| line.starts_with(mark));
    let has_gap = line.contains("...") || line.contains('…');
    let words = ["rest of", "unchanged", "existing code", "same as before", "remains the same"];
    is_comment && has_gap && words.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_recognized() {
        assert!(is_placeholder("    // ... rest of the code unchanged ..."));
        assert!(is_placeholder("# … existing code …"));
        assert!(!is_placeholder("// the rest of the world"));
        assert!(!is_placeholder("let unchanged = \"...\";"));
    }
}
