//! Calls with extreme input end in time: backtracking patterns, large images, large files.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Call, Cancel, Caps, Error, ErrorKind, Limits, Options, Profile, Reply, Runtime};

/// A look-ahead with exponential time on a line that has only `a`, and a `c` at its end: the linear engine excludes
/// lines without it.
const EXPONENTIAL: &str = "(?=(a+)+b)(a+)+c";

struct Bounded {
    directory: tempfile::TempDir,
    limits: Limits,
}

impl Bounded {
    fn new() -> Bounded {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        Bounded { directory, limits: Limits::default() }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.directory.path().join("ws").join(name), content).unwrap();
    }

    fn runtime(&self) -> Runtime {
        Runtime::builder()
            .root(self.directory.path().join("ws"))
            .journal(self.directory.path().join("state"), Caps::default())
            .profile(Profile::Open)
            .limits(self.limits)
            .helper(crate::helper())
            .build()
            .unwrap()
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        let runtime = self.runtime();
        runtime.call(&runtime.session(), Call::new(tool, args), Options::default())
    }
}

#[test]
fn catastrophic_backtracking_leaves_only_its_line_undecided() {
    let bounded = Bounded::new();
    bounded.file("a.txt", format!("aab aac\n{}c\naab aac\n", "a".repeat(1 << 20)));
    bounded.file("b.txt", "nothing\n");
    let reply = bounded.call(
        "Grep",
        json!({"pattern": format!("{EXPONENTIAL}|(?=aab)aab"), "output_mode": "content"}),
    );
    let reply = reply.unwrap();
    let text = reply.output();
    assert!(text.contains("1:aab aac\n3:aab aac\n"), "{text}");
    assert!(text.contains("undecided: 1 line in 1 file (a.txt:2)"), "{text}");
    assert_eq!(reply.metadata()["undecided_lines"], 1);
    assert_eq!(reply.metadata()["complete"], false);
    let reply =
        bounded.call("Grep", json!({"pattern": format!("{EXPONENTIAL}|(?=none)none")})).unwrap();
    let text = reply.output();
    assert!(text.contains("in the decided lines of 2 files.\n"), "{text}");
}

#[test]
fn memory_exhaustion_ends_only_the_matcher_process() {
    let bounded = Bounded::new();
    bounded.file("a.txt", format!("{}b\nab\n", "a".repeat(1 << 20)));
    // Each of a million iterations saves two thousand positions.
    let pattern = format!(r"(?:{}a\1)+(?=b)", "()".repeat(2_000));
    let reply = bounded.call("Grep", json!({"pattern": pattern, "output_mode": "content"}));
    let text = reply.unwrap().output().to_owned();
    assert!(text.contains("2:ab\n") && text.contains("(a.txt:1)"), "{text}");
}

#[test]
fn multiline_backtracking_is_reported_as_undecided() {
    let bounded = Bounded::new();
    bounded.file("a.txt", format!("x\n{}c\n", "a".repeat(1 << 20)));
    let args = json!({"pattern": EXPONENTIAL, "multiline": true});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(text.contains("undecided: from 1 line in 1 file"), "{text}");
}

#[test]
fn search_is_cancelled_within_a_line() {
    let bounded = Bounded::new();
    bounded.file("a.txt", "a".repeat(1 << 20) + "c");
    let runtime = bounded.runtime();
    let cancel = Cancel::new();
    let call = Call::new("Grep", json!({"pattern": EXPONENTIAL}));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel();
        });
        let options = Options { cancel: &cancel, ..Options::default() };
        let error = runtime.call(&runtime.session(), call, options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    });
}

#[test]
fn search_timeout_is_reported_as_incomplete() {
    let mut bounded = Bounded::new();
    bounded.limits.search_time = Duration::from_secs(3);
    bounded.file("a.txt", format!("{}c\n", "a".repeat(100_000)).repeat(50));
    let reply = bounded.call("Grep", json!({"pattern": EXPONENTIAL})).unwrap();
    assert!(!reply.output().contains("in 1 file."), "{}", reply.output());
    assert_eq!(reply.metadata()["complete"], false);
}

#[test]
fn output_filter_reports_backtracking_as_undecided() {
    let bounded = Bounded::new();
    let runtime = bounded.runtime();
    let session = runtime.session();
    let call = |tool: &str, args: Value| {
        runtime.call(&session, Call::new(tool, args), Options::default()).unwrap()
    };
    let command = "echo aab; head -c 60000 /dev/zero | tr '\\0' a; echo c; echo aab";
    let started = call("Bash", json!({"command": command, "run_in_background": true}));
    let id = started.metadata()["bash_id"].clone();
    call("BashOutput", json!({"bash_id": id, "wait_for": "exit"}));
    let filter = format!("{EXPONENTIAL}|(?=aab)aab");
    let reply = call("BashOutput", json!({"bash_id": id, "cursor": 0, "filter": filter}));
    let text = reply.output();
    assert_eq!(text.matches("aab\n").count(), 2, "{text}");
    assert!(text.contains("undecided: 1 line"), "{text}");
    assert_eq!(reply.metadata()["undecided_lines"], 1);
}

