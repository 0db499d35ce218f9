//! Renders the terminal output of a program, without colours.

/// Removes escape sequences. Of a line that was overwritten, as by progress bars, keeps the last state.
pub(super) fn rendered(text: &str) -> String {
    let text = without_escapes(text);
    let mut rendered = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let line = line.trim_end_matches('\r');
        rendered += line.rsplit('\r').next().unwrap_or(line);
        rendered += end;
    }
    rendered
}

fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        kept += &rest[..at];
        rest = after_escape(&rest[at + 1..]);
    }
    kept + rest
}

/// The text after an escape sequence, given without its `ESC`.
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        // A control sequence: parameters up to a final letter.
        Some('[') => {
            let rest = chars.as_str();
            let inside = |c: char| matches!(c, ' '..='?');
            let end = rest.trim_start_matches(inside);
            end.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(end)
        }
        // An operating system command, such as a title or a link: up to its terminator.
        Some(']') => {
            let rest = chars.as_str();
            match rest.find(['\u{7}', '\u{1b}', '\n']) {
                Some(at) if rest[at..].starts_with('\n') => &rest[at..],
                Some(at) => {
                    let end = &rest[at + 1..];
                    end.strip_prefix('\\').unwrap_or(end)
                }
                None => "",
            }
        }
        Some('\n') | None => text,
        Some(_) => chars.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_links_and_titles_are_removed() {
        assert_eq!(rendered("\u{1b}[0;31mred\u{1b}[0m \u{1b}[1;32m"), "red ");
        assert_eq!(rendered("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}."), "link.");
        assert_eq!(rendered("\u{1b}[é \u{1b}(é\u{1b}"), "é é");
    }

    #[test]
    fn an_incomplete_sequence_does_not_swallow_a_line() {
        assert_eq!(rendered("a\u{1b}]0;title\nb\u{1b}[31\nc\u{1b}\nd"), "a\nb\nc\nd");
    }

    #[test]
    fn the_last_state_of_a_progress_bar_is_kept() {
        assert_eq!(rendered("0%\r50%\r100%\ndone\r\nx\r"), "100%\ndone\nx");
    }
}
