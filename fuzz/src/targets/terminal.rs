//! Rendering terminal output: chunks make no difference, the result has no control sequences, and the output is
//! bounded by the input.

use toolcrib_text::{Terminal, as_seen};

use super::parts;

/// The parts are the output and the lengths of its chunks, one byte each.
pub(crate) fn terminal(input: &[u8]) -> String {
    let [drawn, cuts] = parts(input);
    let whole = as_seen(drawn);
    let (mut terminal, mut seen, mut rest) = (Terminal::default(), Vec::new(), drawn);
    for &cut in cuts {
        let (chunk, later) = rest.split_at(usize::from(cut).min(rest.len()));
        terminal.feed(chunk, &mut seen);
        rest = later;
    }
    terminal.feed(rest, &mut seen);
    terminal.finish(&mut seen);
    assert_eq!(seen, whole, "chunks make no difference");
    let acts = |byte: &u8| matches!(byte, b'\r' | 0x07 | 0x08 | 0x1b);
    assert!(!whole.iter().any(acts), "the result has no control characters");
    assert_eq!(as_seen(&whole), whole, "rendering the result changes nothing");
    assert!(whole.len() <= 16 * drawn.len() + 256, "the output is bounded by the input");
    let lines = whole.iter().filter(|&&byte| byte == b'\n').count();
    if whole == drawn {
        "unchanged".to_owned()
    } else {
        format!("rendered, {} lines", if lines > 1 { "several" } else { "few" })
    }
}
