//! Warnings about suspicious content.

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
    if let Some(line) = content.lines().find(|line| stands_for_the_rest(line)) {
        warnings.push(format!(
            "Note: a line looks like a placeholder for omitted text: {:?}. It was written literally.",
            line.trim()
        ));
    }
    let escaped = !content.contains('\n') && content.matches("\\n").count() > 1;
    if escaped {
        warnings.push(
            "Note: the content has no newline, but \\n as two characters. It was written literally."
                .to_owned(),
        );
    }
    warnings
}

/// Whether a line is a placeholder such as `// ... rest of the code unchanged`.
fn stands_for_the_rest(line: &str) -> bool {
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
    fn a_line_that_stands_for_others_is_told_from_one_that_does_not() {
        assert!(stands_for_the_rest("    // ... rest of the code unchanged ..."));
        assert!(stands_for_the_rest("# … existing code …"));
        assert!(!stands_for_the_rest("// the rest of the world"));
        assert!(!stands_for_the_rest("let unchanged = \"...\";"));
    }
}
