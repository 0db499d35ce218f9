//! The definitions of a sample of each language.

use toolcrib_syntax::{Language, Outline, Syntax};

use crate::samples::SAMPLES;

fn outline(name: &str, text: &str) -> Outline {
    let language = Language::of_file(name, text.as_bytes()).unwrap();
    Syntax::parse(language, text.as_bytes(), &|| false).unwrap().outline()
}

/// Each definition: lines of documentation, beginning and end, class, and path.
fn described(name: &str) -> String {
    let (_, text) = SAMPLES.iter().find(|(sample, _)| *sample == name).unwrap();
    let outline = outline(name, text);
    assert!(!outline.has_errors, "{name} is valid");
    let lines = outline.definitions.iter().map(|one| {
        let (doc, first, last) = (one.doc_line, one.first_line, one.last_line);
        format!("{doc} {first}-{last} {:?} {}\n", one.class, outline.path(one))
    });
    lines.collect()
}

#[test]
fn every_language_has_a_sample() {
    for language in Language::all() {
        let has = |(name, _): &(&str, &str)| Language::of_name(name) == Some(language);
        assert!(SAMPLES.iter().any(has), "{language:?}");
    }
}

#[test]
fn definitions_have_their_lines_and_surroundings() {
    for (name, expected) in EXPECTED {
        let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(described(name), expected, "{name}");
    }
}

#[test]
fn a_name_is_found_with_the_names_around_it() {
    for (file, name, lines) in [
        ("store.rs", "add", &[11][..]),
        ("store.rs", "Store::add", &[11]),
        ("store.rs", "crate::Store<T>::add()", &[11]),
        ("store.rs", "shop::store::Store::add", &[11]),
        ("store.rs", "Other::add", &[]),
        ("store.rs", "Store", &[5]),
        ("store.rs", "impl Store", &[9, 16]),
        ("store.rs", "items", &[6]),
        ("store.rs", "Color::Red", &[25]),
        ("store.go", "(*Store).Add", &[19]),
        ("store.go", "Store.Add", &[19]),
        ("store.cpp", "Store::size", &[8, 12]),
        ("store.cpp", "shop::Store", &[3]),
        ("store.ts", "make", &[18]),
        ("Store.java", "Store.add", &[7]),
        ("store.rb", "Shop::Store#add", &[5]),
        ("store.py", "Store.size", &[8]),
        ("store.py", "", &[]),
    ] {
        let (_, text) = SAMPLES.iter().find(|(sample, _)| *sample == file).unwrap();
        let outline = outline(file, text);
        let found: Vec<u64> =
            outline.find(name, &["shop", "store"]).map(|(_, one)| one.first_line).collect();
        assert_eq!(found, lines, "{file} {name}");
    }
}

#[test]
fn the_language_of_a_file_depends_on_its_name_and_text() {
    for (name, text, expected) in [
        ("a.rs", "", Some(Language::Rust)),
        ("A.RS", "", Some(Language::Rust)),
        ("a.h", "int a;\n", Some(Language::C)),
        ("a.h", "namespace a {\n}\n", Some(Language::Cpp)),
        ("configure", "#!/usr/bin/env python3\n", Some(Language::Python)),
        ("configure", "#!/bin/sh\r\n", Some(Language::Bash)),
        ("configure", "#!/bin/tool\n", None),
        ("rs", "", None),
        ("a.txt", "#!/bin/sh\n", None),
    ] {
        assert_eq!(Language::of_file(name, text.as_bytes()), expected, "{name} {text}");
    }
}

#[test]
fn a_signature_ends_before_the_body() {
    let text = "impl A {\n    pub fn call(\n        &self,\n    ) -> u8 {\n        1\n    }\n}\n";
    let outline = outline("a.rs", text);
    assert_eq!(outline.definitions[1].signature, "pub fn call( &self, ) -> u8");
}

