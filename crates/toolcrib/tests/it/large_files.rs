//! Files larger than `look_bytes` are read like small ones.

use proptest::prelude::*;
use serde_json::json;
use toolcrib::{Call, Limits, Options, Runtime};

/// The lines that Read shows, without numbers, and the number of remaining lines that it reports.
fn read(content: &[u8], look_bytes: u64, offset: i64, limit: u64) -> Option<(Vec<String>, u64)> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), content).unwrap();
    let limits = Limits { look_bytes, ..Limits::default() };
    let runtime = Runtime::builder().root(directory.path()).limits(limits).build().unwrap();
    let args = json!({"file_path": "a.txt", "offset": offset, "limit": limit});
    let reply =
        runtime.call(&runtime.session(), Call::new("Read", args), Options::default()).ok()?;
    let left = reply.metadata()["remaining_lines"].as_u64()?;
    let lines = reply.output().lines().filter(|line| !line.starts_with('['));
    Some((lines.map(|line| line.split_once('\t').unwrap().1.to_owned()).collect(), left))
}

fn in_utf16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

proptest! {
    #[test]
    fn large_file_reads_like_a_small_one(
        text in "[a-c\u{e4}\u{20ac}\u{a0a}]{1,3}(\n|\r\n|[a-c\u{20ac}]){0,30}",
        offset in prop_oneof![-12i64..0, 1i64..12], limit in 1u64..6, utf16 in any::<bool>(),
    ) {
        let content = if utf16 { in_utf16(&text) } else { text.clone().into_bytes() };
        let small = read(&content, 1 << 20, offset, limit);
        let large = read(&content, 0, offset, limit);
        prop_assert_eq!(large, small);
    }
}

#[test]
#[expect(clippy::disallowed_types, reason = "a test makes its own files, here a sparse one")]
fn end_of_a_20_gb_file_is_readable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    std::fs::write(&path, "first\n".repeat(1 << 18)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(20_000_000_000).unwrap();
    use std::os::unix::fs::FileExt as _;
    let end = "\nlast but one\nlast\n";
    file.write_all_at(end.as_bytes(), 20_000_000_000 - end.len() as u64).unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let args = json!({"file_path": "log", "offset": -2});
    let reply =
        runtime.call(&runtime.session(), Call::new("Read", args), Options::default()).unwrap();
    assert!(reply.output().ends_with("    -2\tlast but one\n    -1\tlast\n"), "{}", reply.output());
}

#[test]
fn a_long_source_file_offers_its_outline() {
    let directory = tempfile::tempdir().unwrap();
    let text: String = (0..3_000).map(|number| format!("fn f{number}() {{}}\n")).collect();
    std::fs::write(directory.path().join("a.rs"), &text).unwrap();
    std::fs::write(directory.path().join("a.txt"), &text).unwrap();
    let runtime = toolcrib::Runtime::builder().root(directory.path()).build().unwrap();
    let session = runtime.session();
    let read = |args: serde_json::Value| {
        let call = toolcrib::Call::new("Read", args);
        runtime.call(&session, call, toolcrib::Options::default()).unwrap().text()
    };
    let offer = "; outline: true lists its definitions]\n";
    let reply = read(serde_json::json!({"file_path": "a.rs"}));
    assert!(reply.ends_with(offer), "{}", reply.lines().last().unwrap());
    for args in [
        serde_json::json!({"file_path": "a.txt"}),
        serde_json::json!({"file_path": "a.rs", "limit": 10}),
        serde_json::json!({"file_path": "a.rs", "offset": 2}),
    ] {
        assert!(!read(args.clone()).ends_with(offer), "{args}");
    }
    let outline = read(serde_json::json!({"file_path": "a.rs", "outline": true}));
    assert!(outline.contains("more definitions; for more, offset: "), "a long outline has pages");
}

/// Read shows neither as a whole, so the error of Write says what replaces them.
#[test]
fn a_file_that_read_does_not_show_as_a_whole_can_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.txt");
    let limits = Limits { look_bytes: 9_000, edit_bytes: 10_000, ..Limits::default() };
    let runtime = Runtime::builder().root(directory.path()).limits(limits).build().unwrap();
    let session = runtime.session();
    let write = |mut args: serde_json::Value| {
        args["file_path"] = "a.txt".into();
        args["content"] = "new\n".into();
        runtime.call(&session, Call::new("Write", args), Options::default())
    };
    for (content, why) in [
        ("line\n".repeat(1_900), "too large: Read shows only parts of it"),
        ("x".repeat(5_000), "which Read cuts"),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = write(json!({})).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let hash = error.metadata()["hash"].clone();
        assert!(error.to_string().contains(&format!("expected_hash: {hash}")), "{error}");
        write(json!({"expected_hash": hash})).unwrap();
    }
    std::fs::write(&path, "line\n".repeat(3_000)).unwrap();
    let error = write(json!({})).unwrap_err();
    assert!(error.to_string().contains("Remove it with Bash"), "{error}");
}

/// Also if other files match.
#[test]
fn a_search_names_files_that_are_too_large() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("large.txt"), "hello\n".repeat(2_000_000)).unwrap();
    std::fs::write(at("small.txt"), "hello\n").unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let session = runtime.session();
    for mode in ["files_with_matches", "content", "count"] {
        let call = Call::new("Grep", json!({"pattern": "hello", "output_mode": mode}));
        let reply = runtime.call(&session, call, Options::default()).unwrap();
        let note = "[1 file skipped as too large (large.txt); give one as path to search it]";
        assert!(reply.output().contains(note), "{mode}: {reply:?}");
        assert_eq!(reply.metadata()["complete"], false, "{mode}");
    }
}
