//! Patterns of any shape over a small alphabet, so that they match often.

use proptest::prelude::*;

pub(crate) fn any_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "k",
        "s",
        "S",
        "K",
        "é",
        "ß",
        "漢",
        "1",
        "_",
        " ",
        r"\(",
        "abc",
        "bcd",
        "sk",
        "ask",
        "abcab",
        r"\n",
        r"\r",
        ".",
        r"\w",
        r"\s",
        r"\d",
        r"\W",
        r"\S",
        "[abc]",
        "[a-z]",
        "[^a]",
        "[ks]",
        "[A-Za-z_]",
        "[é漢a]",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\A",
        r"\z",
        "[ab][cd]",
        "\u{feff}",
        "(?i)k",
        "(?i:as)",
        "",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            4 => many.clone().prop_map(|parts| parts.concat()),
            2 => many.prop_map(|parts| format!("(?:{})", parts.join("|"))),
            3 => (inner.clone(), prop::sample::select(vec![
                "?", "*", "+", "{2}", "{1,3}", "{3,}", "{0}", "??", "+?", "{9}", "{0,2}",
            ])).prop_map(|(part, times)| format!("(?:{part}){times}")),
            1 => inner.prop_map(|part| format!("({part})")),
        ]
    })
}
