//! Tests of rendering terminal output.

use proptest::prelude::*;

use super::*;

fn seen(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&as_seen(bytes)).into_owned()
}

#[test]
fn plain_text_is_unchanged() {
    for text in
        ["", "a", "a\n", "a\n\n b\t\n", "ä\n測試", "trailing  \nblanks ", "nul \0 and \u{7f}"]
    {
        assert_eq!(seen(text.as_bytes()), text);
    }
    assert_eq!(as_seen(b"caf\xe9\n"), b"caf\xe9\n");
}

#[test]
fn a_line_is_shown_as_it_was_drawn_last() {
    assert_eq!(seen(b"10%\r50%\r100%\ndone\n"), "100%\ndone\n");
    assert_eq!(seen(b"downloading\r\x1b[Kdone\n"), "done\n");
    assert_eq!(seen(b"downloading\r           \rok\n"), "ok\n");
    assert_eq!(seen(b"one\r\ntwo\r\n"), "one\ntwo\n");
    assert_eq!(seen(b"spin |\x08/\x08-\x08\\\n"), "spin \\\n");
    assert_eq!(seen("1,5 €\r2\n".as_bytes()), "2,5 €\n");
}

#[test]
fn words_that_a_redrawn_line_lacks_are_kept_as_a_line() {
    assert_eq!(seen(b"one\rtwo\rthree\n"), "one\ntwo\nthree\n");
    assert_eq!(seen(b"one\rtwo\r"), "one\ntwo");
    assert_eq!(seen(b"downloading\rdone\n"), "downloading\ndone\n");
    assert_eq!(seen(b"a long line\rshort\n"), "a long line\nshort\n");
    assert_eq!(seen(b"short\ra long line\n"), "short\na long line\n");
    assert_eq!(seen("größe\rx\n".as_bytes()), "größe\nx\n");
    assert_eq!(seen(b"\x00HEAD\rTAIL\n"), "\0HEAD\nTAIL\n");
    let many: String = (0..200).map(|n| format!("{}\r", "ab".repeat(n + 1))).collect();
    assert_eq!(seen(many.as_bytes()).lines().count(), 200);
}

#[test]
fn progress_displays_are_one_line() {
    assert_eq!(seen(b"get 1%\rget 50%\rget 100%, done\n"), "get 100%, done\n");
    assert_eq!(seen(b"|\r/\r-\r\\\rok\n"), "ok\n");
    assert_eq!(seen(b"reading foo\r\x1b[Kreading bar\n"), "reading bar\n");
    assert_eq!(seen(b"reading foo\rbar\x1b[K\n"), "bar\n");
    assert_eq!(seen(b"reading foo\r           \rbar\n"), "bar\n");
}

#[test]
fn colours_titles_and_links_are_reduced_to_their_text() {
    assert_eq!(seen(b"\x1b[1;31merror\x1b[0m: no\n"), "error: no\n");
    assert_eq!(seen(b"\x1b[38:2::255:0:0mred\x1b[m"), "red");
    assert_eq!(seen(b"\x1b]0;title\x07text"), "text");
    assert_eq!(seen(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"), "link\n");
    assert_eq!(seen(b"\x1b(Btext\x1b[?25l\x1b[?2004h.\n"), "text.\n");
    assert_eq!(seen(b"bell\x07\n"), "bell\n");
}

#[test]
fn lines_above_can_be_redrawn() {
    assert_eq!(seen(b"a 1\nb 1\n\x1b[2A\ra 2\nb 2\n"), "a 2\nb 2\n");
    assert_eq!(seen(b"a\nb\nc\n\x1b[3A\x1b[Jend\n"), "end\n");
    assert_eq!(seen(b"x\x1b[s....\x1b[u!\n"), "x!...\n");
    assert_eq!(seen(b"a\nb\x1b[1;1Hc\n"), "c\nb");
    assert_eq!(seen(b"a\x1b[10Gb\n"), "a        b\n");
}

#[test]
fn clearing_the_screen_loses_no_text() {
    assert_eq!(seen(b"one\n\x1b[H\x1b[2J\x1b[3Jtwo\n"), "one\ntwo\n");
}

#[test]
fn an_invalid_sequence_does_not_swallow_later_text() {
    assert_eq!(seen(b"\x1b]unfinished title\nnext line\n"), "\nnext line\n");
    assert_eq!(seen(b"\x1b[12\nnext\n"), "\nnext\n");
    let long = [b"\x1b]".as_slice(), &[b'x'; 9000]].concat();
    assert!(seen(&long).len() > 4000);
}

#[test]
fn a_long_line_is_kept_whole_in_constant_memory() {
    let line = vec![b'x'; 1 << 20];
    assert_eq!(as_seen(&line), line);
    let mut terminal = Terminal::default();
    let mut out = Vec::new();
    for _ in 0..200 {
        terminal.feed(&line, &mut out);
        assert!(out.len() <= line.len() + (64 << 10));
        out.clear();
    }
}

#[test]
fn short_sequences_do_not_amplify_the_output() {
    let hostile = b"\x1b[9999;99999Hx\n".repeat(1000);
    assert!(as_seen(&hostile).len() < 16 * hostile.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_result_does_not_depend_on_chunks(bytes in written(), cuts in prop::collection::vec(0usize..200, 0..8)) {
        let mut terminal = Terminal::default();
        let mut chunked = Vec::new();
        let mut rest = bytes.as_slice();
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut.min(rest.len()));
            terminal.feed(chunk, &mut chunked);
            rest = later;
        }
        terminal.feed(rest, &mut chunked);
        terminal.finish(&mut chunked);
        prop_assert_eq!(chunked, as_seen(&bytes));
    }

    #[test]
    fn rendering_is_idempotent_and_leaves_no_control_bytes(bytes in written()) {
        let seen = as_seen(&bytes);
        prop_assert!(seen.iter().all(|&byte| byte == b'\n' || is_text(byte)));
        prop_assert_eq!(as_seen(&seen), seen.clone());
        prop_assert!(seen.len() <= 16 * bytes.len() + 256);
    }
}

/// Bytes with many escape sequences and incomplete characters.
fn written() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-zä測 \t]{0,12}".prop_map(String::into_bytes),
        2 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        1 => Just(b"\x08".to_vec()),
        2 => "\u{1b}\\[[0-9;]{0,7}[A-HJKsu]".prop_map(String::into_bytes),
        1 => Just(b"\x1b]0;x\x07".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}
