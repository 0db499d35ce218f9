//! Tests of matches that differ in whitespace, typography or line endings.

use proptest::prelude::*;

use super::*;
use crate::endings::EndingFinder;

/// The file after the edit and the level of the match, or the reason for the failure.
fn edit(file: &str, old: &str, new: &str) -> Result<(MatchLevel, String), &'static str> {
    let text = file.as_bytes();
    let (wanted, new) = (SoughtText::new(old), SoughtText::new(new));
    let places = find_equivalents(text, b'\n', &wanted);
    let [place] = places.as_slice() else {
        return Err(if places.is_empty() { "none" } else { "several" });
    };
    let range = place.range();
    let ending = EndingFinder::new(text).at(range.start);
    let bytes = place.rewrite(text, &wanted, &new, ending).ok_or("no indentation")?;
    let now = [&text[..range.start], &bytes, &text[range.end..]].concat();
    Ok((place.difference().level, String::from_utf8(now).unwrap()))
}

#[track_caller]
fn edits(file: &str, old: &str, new: &str, level: MatchLevel, now: &str) {
    assert_eq!(edit(file, old, new), Ok((level, now.to_owned())));
}

#[test]
fn line_endings_are_kept_and_new_lines_take_those_around() {
    let file = "a\r\nb\nc\r\nd\n";
    edits(file, "a\nb\nc", "a\nx\nc", MatchLevel::LineEndings, "a\r\nx\nc\r\nd\n");
    edits(file, "b\nc\n", "b\nnew\nc\n", MatchLevel::LineEndings, "a\r\nb\nnew\nc\r\nd\n");
    edits("a\nb\n", "a\r\nb\r\n", "a\r\nc\r\n", MatchLevel::LineEndings, "a\nc\n");
    edits(file, "a\nb\nc\n", "", MatchLevel::LineEndings, "d\n");
    // The last line of the file has no newline.
    edits("a = 1\nb = 2", "b = 2\n", "b = 3\n", MatchLevel::LineEndings, "a = 1\nb = 3");
    edits("  a\n  b", "a\nb\n", "a\nc\n", MatchLevel::Indentation, "  a\n  c");
}

#[test]
fn trailing_whitespace_of_unchanged_lines_is_kept() {
    let file = "one  \ntwo\t\nthree\n";
    edits(file, "one\ntwo\n", "one\nTWO\n", MatchLevel::TrailingBlanks, "one  \nTWO\nthree\n");
    edits(file, "two   \nthree", "two   \n3", MatchLevel::TrailingBlanks, "one  \ntwo\t\n3\n");
    edits("x = 1\n", "x = 1  ", "x = 2", MatchLevel::TrailingBlanks, "x = 2\n");
    assert_eq!(edit("return xyz\n", "return x  ", "return y"), Err("none"), "blanks end a line");
    edits("a\n   \nb\n", "a\n\nb", "a\n\nc", MatchLevel::TrailingBlanks, "a\n   \nc\n");
}

#[test]
fn a_dedented_block_is_indented_again() {
    let file = "class A:\n    def f(self):\n        return 1\n";
    edits(
        file,
        "def f(self):\n    return 1\n",
        "def f(self):\n    if x:\n        return 2\n    return 1\n",
        MatchLevel::Indentation,
        "class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n",
    );
    edits(
        "a\n  b\n",
        "    a\n      b",
        "    a\n      c\n    d",
        MatchLevel::Indentation,
        "a\n  c\nd\n",
    );
    let shallower = edit("a\n  b\n", "    a\n      b", "  a\n      b");
    assert_eq!(shallower, Err("no indentation"), "left of the file's first column");
}

