//! Notebooks of every format, in every layout.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod layouts;

use self::layouts::{LAYOUTS, Layout};

/// The layout of Jupyter: an indent of one space, sorted keys.
const JUPYTER: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "c1",
   "metadata": {},
   "source": [
    "# Title\n",
    "\n",
    "Text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 5,
   "id": "c2",
   "metadata": {
    "tags": ["a", "b"]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn parse(text: &str) -> Notebook<'_> {
    Notebook::parse(text.as_bytes()).unwrap()
}

fn text(edited: Edited) -> String {
    String::from_utf8(edited.bytes).unwrap()
}

/// The part of a text that a change replaced, and its replacement.
fn changed<'a>(was: &'a str, now: &'a str) -> (&'a str, &'a str) {
    let same = |(one, other): &(u8, u8)| one == other;
    let front = was.bytes().zip(now.bytes()).take_while(same).count();
    let (was, now) = (&was[front..], &now[front..]);
    let back = was.bytes().rev().zip(now.bytes().rev()).take_while(same).count();
    (&was[..was.len() - back], &now[..now.len() - back])
}

#[test]
fn a_new_source_clears_the_outputs_and_nothing_else() {
    let edited = parse(JUPYTER).replace(2, "x = 1\nprint(x)\n", None).unwrap();
    assert_eq!((edited.number, edited.id.as_deref(), edited.total), (2, Some("c2"), 2));
    assert_eq!((edited.outputs_cleared, &*edited.cell_type), (1, "code"));
    let expected = JUPYTER
        .replace("\"execution_count\": 5", "\"execution_count\": null")
        .replace("    \"print(1)\"\n", "    \"x = 1\\n\",\n    \"print(x)\\n\"\n");
    let outputs = expected.find("\"outputs\": [").unwrap() + "\"outputs\": [".len();
    let end = expected[outputs..].find("\n   ]").unwrap() + outputs + "\n   ".len();
    assert_eq!(text(edited), [&expected[..outputs], &expected[end..]].concat());
}

#[test]
fn the_same_source_changes_nothing() {
    let notebook = parse(JUPYTER);
    let edited = notebook.replace(2, "print(1)", Some(CellType::Code)).unwrap();
    assert_eq!(edited.outputs_cleared, 0);
    assert_eq!(text(edited), JUPYTER);
}

#[test]
fn a_type_change_adds_and_removes_the_members_of_the_type() {
    let notebook = parse(JUPYTER);
    let code = text(notebook.replace(1, "x", Some(CellType::Code)).unwrap());
    let (_, new) = changed(JUPYTER, &code);
    assert!(new.contains("\"execution_count\": null,\n   \"id\": \"c1\","), "{new}");
    assert!(new.contains("\"outputs\": [],\n   \"source\": [\n    \"x"), "{new}");
    let raw = text(notebook.replace(2, "print(1)", Some(CellType::Raw)).unwrap());
    let cell = parse(&raw).cells()[1].raw.to_owned();
    let members: Value = serde_json::from_str(&cell).unwrap();
    let expected = json!({
        "cell_type": "raw", "id": "c2", "metadata": {"tags": ["a", "b"]}, "source": ["print(1)"],
    });
    assert_eq!(members, expected);
}

#[test]
fn attachments_are_kept_where_the_type_allows_them() {
    let was = r#"{"cells": [{"cell_type": "markdown", "attachments": {"a": {}}, "metadata": {}, "source": ""}], "nbformat": 4, "nbformat_minor": 2}"#;
    let notebook = parse(was);
    let edited = notebook.replace(1, "x", None).unwrap();
    assert!(!edited.attachments_removed);
    assert_eq!(text(edited), was.replace("\"source\": \"\"", "\"source\": \"x\""));
    let edited = notebook.replace(1, "x", Some(CellType::Code)).unwrap();
    assert!(edited.attachments_removed);
    let now = text(edited);
    assert!(!now.contains("attachments"), "{now}");
    assert!(
        now.contains("{\"cell_type\": \"code\", \"execution_count\": null, \"metadata\""),
        "{now}"
    );
}

