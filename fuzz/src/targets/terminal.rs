//! What a program drew, as it is seen in the end: chunks make no difference, nothing in it acts, and a few
//! bytes never make many.

use toolcrib_text::{Terminal, as_seen};

use super::parts;

/// The parts are what is drawn, and where it is cut: each byte is the length of a chunk.
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
    assert!(!whole.iter().any(acts), "what is seen does not act");
    assert_eq!(as_seen(&whole), whole, "what is seen is seen as it is");
    assert!(whole.len() <= 16 * drawn.len() + 256, "a few bytes do not make many");
    let lines = whole.iter().filter(|&&byte| byte == b'\n').count();
    match whole == drawn {
        true => "as it was written".to_owned(),
        false => format!("drawn, {} lines", if lines > 1 { "several" } else { "few" }),
    }
}