#[test]
fn spaces_become_the_tabs_of_the_file_and_tabs_its_spaces() {
    let tabs = "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n";
    edits(
        tabs,
        "    if x {\n        y()\n    }",
        "    if x {\n        for {\n            z()\n        }\n    }",
        MatchLevel::Indentation,
        "func f() {\n\tif x {\n\t\tfor {\n\t\t\tz()\n\t\t}\n\t}\n}\n",
    );
    let spaces = tabs.replace('\t', "  ");
    edits(
        &spaces,
        "\tif x {\n\t\ty()\n\t}",
        "\tif x {\n\t\ty()\n\t\t\tdeep()\n\t}",
        MatchLevel::Indentation,
        "func f() {\n  if x {\n    y()\n      deep()\n  }\n}\n",
    );
    // Dedented and with spaces at the same time.
    edits(
        tabs,
        "if x {\n    y()\n}",
        "if x {\n    y()\n    z()\n}",
        MatchLevel::Indentation,
        "func f() {\n\tif x {\n\t\ty()\n\t\tz()\n\t}\n}\n",
    );
    // One line at one depth, and the new text goes deeper.
    edits(
        "\ty()\n",
        "  y()",
        "  if x {\n    y()\n  }",
        MatchLevel::Indentation,
        "\tif x {\n\t\ty()\n\t}\n",
    );
    edits(
        "def f():\n\tx()\n",
        "        x()",
        "        if a:\n            x()",
        MatchLevel::Indentation,
        "def f():\n\tif a:\n\t\tx()\n",
    );
    edits(
        "{\n\ty()\n}\n",
        "{\n    y()\n}",
        "{\n    z()\n}",
        MatchLevel::Indentation,
        "{\n\tz()\n}\n",
    );
}

#[test]
fn indentation_steps_of_two_become_steps_of_four() {
    let file = "a:\n    b:\n        c\n";
    edits(
        file,
        "  b:\n    c",
        "  b:\n    c\n      d",
        MatchLevel::Indentation,
        "a:\n    b:\n        c\n            d\n",
    );
}

#[test]
fn lines_that_are_indented_wrongly_are_no_match() {
    let file = "class A:\n    def f(self):\n        for x in y:\n            pass\n";
    for old in [
        "    def f(self):\n            for x in y:",
        "    def f(self):\n      for x in y:\n        pass",
        "  def f(self):\n     for x in y:",
    ] {
        let new = "    def f(self):\n        z()\n        for x in y:";
        assert_eq!(edit(file, old, new), Err("none"), "{old}");
    }
}

#[test]
fn a_file_with_tabs_and_spaces_keeps_each_line() {
    let file = "if x:\n\ta\n        b\n";
    edits(
        file,
        "        a\n        b\n",
        "        a\n        c\n        b\n",
        MatchLevel::Indentation,
        "if x:\n\ta\n\tc\n        b\n",
    );
}

#[test]
fn a_first_line_without_indentation_matches_after_the_files_indentation() {
    let file = "\tif x {\n\t\ty()\n\t}\n";
    edits(
        file,
        "if x {\n        y()\n    }",
        "if z {\n        y()\n    }",
        MatchLevel::Indentation,
        "\tif z {\n\t\ty()\n\t}\n",
    );
}

#[test]
fn different_relative_indentation_is_no_match() {
    assert_eq!(edit("if a:\n    b\n    c\n", "if a:\n    b\nc", "x"), Err("none"));
    assert_eq!(edit("    b\n        c\n", "b\nc", "x"), Err("none"));
}

#[test]
fn whitespace_inside_a_line_is_significant() {
    assert_eq!(edit("s = \"a  b\"\n", "s = \"a b\"", "x"), Err("none"));
    assert_eq!(edit("f(a, b)\n", "f(a,b)", "x"), Err("none"));
}

#[test]
fn typographic_characters_are_kept_where_the_text_is_unchanged() {
    let file = "He said \u{201c}yes\u{201d} \u{2014} twice.\u{a0}Done\n";
    edits(
        file,
        "said \"yes\" - twice. Done",
        "said \"no\" - twice. Over",
        MatchLevel::Typography,
        "He said \u{201c}no\u{201d} \u{2014} twice.\u{a0}Over\n",
    );
    // A variant that only the caller writes is not written into the file.
    edits("it's\n", "it\u{2019}s", "it\u{2019}s so", MatchLevel::Typography, "it's so\n");
    edits(
        "f(\"a\")\n",
        "f(\u{201c}a\u{201d})",
        "f(\u{201c}b\u{201d})\ng(\u{201c}c\u{201d})",
        MatchLevel::Typography,
        "f(\"b\")\ng(\"c\")\n",
    );
    edits("x = 1\n", "x\u{a0}= 1", "x\u{a0}= 3", MatchLevel::Typography, "x = 3\n");
    edits(
        "\t\u{201c}a\u{201d}\n\tb\n",
        "    \"a\"\n    b",
        "    \"c\"\n    b",
        MatchLevel::IndentationAndTypography,
        "\t\u{201c}c\u{201d}\n\tb\n",
    );
}

