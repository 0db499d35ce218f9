//! Properties for arbitrary input.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib::{Call, ErrorKind, Options, Runtime};

fn workspace(content: &[u8]) -> (tempfile::TempDir, Runtime) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), content).unwrap();
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    (directory, runtime)
}

/// Arbitrary JSON that contains names of fields and values of tools.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("a.txt".to_owned()),
        Just("one".to_owned()),
        Just("".to_owned()),
        Just("true".to_owned()),
        Just("-1".to_owned()),
        Just("..".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

/// Arguments that resemble a tool's, and others.
fn any_arguments() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "file_path",
        "filePath",
        "path",
        "offset",
        "limit",
        "old_string",
        "newString",
        "replace_all",
        "near_line",
        "nonsense",
    ]);
    let fields = proptest::collection::vec((names.prop_map(str::to_owned), any_json()), 0..6);
    prop_oneof![
        4 => fields.prop_map(|fields| Value::Object(Map::from_iter(fields))),
        1 => any_json(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_arguments_give_a_bounded_reply_and_no_internal_error(
        tool in prop::sample::select(vec!["Read", "Edit"]),
        args in any_arguments(),
        dry_run in any::<bool>(),
    ) {
        let (_directory, runtime) = workspace(b"one\ntwo\n");
        let options = Options { dry_run, ..Options::default() };
        let outcome = runtime.call(&runtime.session(), Call::new(tool, args), options);
        if let Err(error) = &outcome {
            prop_assert_ne!(error.kind(), ErrorKind::Internal, "{}", error);
        }
        prop_assert!(Value::Object(toolcrib::to_json(&outcome)).to_string().len() < 100_000);
    }

    #[test]
    fn edit_changes_only_its_range(
        before in any_bytes(), old in "[ab\\n\u{e9}]{1,6}", after in any_bytes(), new in "[xy]{0,8}",
    ) {
        let was = [before.as_slice(), old.as_bytes(), after.as_slice()].concat();
        let (directory, runtime) = workspace(&was);
        let args = json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        let outcome = runtime.call(&runtime.session(), Call::new("Edit", args), Options::default());
        let now = std::fs::read(directory.path().join("a.txt")).unwrap();
        match outcome {
            Ok(_) if std::str::from_utf8(&was).is_ok() => {
                let expected = [before.as_slice(), new.as_bytes(), after.as_slice()].concat();
                prop_assert_eq!(now, expected);
            }
            Ok(_) => {
                // In another encoding the text may occur elsewhere; the surrounding bytes must still be
                // unchanged.
                let front = was.iter().zip(&now).take_while(|(a, b)| a == b).count();
                let back = was[front..].iter().rev().zip(now[front..].iter().rev());
                let back = back.take_while(|(a, b)| a == b).count();
                prop_assert!(was.len() - front - back <= old.len() * 2, "{:?} became {:?}", was, now);
            }
            Err(error) => {
                // A file with bytes of two encodings is read in one of them, in which the text may not occur.
                let expected = [ErrorKind::Ambiguous, ErrorKind::NoMatch, ErrorKind::Unsupported];
                let utf8 = std::str::from_utf8(&was).is_ok();
                let known = if utf8 { &expected[..1] } else { &expected[..] };
                prop_assert!(known.contains(&error.kind()), "{}", error);
                prop_assert_eq!(now, was);
            }
        }
    }

    #[test]
    fn read_shows_every_line_with_its_number(
        lines in proptest::collection::vec("[a-z\u{e9} ]{0,12}", 1..40), offset in 1usize..40, limit in 1usize..40,
    ) {
        let (_directory, runtime) = workspace((lines.join("\n") + "\n").as_bytes());
        let args = json!({"file_path": "a.txt", "offset": offset, "limit": limit});
        let outcome = runtime.call(&runtime.session(), Call::new("Read", args), Options::default());
        if offset > lines.len() {
            prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Invalid);
            return Ok(());
        }
        let mut expected: Vec<String> = lines.iter().enumerate().skip(offset - 1).take(limit)
            .map(|(at, line)| format!("{:>6}\t{line}", at + 1)).collect();
        let reply = outcome.unwrap();
        let next = offset + limit;
        if next <= lines.len() {
            let range = if limit == 1 { format!("line {offset}") } else { format!("lines {offset}-{}", next - 1) };
            expected.push(format!("[{range} of {}; for more, offset: {next}]", lines.len()));
        }
        prop_assert_eq!(reply.output().lines().collect::<Vec<_>>(), expected);
    }
}

/// Bytes in no particular encoding, with all kinds of line ends.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => Just(b'z'), 2 => Just(b'\n'), 1 => Just(0xe9), 1 => Just(0xff), 1 => any::<u8>(),
    ];
    let piece = prop_oneof![
        4 => byte.prop_map(|byte| vec![byte]),
        1 => Just(b"\r\n".to_vec()),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}