#[test]
fn a_new_cell_has_the_layout_of_its_neighbours() {
    let notebook = parse(JUPYTER);
    let edited = notebook.insert(Position::After(1), "a\nb", CellType::Code, 0xab).unwrap();
    assert_eq!((edited.number, edited.id.as_deref(), edited.total), (2, Some("000000ab"), 3));
    let cell = "\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"000000ab\",\n   \
                \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  },";
    let at = JUPYTER.find("  },\n  {").unwrap() + 4;
    assert_eq!(text(edited), [&JUPYTER[..at], cell, &JUPYTER[at..]].concat());
}

#[test]
fn a_new_cell_is_inserted_at_its_position() {
    let notebook = parse(JUPYTER);
    for (position, expected) in [
        (Position::Before(1), ["new", "# Title\n\nText", "print(1)"]),
        (Position::After(1), ["# Title\n\nText", "new", "print(1)"]),
        (Position::Before(2), ["# Title\n\nText", "new", "print(1)"]),
        (Position::After(2), ["# Title\n\nText", "print(1)", "new"]),
        (Position::End, ["# Title\n\nText", "print(1)", "new"]),
    ] {
        let edited = notebook.insert(position, "new", CellType::Markdown, 1).unwrap();
        let number = edited.number;
        let now = text(edited);
        let sources: Vec<_> =
            parse(&now).cells().iter().map(|cell| cell.source().to_owned()).collect();
        assert_eq!(sources, expected, "{position:?}");
        assert_eq!(sources[number - 1], "new");
    }
    assert!(notebook.insert(Position::After(3), "", CellType::Code, 1).is_err());
    assert!(notebook.insert(Position::Before(0), "", CellType::Code, 1).is_err());
}

#[test]
fn ids_are_unique_and_only_given_where_the_format_has_them() {
    let taken = JUPYTER.replace("\"c1\"", "\"ffffffff\"").replace("\"c2\"", "\"00000000\"");
    let edited = parse(&taken).insert(Position::End, "", CellType::Raw, u32::MAX).unwrap();
    assert_eq!(edited.id.as_deref(), Some("00000001"));
    let older = JUPYTER.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
    let edited = parse(&older).insert(Position::End, "", CellType::Raw, 7).unwrap();
    assert_eq!(edited.id, None);
    assert!(!text(edited).contains("00000007"));
}

#[test]
fn a_first_cell_takes_the_layout_of_the_document() {
    for (was, cells) in [
        (
            "{\n \"cells\": [],\n \"nbformat\": 4\n}\n",
            "[\n  {\n   \"cell_type\": \"raw\",\n   \"metadata\": {},\n   \"source\": [\n    \"a\"\n   ]\n  }\n ]",
        ),
        (r#"{"cells":[],"nbformat":4}"#, r#"[{"cell_type":"raw","metadata":{},"source":["a"]}]"#),
        (
            r#"{"cells": [], "nbformat": 4}"#,
            r#"[{"cell_type": "raw", "metadata": {}, "source": ["a"]}]"#,
        ),
    ] {
        let now = text(parse(was).insert(Position::End, "a", CellType::Raw, 1).unwrap());
        assert_eq!(now, was.replace("[]", cells));
        assert_eq!(text(parse(&now).delete(1).unwrap()), was);
    }
}

#[test]
fn format_3_has_worksheets_and_other_keys() {
    let was = r#"{"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [
 {"cells": [{"cell_type": "heading", "level": 1, "metadata": {}, "source": ["One"]},
  {"cell_type": "code", "collapsed": false, "input": ["1+1"], "language": "julia", "metadata": {}, "outputs": [], "prompt_number": 2}], "metadata": {}},
 {"cells": [], "metadata": {}}
]}"#;
    let notebook = parse(was);
    assert_eq!(
        notebook.render(1, 9, 1_000).text,
        "[cell 1 heading]\nOne\n[cell 2 code In[2]]\n1+1\n"
    );
    let now = text(notebook.replace(2, "2", None).unwrap());
    assert_eq!(
        changed(was, &now),
        (
            "1+1\"], \"language\": \"julia\", \"metadata\": {}, \"outputs\": [], \"prompt_number\": 2",
            "2\"], \"language\": \"julia\", \"metadata\": {}, \"outputs\": [], \"prompt_number\": null"
        )
    );
    let now = text(notebook.replace(1, "x", Some(CellType::Code)).unwrap());
    let cell: Value = serde_json::from_str(parse(&now).cells()[0].raw).unwrap();
    let expected = json!({
        "cell_type": "code", "metadata": {}, "outputs": [], "language": "julia", "input": ["x"],
    });
    assert_eq!(cell, expected);
    let now = text(notebook.replace(2, "x", Some(CellType::Markdown)).unwrap());
    let cell: Value = serde_json::from_str(parse(&now).cells()[1].raw).unwrap();
    assert_eq!(cell, json!({"cell_type": "markdown", "metadata": {}, "source": ["x"]}));
    // The end is that of the last worksheet, and no other list is changed.
    let now = text(notebook.insert(Position::End, "end", CellType::Code, 1).unwrap());
    assert!(changed(was, &now).1.contains("\"input\": [\"end\"]"), "{now}");
    assert_eq!(parse(&now).cells()[2].list, 1);
}