#[test]
fn similar_text_is_no_match() {
    let file = "func A() {\n\ta()\n}\nfunc B() {\n\tx := 1\n\ty := 99\n\tz()\n}\n";
    assert_eq!(edit(file, "func B() {\n\tx := 1\n\ty := 2\n\tz()\n}", "x"), Err("none"));
    assert_eq!(edit(file, "func C() {\n\thallucinated()\n}", "x"), Err("none"));
    assert_eq!(edit("a\n\nb\n", "a\nb", "x"), Err("none"), "a lost blank line");
}

#[test]
fn two_matches_are_ambiguous() {
    assert_eq!(edit("  x\n    x\n", "\tx", "y"), Err("several"));
}

#[test]
fn a_search_that_would_be_slow_is_given_up() {
    let file = "a\n".repeat(300_000);
    let old = format!("{}b", " a\n".repeat(2_000));
    assert_eq!(edit(&file, &old, "x"), Err("none"));
}

/// Lines of code, with their depth.
fn block() -> impl Strategy<Value = Vec<(usize, String)>> {
    let line = (0usize..4, prop_oneof!["[a-c]{1,3}", "[a-c] \"[a-c]\" -[a-c]"]);
    prop::collection::vec(line, 1..8)
}

fn indented(lines: &[(usize, String)], base: usize, unit: &str) -> String {
    lines.iter().map(|(depth, text)| format!("{}{text}\n", unit.repeat(base + depth))).collect()
}

/// The base depth and unit of indentation, in the file and in the caller's text.
fn differences() -> impl Strategy<Value = (usize, &'static str, usize, &'static str)> {
    let unit = || prop::sample::select(vec!["\t", "  ", "    "]);
    (0usize..3, unit(), 0usize..3, unit())
}

proptest! {
    #[test]
    fn a_difference_in_indentation_changes_nothing_else(
        before in block(), mut old in block(), new in block(), after in block(),
        (file_base, file_unit, base, unit) in differences(),
    ) {
        // The least indented line first, and two depths, so that the rule is determined.
        old.insert(0, (0, "start".into()));
        old.insert(1, (1, "deeper".into()));
        let (before, after) = (indented(&before, 0, file_unit), indented(&after, 0, file_unit));
        let file = format!("{before}{}{after}", indented(&old, file_base, file_unit));
        let expected = format!("{before}{}{after}", indented(&new, file_base, file_unit));
        let (old, new) = (indented(&old, base, unit), indented(&new, base, unit));
        let is_determined = unit == file_unit || base == 0 || base == file_base;
        if !is_determined || file.contains(&old) {
            return Ok(());
        }
        let (_, now) = edit(&file, &old, &new).map_err(TestCaseError::fail)?;
        prop_assert_eq!(now, expected);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        file in prop::collection::vec(prop::sample::select(b" \t\r\na\"-\xe2\x80\x9c\xff".to_vec()), 0..60),
        old in "[ \t\r\na\"\u{201c}-]{1,12}", new in "[ \t\r\na\"\u{201c}-]{0,12}",
    ) {
        let (wanted, new) = (SoughtText::new(&old), SoughtText::new(&new));
        for place in find_equivalents(&file, b'\n', &wanted) {
            prop_assert!(place.range().end <= file.len());
            let _ = place.rewrite(&file, &wanted, &new, "\n");
            // Rewriting to the sought text itself gives the bytes of the file.
            let same = place.rewrite(&file, &wanted, &wanted, "\n");
            prop_assert_eq!(same.as_deref(), Some(&file[place.range()]));
        }
    }
}
