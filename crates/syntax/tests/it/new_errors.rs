//! The syntax errors that a change introduces.

use toolcrib_syntax::{Language, new_errors};

use crate::samples::SAMPLES;

fn errors(name: &str, before: Option<&str>, after: &str) -> Vec<String> {
    let language = Language::of_name(name).unwrap();
    let found = new_errors(language, before.map(str::as_bytes), after.as_bytes(), &|| false);
    found.unwrap().into_iter().map(|error| format!("{}: {}", error.line, error.what)).collect()
}

#[test]
fn a_valid_text_has_none() {
    for (name, text) in SAMPLES {
        assert!(errors(name, None, text).is_empty(), "{name}");
    }
}

#[test]
fn a_removed_bracket_is_found_at_the_change() {
    let before = "fn a() {\n    b();\n}\n\nfn c() {\n    d();\n}\n";
    let lost = before.replacen("}\n", "\n", 1);
    assert_eq!(errors("x.rs", Some(before), &lost), ["3: `{` without `}`"]);
    let extra = before.replacen("    d();\n", "    d();\n    }\n", 1);
    assert_eq!(errors("x.rs", Some(before), &extra), ["7: `}` without `{`"]);
}

#[test]
fn other_errors_are_named() {
    let before = "def a():\n    return 1\n";
    let after = "def a()\n    return 1\n";
    assert_eq!(errors("x.py", Some(before), after), ["1: syntax error at `def a()`"]);
    assert_eq!(
        errors(
            "x.go",
            Some("package a\n\nfunc f() {\n}\n"),
            "package a\n\nfunc f() {\n\tx :=\n}\n"
        ),
        ["4: missing identifier"]
    );
}

#[test]
fn errors_from_before_are_not_reported() {
    let before = "fn a( {\n}\nfn b() {}\n";
    let after = "fn a( {\n}\nfn b() { c(); }\n";
    assert!(errors("x.rs", Some(before), after).is_empty());
}

#[test]
fn macros_are_not_errors() {
    let before = "int a;\n";
    let after = "int a;\nDEFINE_THING(x, y)\nstatic DECLARE_BITMAP(z) __init foo bar;\n";
    assert!(errors("x.c", Some(before), after).is_empty());
    assert_eq!(errors("x.c", Some(before), "int a;\nint f() {\n"), ["2: `{` without `}`"]);
}

#[test]
fn a_case_in_bash_needs_no_opening_bracket() {
    let before = "case $1 in\n  a) b ;;\nesac\n";
    assert!(errors("x.sh", Some(before), &before.replace("b ;;", "c ;;")).is_empty());
    let broken = errors("x.sh", Some(before), "case $1 in\n  a) b ;;\nfi\n");
    assert_eq!(broken.len(), 1, "{broken:?}");
}