/// The definitions of each sample: line of the documentation, first and last line, class, path.
const EXPECTED: &[(&str, &[&str])] = &[
    ("run.sh", &["1 2-4 Callable function build", "5 5-7 Callable function test_all"]),
    (
        "list.c",
        &[
            "1 1-1 Value macro MAX",
            "2 2-2 Callable macro SQUARE",
            "3 4-7 Type struct list",
            "5 5-5 Member struct list › field len",
            "6 6-6 Member struct list › field free",
            "8 8-8 Type typedef point_t",
            "8 8-8 Member typedef point_t › field a",
            "9 9-9 Type enum color",
            "9 9-9 Member enum color › enumerator RED",
            "9 9-9 Member enum color › enumerator GREEN",
            "10 10-10 Value variable total",
            "11 11-11 Prototype function put",
            "12 13-18 Callable function list_len",
            "19 19-19 Callable function name",
        ],
    ),
    (
        "Store.cs",
        &[
            "1 1-16 Block namespace Shop",
            "3 4-13 Type namespace Shop › class Store",
            "6 6-6 Member namespace Shop › class Store › field count",
            "6 6-6 Member namespace Shop › class Store › field size",
            "7 7-7 Callable namespace Shop › class Store › property Size",
            "8 8-8 Callable namespace Shop › class Store › constructor Store",
            "9 9-12 Callable namespace Shop › class Store › method Add",
            "11 11-11 Callable namespace Shop › class Store › method Add › function Local",
            "14 14-14 Type namespace Shop › enum Color",
            "14 14-14 Member namespace Shop › enum Color › constant Red",
            "15 15-15 Type namespace Shop › interface IStore",
            "15 15-15 Prototype namespace Shop › interface IStore › method Add",
        ],
    ),
    (
        "store.cpp",
        &[
            "1 1-11 Block namespace shop",
            "2 3-10 Type namespace shop › class Store",
            "6 6-6 Prototype namespace shop › class Store › function Store",
            "7 7-7 Prototype namespace shop › class Store › function ~Store",
            "8 8-8 Callable namespace shop › class Store › function size",
            "9 9-9 Member namespace shop › class Store › field count",
            "12 12-14 Callable function Store::size",
            "15 15-15 Type using Id",
        ],
    ),
    (
        "store.go",
        &[
            "3 4-6 Type type Store",
            "5 5-5 Member type Store › field items",
            "5 5-5 Member type Store › field more",
            "9 9-11 Type type Reader",
            "10 10-10 Prototype type Reader › func Read",
            "14 14-14 Value const Max",
            "16 16-16 Value var first",
            "16 16-16 Value var second",
            "18 19-21 Callable func Store.Add",
            "23 23-23 Callable func New",
        ],
    ),
    (
        "Store.java",
        &[
            "2 3-13 Type class Store",
            "5 5-5 Member class Store › field count",
            "5 5-5 Member class Store › field size",
            "6 6-6 Callable class Store › constructor Store",
            "7 7-9 Callable class Store › method add",
            "10 10-10 Type class Store › enum Color",
            "10 10-10 Member class Store › enum Color › constant RED",
            "11 11-11 Type class Store › interface Reader",
            "11 11-11 Prototype class Store › interface Reader › method read",
            "12 12-12 Type class Store › record Point",
        ],
    ),
    (
        "store.js",
        &[
            "1 2-8 Type class Store",
            "3 3-3 Member class Store › field count",
            "4 4-6 Callable class Store › method add",
            "7 7-7 Callable class Store › method get",
            "9 9-9 Value variable MAX",
            "10 10-12 Callable function make",
            "13 13-13 Callable function old",
            "14 14-14 Callable function Store.size",
            "15 15-15 Callable function items",
        ],
    ),
    (
        "Store.kt",
        &[
            "3 4-11 Type class Store",
            "5 5-7 Block class Store › companion object",
            "6 6-6 Value class Store › companion object › val MAX",
            "8 8-8 Callable class Store › fun add",
            "9 9-10 Member class Store › val count",
            "12 12-12 Type object Single",
            "13 13-15 Type interface Reader",
            "14 14-14 Prototype interface Reader › fun read",
            "16 16-16 Callable fun String.shout",
            "17 17-19 Type enum Color",
            "18 18-18 Member enum Color › entry RED",
            "20 20-20 Type typealias Id",
        ],
    ),
    (
        "Store.php",
        &[
            "3 4-10 Type class Store",
            "5 5-5 Member class Store › const MAX",
            "6 6-6 Member class Store › property items",
            "7 7-9 Callable class Store › method add",
            "11 11-11 Type interface Reader",
            "11 11-11 Prototype interface Reader › method read",
            "12 12-12 Callable function make",
        ],
    ),
    (
        "store.py",
        &[
            "1 1-1 Value variable MAX",
            "3 4-11 Type class Store",
            "6 6-6 Member class Store › attribute count",
            "8 8-11 Callable class Store › def size",
            "13 13-15 Callable def make",
            "14 14-15 Callable def make › def inner",
        ],
    ),
    (
        "store.rb",
        &[
            "1 1-11 Block module Shop",
            "2 3-10 Type module Shop › class Store",
            "4 4-4 Value module Shop › class Store › constant MAX",
            "5 5-7 Callable module Shop › class Store › def add",
            "8 8-9 Callable module Shop › class Store › def self.make",
        ],
    ),
    (
        "store.rs",
        &[
            "3 5-7 Type struct Store",
            "6 6-6 Member struct Store › field items",
            "9 9-14 Block impl Store<T>",
            "10 11-13 Callable impl Store<T> › fn add",
            "12 12-12 Value impl Store<T> › fn add › const LOCAL",
            "16 16-18 Block impl fmt::Debug for Store<T>",
            "17 17-17 Callable impl fmt::Debug for Store<T> › fn fmt",
            "20 20-22 Type trait Reader",
            "21 21-21 Prototype trait Reader › fn read",
            "24 24-26 Type enum Color",
            "25 25-25 Member enum Color › variant Red",
            "28 28-28 Value const MAX",
            "29 29-31 Block mod inner",
            "30 30-30 Callable mod inner › fn hidden",
            "32 32-34 Callable macro m",
        ],
    ),
    (
        "Store.swift",
        &[
            "1 2-9 Type struct Store",
            "3 3-3 Member struct Store › var count",
            "4 4-4 Callable struct Store › init",
            "5 5-8 Callable struct Store › func add",
            "10 10-12 Block extension Store",
            "11 11-11 Callable extension Store › func read",
            "13 13-15 Type protocol Reader",
            "14 14-14 Prototype protocol Reader › func read",
            "16 16-16 Type enum Color",
            "16 16-16 Member enum Color › case red",
            "16 16-16 Member enum Color › case green",
            "17 17-17 Value var max",
        ],
    ),
    ("View.tsx", &["1 1-3 Callable function View", "5 5-5 Callable function List"]),
    (
        "store.ts",
        &[
            "1 2-7 Type class Store",
            "3 3-3 Member class Store › field count",
            "4 4-4 Callable class Store › method constructor",
            "5 5-5 Prototype class Store › method read",
            "6 6-6 Callable class Store › method add",
            "8 8-11 Type interface Reader",
            "9 9-9 Prototype interface Reader › method read",
            "10 10-10 Member interface Reader › property size",
            "12 12-12 Type type Id",
            "13 13-13 Type enum Color",
            "13 13-13 Member enum Color › member Red",
            "13 13-13 Member enum Color › member Green",
            "14 14-16 Block namespace inner",
            "15 15-15 Value namespace inner › variable k",
            "17 17-17 Prototype function make",
            "18 18-18 Callable function make",
        ],
    ),
];