#[test]
fn invalid_notebooks_are_rejected_with_the_position() {
    let error = |bytes: &[u8]| Notebook::parse(bytes).unwrap_err().to_string();
    assert_eq!(error(b"{\n \"cells\": [1,]\n}"), "line 2, column 14: expected value");
    assert_eq!(error(b""), "line 1, column 1: EOF while parsing a value");
    assert_eq!(error(b"[]"), "line 1, column 1: invalid type: sequence, expected an object");
    assert_eq!(error(b"{}\n{}"), "line 2, column 1: trailing characters");
    assert_eq!(error(b"{\"a\":\n \"\xff\"}"), "line 2, column 3: it is not UTF-8");
    assert_eq!(
        error(b"{\"nbformat\": 4,\n \"cells\": {}}"),
        "line 2, column 11: `cells` is not a list"
    );
    assert_eq!(error(b"{}"), "line 1, column 1: it has no `cells`, so it is not a notebook");
    let old = "line 1, column 1: it is a notebook of format 2, which is older than 3";
    assert_eq!(error(b"{\"nbformat\": 2}"), old);
}

#[test]
fn malformed_cells_are_read_and_can_be_deleted() {
    let was = r#"{"cells": [null, {}, {"cell_type": 3, "source": {"a": 1}, "outputs": 5}], "nbformat": 4}"#;
    let notebook = parse(was);
    let expected = "[cell 1 unknown]\n[cell 2 unknown]\n[cell 3 unknown]\n";
    assert_eq!(notebook.render(1, 9, 1_000).text, expected);
    assert_eq!(
        notebook.replace(1, "x", None).unwrap_err().to_string(),
        "line 1, column 12: cell 1 is not an object"
    );
    assert_eq!(text(notebook.delete(1).unwrap()), was.replace("null, ", ""));
    assert!(text(notebook.replace(2, "x", None).unwrap()).contains(r#"{"source": ["x"]}"#));
}

#[test]
fn members_that_a_cell_should_not_have_are_cleared_too() {
    let was = r#"{"cells": [{"cell_type": "raw", "outputs": [1], "source": "a"}], "nbformat": 4}"#;
    let edited = parse(was).replace(1, "b", None).unwrap();
    assert_eq!(edited.outputs_cleared, 1);
    assert!(text(edited).contains(r#""outputs": [], "source": "b""#));
}

#[test]
fn the_last_of_duplicate_keys_counts() {
    let was = r#"{"cells": [], "cells": [{"cell_type": "raw", "source": "a", "source": "b"}], "nbformat": 4}"#;
    let notebook = parse(was);
    assert_eq!(notebook.cells()[0].source(), "b");
    let now = text(notebook.replace(1, "c", None).unwrap());
    assert_eq!(now, was.replace("\"b\"", "\"c\""));
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let was = format!(
        r#"{{"cells": [{{"cell_type": "code", "metadata": {deep}, "outputs": [{deep}], "source": ""}}], "nbformat": 4}}"#
    );
    let notebook = parse(&was);
    assert!(notebook.render(1, 9, 1_000).text.contains("[output without text: 200 kB]"));
    assert!(text(notebook.replace(1, "x", None).unwrap()).contains(&deep));
}

#[test]
fn omitted_characters_are_counted() {
    let long = "x".repeat(5_000);
    let cell = json!({
        "cell_type": "code", "execution_count": 1, "id": "a\n]", "metadata": {}, "source": "s",
        "outputs": [{"output_type": "stream", "name": "stdout", "text": long}],
    });
    let cells: Vec<&Value> = std::iter::repeat_n(&cell, 3).collect();
    let was = json!({"cells": cells, "nbformat": 4}).to_string();
    let notebook = parse(&was);
    let rendered = notebook.render(1, 9, 9_000);
    assert_eq!((rendered.shown, rendered.total, rendered.clipped_chars), (2, 3, 2_000));
    assert!(rendered.text.starts_with("[cell 1 code id=\"a\\n]\" In[1]]\ns\n[output stdout]\nxxx"));
    assert!(
        rendered
            .text
            .ends_with("xx\n[1000 characters omitted]\n[cells 1-2 of 3; for more, offset: 3]\n")
    );
    let rendered = notebook.render(3, 9, 400);
    assert_eq!((rendered.shown, rendered.total), (1, 3));
    assert!(rendered.text.chars().count() <= 400, "{}", rendered.text);
    assert!(rendered.text.contains(" characters omitted]\n"));
    assert_eq!(notebook.render(4, 9, 400).shown, 0);
}

fn any_source() -> impl Strategy<Value = Value> {
    prop_oneof![
        proptest::collection::vec("[a\"\\\\é😀{}\\[,:]{0,4}\n?", 0..4).prop_map(Value::from),
        "[a-c\"\\\\é\n]{0,8}".prop_map(Value::from),
    ]
}

fn any_cell() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec!["code", "markdown", "raw", "heading"]);
    (words, any_source(), any::<bool>(), 0_u32..4).prop_map(|(kind, source, sorted, id)| {
        let cell = match (kind, sorted) {
            ("code", true) => json!({"cell_type": kind, "execution_count": 3, "id": id.to_string(),
                "metadata": {"a": [{}, "}"]}, "outputs": [{"output_type": "stream", "text": [1, "{"]}]}),
            ("code", false) => json!({"metadata": {}, "cell_type": kind, "outputs": [], "execution_count": null}),
            (_, true) => json!({"attachments": {"x]": {}}, "cell_type": kind, "metadata": {}}),
            _ => json!({"metadata": {}, "cell_type": kind}),
        };
        let mut cell = cell;
        cell["source"] = source;
        cell
    })
}

prop_compose! {
    fn any_notebook(least: usize)(
        cells in proptest::collection::vec(any_cell(), least..5),
        minor in 3_u64..6,
        layout in prop::sample::select(LAYOUTS),
        cells_first in any::<bool>(),
    ) -> String {
        let notebook = if cells_first {
            json!({"cells": cells, "metadata": {"é": 1}, "nbformat": 4, "nbformat_minor": minor})
        } else {
            json!({"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": cells})
        };
        Layout::write(&layout, &notebook)
    }
}

fn any_type() -> impl Strategy<Value = CellType> {
    prop::sample::select(vec![CellType::Code, CellType::Markdown, CellType::Raw])
}

/// The JSON texts of the cells.
fn raw_cells(text: &str) -> Vec<String> {
    parse(text).cells().iter().map(|cell| cell.raw.to_owned()).collect()
}

/// The document without its cells, to compare everything else.
fn value_without_cells(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
    value["cells"] = Value::Null;
    value
}

proptest! {
    #[test]
    fn a_replaced_cell_has_the_new_source_and_all_others_are_unchanged(
        was in any_notebook(1), at in any::<prop::sample::Index>(), source in "[a\"\\\\é😀\n\r]{0,8}",
        cell_type in proptest::option::of(any_type()),
    ) {
        let notebook = parse(&was);
        let number = at.index(notebook.cells().len()) + 1;
        let edited = notebook.replace(number, &source, cell_type).unwrap();
        let now = text(edited.clone());
        prop_assert_eq!(value_without_cells(&now), value_without_cells(&was));
        let changed = parse(&now);
        let cell = &changed.cells()[number - 1];
        prop_assert_eq!(cell.source(), &source);
        prop_assert_eq!(cell.cell_type(), &edited.cell_type);
        prop_assert_eq!(cell.id(), notebook.cells()[number - 1].id());
        let (mut before, mut behind) = (raw_cells(&was), raw_cells(&now));
        before.remove(number - 1);
        behind.remove(number - 1);
        prop_assert_eq!(before, behind);
        if json::escapes_non_ascii(&was) {
            prop_assert!(now.is_ascii(), "{}", now);
        }
        if was.contains("\r\n") {
            prop_assert_eq!(now.matches('\n').count(), now.matches("\r\n").count());
        }
    }

    #[test]
    fn deleting_an_inserted_cell_restores_the_document(
        was in any_notebook(0), at in any::<prop::sample::Index>(), way in 0_u8..3,
        source in "[a\"\\\\é😀\n]{0,8}", cell_type in any_type(), seed in any::<u32>(),
    ) {
        let notebook = parse(&was);
        let number = at.index(notebook.cells().len().max(1)) + 1;
        let position = match way {
            0 if !notebook.cells().is_empty() => Position::Before(number),
            1 if !notebook.cells().is_empty() => Position::After(number),
            _ => Position::End,
        };
        let edited = notebook.insert(position, &source, cell_type, seed).unwrap();
        let now = text(edited.clone());
        prop_assert_eq!(value_without_cells(&now), value_without_cells(&was));
        let changed = parse(&now);
        let cell = &changed.cells()[edited.number - 1];
        prop_assert_eq!((cell.source(), cell.cell_type()), (source.as_str(), cell_type.name()));
        prop_assert_eq!(cell.id(), edited.id.as_deref());
        let mut others = raw_cells(&now);
        others.remove(edited.number - 1);
        prop_assert_eq!(others, raw_cells(&was));
        prop_assert_eq!(text(changed.delete(edited.number).unwrap()), was);
    }

    #[test]
    fn a_deleted_cell_is_removed_and_the_others_are_unchanged(was in any_notebook(1), at in any::<prop::sample::Index>()) {
        let notebook = parse(&was);
        let number = at.index(notebook.cells().len()) + 1;
        let now = text(notebook.delete(number).unwrap());
        let mut others = raw_cells(&was);
        others.remove(number - 1);
        prop_assert_eq!(raw_cells(&now), others);
        prop_assert_eq!(value_without_cells(&now), value_without_cells(&was));
    }

    #[test]
    fn a_damaged_notebook_does_not_panic(
        was in any_notebook(0), cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = was.into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        try_all(&bytes);
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        try_all(&bytes);
    }

    #[test]
    fn a_rendered_notebook_is_within_its_limit(
        was in any_notebook(0), first in 0_usize..6, limit in 0_usize..6, max_chars in 150_usize..600,
    ) {
        let rendered = parse(&was).render(first, limit, max_chars);
        prop_assert!(rendered.text.chars().count() <= max_chars, "{}", rendered.text);
        prop_assert!(rendered.shown <= limit);
    }
}

fn try_all(bytes: &[u8]) {
    let Ok(notebook) = Notebook::parse(bytes) else { return };
    notebook.render(1, 10, 1_000);
    for number in 0..=notebook.cells().len() + 1 {
        let _ = notebook.replace(number, "x", Some(CellType::Code));
        let _ = notebook.insert(Position::Before(number), "x", CellType::Raw, 0);
        let _ = notebook.delete(number);
    }
    let _ = notebook.insert(Position::End, "x", CellType::Code, 0);
}