/// The beginning of a PNG of this size, without pixel data.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend(&header);
    png.extend(crc(&header).to_be_bytes());
    let data = b"IDAT\x78\x9c\x03\x00\x00\x00\x00\x01";
    png.extend([0, 0, 0, 8]);
    png.extend(data);
    png.extend(crc(data).to_be_bytes());
    png.extend(b"\0\0\0\0IEND\xae\x42\x60\x82");
    png
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn image_with_too_many_pixels_is_rejected() {
    let bounded = Bounded::new();
    bounded.file("wide.png", png(20_000, 5_000));
    let error = bounded.call("Read", json!({"file_path": "wide.png"})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("100000000 pixels"), "{error}");
    bounded.file("half.png", png(200, 500));
    let error = bounded.call("Read", json!({"file_path": "half.png"})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn image_without_helper_is_unsupported() {
    let bounded = Bounded::new();
    bounded.file("a.png", png(2, 2));
    let runtime = Runtime::builder().root(bounded.directory.path().join("ws")).build().unwrap();
    let read = |tool: &str, args: Value| {
        runtime.call(&runtime.session(), Call::new(tool, args), Options::default()).unwrap_err()
    };
    assert_eq!(read("Read", json!({"file_path": "a.png"})).kind(), ErrorKind::Unsupported);
    let error = read("Grep", json!({"pattern": "(?<=a)b"}));
    assert!(error.to_string().contains("no helper"), "{error}");
}

#[test]
fn named_file_is_searched_at_any_size() {
    let mut bounded = Bounded::new();
    (bounded.limits.search_bytes, bounded.limits.edit_bytes) = (1_000, 2_000);
    bounded.file("big.log", "a line\n".repeat(1_000) + "the needle");
    let args = json!({"pattern": "needle", "path": "big.log", "output_mode": "content"});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(text.contains("1001:the needle"), "{text}");
    let args = json!({"pattern": "missing", "path": "big.log"});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(text.contains("No match for `missing` in 1 file."), "{text}");
    let args = json!({"pattern": "line.the needle", "path": "big.log", "multiline": true});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(!text.contains("No match") && text.contains("too large"), "{text}");
    // In UTF-16, and in another letter case.
    let utf16: Vec<u8> =
        "é line\n".repeat(1_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
    bounded.file("utf16.txt", [b"\xff\xfe", utf16.as_slice()].concat());
    let args =
        json!({"pattern": "É LINE", "path": "utf16.txt", "-i": true, "output_mode": "count"});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(text.contains("1000"), "{text}");
}

#[test]
fn unread_ignored_file_is_not_reported_as_no_match() {
    let mut bounded = Bounded::new();
    bounded.limits.search_bytes = 1_000;
    bounded.file(".gitignore", "*.log\n");
    bounded.file("a.txt", "hi\n");
    bounded.file("app.log", "some ERROR here\n".repeat(1_000));
    let text = bounded.call("Grep", json!({"pattern": "ERROR"})).unwrap().output().to_owned();
    let expected = "1 ignored entry (app.log) skipped; not searched either: 1 too large (app.log), searched if given as path";
    assert!(text.contains(expected), "{text}");
    bounded.file("b.log", "nothing\n");
    bounded.file("c.log", b"\0\0\0\0ERROR\0\0\0");
    let text = bounded.call("Grep", json!({"pattern": "ERROR"})).unwrap().output().to_owned();
    assert!(text.contains("no match in 1 file of them; not searched: 1 too large"), "{text}");
    assert!(text.contains("1 not text"), "{text}");
    let args = json!({"pattern": "ERROR", "path": "app.log", "output_mode": "count"});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert!(text.contains("1000"), "{text}");
}

#[test]
fn large_named_binary_is_searched() {
    let mut bounded = Bounded::new();
    bounded.limits.search_bytes = 1_000;
    bounded.file("image.bin", [&[0; 5_000], &b"\nthe needle\n"[..], &[0; 5_000]].concat());
    let args = json!({"pattern": "needle", "path": "image.bin", "output_mode": "content"});
    let text = bounded.call("Grep", args).unwrap().output().to_owned();
    assert_eq!(text, "image.bin [binary]\n2:the needle\n");
}

#[test]
fn failed_edit_of_a_large_file_has_a_bounded_explanation() {
    let bounded = Bounded::new();
    bounded.file("lines", "\n".repeat(2_100_000));
    bounded.file("line", "ab ".repeat(300_000));
    bounded.file("many", "\n".repeat(8_100_000));
    for old in ["not there", "ab “x", "ab \n\n“x"] {
        for file in ["lines", "line"] {
            let args = json!({"file_path": file, "old_string": old, "new_string": "y"});
            let error = bounded.call("Edit", args).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoMatch, "{error}");
        }
    }
    let patch = "*** Begin Patch\n*** Update File: many\n-not there\n+y\n*** End Patch";
    let error = bounded.call("ApplyPatch", json!({"patch": patch})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("8100000 lines"), "{error}");
}
