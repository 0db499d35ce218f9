//! Any text is parsed in bounded time without a panic.

use std::cell::Cell;

use proptest::prelude::*;
use toolcrib_syntax::{Language, MAX_BYTES, ParseError, Syntax, new_errors};

use crate::samples::SAMPLES;

/// A sample with a part removed, repeated or replaced.
fn mutated() -> impl Strategy<Value = (&'static str, Vec<u8>, Vec<u8>)> {
    let part = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let insert = prop::collection::vec(any::<u8>(), 0..8);
    (prop::sample::select(SAMPLES), part, insert, 0..4_usize).prop_map(
        |((name, text), (from, to), insert, repeat)| {
            let before = text.as_bytes().to_vec();
            let (from, to) = (from.index(before.len()), to.index(before.len()));
            let (from, to) = (from.min(to), from.max(to));
            let part = before.get(from..to).unwrap_or_default().repeat(repeat);
            let mut after = before.clone();
            after.splice(from..to, part.into_iter().chain(insert));
            (name, before, after)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn definitions_lie_within_the_text((name, before, after) in mutated()) {
        let language = Language::of_name(name).unwrap();
        let outline = Syntax::parse(language, &after, &|| false).unwrap().outline();
        let lines = after.split(|byte| *byte == b'\n').count() as u64;
        for (at, one) in outline.definitions.iter().enumerate() {
            prop_assert!(one.doc_line <= one.first_line && one.first_line <= one.last_line);
            prop_assert!(one.last_line <= lines);
            prop_assert!(one.outer.is_none_or(|outer| outer < at));
            prop_assert!(!outline.path(one).contains('\n'));
        }
        for line in 1..=lines {
            if let Some(around) = outline.around(line) {
                prop_assert!(around.doc_line <= line && line <= around.last_line);
            }
        }
        let errors = new_errors(language, Some(&before), &after, &|| false).unwrap();
        prop_assert!(errors.iter().all(|error| error.line >= 1 && error.line <= lines));
    }
}

#[test]
fn a_deep_text_ends_the_parse_in_time() {
    for language in Language::all() {
        for piece in ["(", "{", "[", "a{(", "<<", "\"", "if ", "'''\n"] {
            let text = piece.repeat(8_000 / piece.len());
            let asked = Cell::new(0_u64);
            let is_over = || {
                asked.set(asked.get() + 1);
                asked.get() > 2_000
            };
            match Syntax::parse(language, text.as_bytes(), &is_over) {
                Ok(syntax) => drop(syntax.outline()),
                Err(error) => assert_eq!(error, ParseError::Stopped, "{language:?} {piece}"),
            }
        }
    }
}

#[test]
fn a_stopped_parse_does_not_continue_in_the_next_text() {
    let text = "fn one() {}\n".repeat(2_000);
    let stopped = Syntax::parse(Language::Rust, text.as_bytes(), &|| true);
    assert_eq!(stopped.err(), Some(ParseError::Stopped));
    let next = Syntax::parse(Language::Rust, b"fn two() {}\n", &|| false).unwrap();
    let names: Vec<String> = next.outline().definitions.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["two"]);
}

#[test]
fn a_large_text_is_not_parsed() {
    let text = vec![b' '; MAX_BYTES + 1];
    let result = Syntax::parse(Language::Rust, &text, &|| false);
    assert_eq!(result.err(), Some(ParseError::TooLarge));
}
