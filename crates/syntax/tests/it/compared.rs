//! Definitions that a comparison with universal-ctags and language servers (`cargo xtask definitions`) has shown to be
//! missing or wrong.

use toolcrib_syntax::{Definition, Language, Syntax};

/// The lines and paths of the definitions of a text.
fn found(name: &str, text: &str) -> Vec<String> {
    let language = Language::of_name(name).unwrap();
    let outline = Syntax::parse(language, text.as_bytes(), &|| false).unwrap().outline();
    assert!(!outline.has_errors, "{name} is valid: {text}");
    let described =
        |one: &Definition| format!("{}-{} {}", one.first_line, one.last_line, outline.path(one));
    outline.definitions.iter().map(described).collect()
}

#[test]
fn variables_of_nameless_functions_are_local() {
    for (name, text, expected) in [
        ("a.ts", "test('a', () => {\n  const x = 1;\n});\n", &[][..]),
        (
            "a.js",
            "run(function () {\n  const x = 1;\n  const f = () => 1;\n});\n",
            &["3-3 function f"],
        ),
        ("a.js", "class A {\n  static {\n    const x = 1;\n  }\n}\n", &["1-5 class A"]),
        ("a.go", "package p\n\nvar f = func() {\n\tvar x int\n\t_ = x\n}\n", &["3-6 var f"]),
        ("a.kt", "val f = run {\n  val x = 1\n  x\n}\n", &["1-4 val f"]),
        ("a.kt", "class A {\n  init {\n    val x = 1\n  }\n}\n", &["1-5 class A"]),
        ("a.swift", "let f = {\n  let x = 1\n  return x\n}\n", &["1-4 var f"]),
        ("a.cpp", "auto f = [] {\n  int x = 1;\n  return x;\n};\n", &["1-4 variable f"]),
    ] {
        assert_eq!(found(name, text), expected, "{text}");
    }
}

#[test]
fn a_type_inside_a_function_has_its_members() {
    for (name, text, expected) in [
        (
            "a.py",
            "def f():\n    class A:\n        x = 1\n    y = 2\n",
            &["1-4 def f", "2-3 def f › class A", "3-3 def f › class A › attribute x"][..],
        ),
        (
            "a.go",
            "package p\n\nfunc f() {\n\ttype A struct{ x int }\n\tvar y A\n\t_ = y\n}\n",
            &["3-7 func f", "4-4 func f › type A", "4-4 func f › type A › field x"],
        ),
        (
            "a.rs",
            "fn f() {\n    const A: u8 = 1;\n    static B: u8 = 1;\n    let c = 1;\n}\n",
            &["1-5 fn f", "2-2 fn f › const A", "3-3 fn f › static B"],
        ),
    ] {
        assert_eq!(found(name, text), expected, "{text}");
    }
}

#[test]
fn every_name_of_an_assignment_and_every_embedded_field_is_found() {
    for (name, text, expected) in [
        ("a.py", "a = b = c = 1\n", ["a", "b", "c"].map(|name| format!("1-1 variable {name}"))),
        (
            "a.go",
            "package p\n\ntype A struct {\n\t*B\n\tc.D\n}\n",
            ["3-6 type A", "4-4 type A › field B", "5-5 type A › field D"].map(str::to_owned),
        ),
    ] {
        assert_eq!(found(name, text), expected, "{text}");
    }
}

#[test]
fn functions_and_classes_as_expressions_have_their_names() {
    for (text, expected) in [
        ("export default function () {\n}\n", &["1-2 function default"][..]),
        (
            "/** Doc. */\nexport default class {\n  m() {}\n}\n",
            &["2-4 class default", "3-3 class default › method m"],
        ),
        ("export default () => 1;\n", &["1-1 function default"]),
        ("export default function f() {}\n", &["1-1 function f"]),
        ("export default { f() {} };\n", &["1-1 method f"]),
        ("run(function f() {\n});\n", &["1-2 function f"]),
        ("run(class A {});\n", &["1-1 class A"]),
        ("const g = function f() {};\n", &["1-1 function g"]),
        ("a.b ??= () => 1;\n", &["1-1 function a.b"]),
        ("a = () => 1;\n", &[]),
    ] {
        assert_eq!(found("a.ts", text), expected, "{text}");
        assert_eq!(found("a.js", text), expected, "{text}");
    }
}

#[test]
fn members_of_typescript_have_their_own_lines_and_names() {
    for (text, expected) in [
        (
            "enum A {\n  B,\n  C = 2,\n  'd-e',\n}\n",
            &[
                "1-5 enum A",
                "2-2 enum A › member B",
                "3-3 enum A › member C",
                "4-4 enum A › member d-e",
            ][..],
        ),
        (
            "class A {\n  constructor(private a: X, b: X, readonly c?: X) {}\n}\n",
            &[
                "1-3 class A",
                "2-2 class A › method constructor",
                "2-2 class A › method constructor › field a",
                "2-2 class A › method constructor › field c",
            ],
        ),
        ("class A {\n  '~b'() {}\n}\n", &["1-3 class A", "2-2 class A › method ~b"]),
        (
            "declare module 'a/b' {\n  const c: X;\n}\n",
            &["1-3 module a/b", "2-2 module a/b › variable c"],
        ),
        (
            "declare global {\n  const c: X;\n}\n",
            &["1-3 declare global", "2-2 declare global › variable c"],
        ),
    ] {
        assert_eq!(found("a.ts", text), expected, "{text}");
    }
}

#[test]
fn destructured_variables_outside_functions_are_found() {
    let text = "export const { a, b: c, d: [e, { f = 1 }], ...g } = h(i);\nfunction j() {\n  const { k } = h();\n}\n";
    let names = ["a", "c", "e", "f", "g"].map(|name| format!("1-1 variable {name}"));
    let expected = [&names[..], &["2-4 function j".to_owned()]].concat();
    assert_eq!(found("a.ts", text), expected);
}
