//! The rules that fail: each a function from a file, or from all of them, to what is wrong.

use super::File;

/// Names without an edge: everything fits in, so everything ends up in them.
const EDGELESS: &[&str] = &["core", "common", "utils", "helpers", "types", "manager"];

/// Rules that look at one file.
const RULES: &[fn(&File) -> Vec<String>] = &[
    unfinished_work,
    trailing_whitespace,
    cases_are_markdown,
    one_test_binary,
    crate_doc,
    edgeless_module,
    outside_path,
    allow_without_reason,
];

/// All that is wrong, as `path:line: what`.
pub(super) fn problems(files: &[File]) -> Vec<String> {
    let of_each = files.iter().flat_map(|file| RULES.iter().flat_map(move |rule| rule(file)));
    of_each.chain(forgotten_tests(files)).collect()
}

/// What somebody meant to come back to: finish it, or make it an issue.
fn unfinished_work(file: &File) -> Vec<String> {
    if !["rs", "toml", "py"].contains(&file.extension()) {
        return Vec::new();
    }
    at_lines(file, |line| {
        let word = unfinished_words().into_iter().find(|word| has_word(line, word))?;
        Some(format!("{word} in the source: finish it, or write an issue"))
    })
}

fn trailing_whitespace(file: &File) -> Vec<String> {
    // A case may be about whitespace.
    if !["rs", "toml", "md"].contains(&file.extension()) || file.parts().contains(&"cases") {
        return Vec::new();
    }
    at_lines(file, |line| {
        (line != line.trim_end()).then(|| "whitespace at the end of the line".to_owned())
    })
}

fn cases_are_markdown(file: &File) -> Vec<String> {
    match file.parts().as_slice() {
        ["crates", _, "cases", ..] if file.extension() != "md" => {
            vec![format!("{}: a case is a .md file: no other is run", file.path)]
        }
        _ => Vec::new(),
    }
}

fn one_test_binary(file: &File) -> Vec<String> {
    match file.parts().as_slice() {
        ["crates", _, "tests", name] if name.ends_with(".rs") => vec![format!(
            "{}: move it to tests/it/ and declare it in tests/it/main.rs: each file here is one \
             more binary to link",
            file.path
        )],
        _ => Vec::new(),
    }
}

fn crate_doc(file: &File) -> Vec<String> {
    let is_crate_root =
        matches!(file.parts().as_slice(), ["crates", _, "src", "lib.rs" | "main.rs"]);
    let has_doc = file.text.lines().any(|line| line.starts_with("//!"));
    if is_crate_root && !has_doc {
        vec![format!("{}: say what the crate is for, in `//!` lines at the top", file.path)]
    } else {
        Vec::new()
    }
}

fn edgeless_module(file: &File) -> Vec<String> {
    let parts = file.parts();
    let ["crates", _, "src", modules @ ..] = parts.as_slice() else {
        return Vec::new();
    };
    let name = modules.iter().map(|part| part.trim_end_matches(".rs"));
    name.filter(|name| EDGELESS.contains(name))
        .map(|name| {
            format!("{}: `{name}` names no edge: call it after what belongs in it", file.path)
        })
        .collect()
}

/// The repository stands alone: nothing in it points beside it.
fn outside_path(file: &File) -> Vec<String> {
    let needle = ["..", "shared"].join("/");
    at_lines(file, |line| {
        line.contains(&needle).then(|| format!("{needle} is not part of this repository"))
    })
}

fn allow_without_reason(file: &File) -> Vec<String> {
    if file.extension() != "rs" {
        return Vec::new();
    }
    ["#[", "#!["]
        .iter()
        .map(|open| format!("{open}allow("))
        .flat_map(|attribute| {
            let found: Vec<usize> = file.text.match_indices(&attribute).map(|(at, _)| at).collect();
            found
        })
        .filter(|&at| !attribute_at(&file.text, at).contains("reason"))
        .map(|at| {
            let line = 1 + file.text.get(..at).unwrap_or_default().matches('\n').count();
            format!("{}:{line}: an `allow` says its `reason = \"…\"`", file.path)
        })
        .collect()
}

/// Test files that no `mod` declares: they look like tests, and never run.
fn forgotten_tests(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        let parts = file.parts();
        let ["crates", member, "tests", "it", name] = parts.as_slice() else {
            continue;
        };
        let Some(module) = name.strip_suffix(".rs").filter(|&module| module != "main") else {
            continue;
        };
        let main = format!("crates/{member}/tests/it/main.rs");
        let declaration = format!("mod {module};");
        let declared = files
            .iter()
            .filter(|file| file.path == main)
            .flat_map(|file| file.text.lines())
            .any(|line| line.trim() == declaration);
        if !declared {
            problems.push(format!("{}: never run: {main} has no `{declaration}`", file.path));
        }
    }
    problems
}

/// In pieces, or this file would not pass.
fn unfinished_words() -> [String; 3] {
    [["FIX", "ME"].concat(), ["XX", "X"].concat(), ["todo", "!"].concat()]
}

/// Whether the word is there as a word: `mktemp`'s row of X is not the X of unfinished work.
fn has_word(line: &str, word: &str) -> bool {
    let of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + word.len()..).unwrap_or_default();
        let begins_earlier = before.ends_with(of_a_word);
        let goes_on = word.ends_with(of_a_word) && after.starts_with(of_a_word);
        !begins_earlier && !goes_on
    })
}

/// From here to the bracket that closes the attribute.
fn attribute_at(text: &str, at: usize) -> &str {
    let text = text.get(at..).unwrap_or_default();
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth <= 1 => return text.get(..at).unwrap_or_default(),
            ']' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Applies a rule about single lines, and puts path and line number before what it says.
fn at_lines(file: &File, rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    // `split`, not `lines`: a `\r` at the end of a line is whitespace, too.
    let lines = file.text.split('\n').zip(1..);
    lines
        .filter_map(|(line, number)| Some(format!("{}:{number}: {}", file.path, rule(line)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        problems(&[file(path, text)])
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn unfinished_work_fails_in_source_only() {
        for word in unfinished_words() {
            let line = format!("fn f() {{}}\n// {word}: later\n");
            let expected = format!("a.rs:2: {word} in the source: finish it, or write an issue");
            assert_eq!(problems_of("a.rs", &line), [expected]);
            assert_eq!(problems_of("a.txt", &line), NONE);
        }
        assert_eq!(problems_of("a.rs", &format!("mktemp a.{}\n", "X".repeat(6))), NONE);
    }

    #[test]
    fn whitespace_at_the_end_fails_except_in_cases() {
        let problem = "whitespace at the end of the line";
        assert_eq!(problems_of("a.md", "one\ntwo \n"), [format!("a.md:2: {problem}")]);
        assert_eq!(problems_of("a.toml", "one\r\n"), [format!("a.toml:1: {problem}")]);
        assert_eq!(problems_of("crates/x/cases/read/a.md", "one \n"), NONE);
    }

    #[test]
    fn only_markdown_is_a_case() {
        assert_eq!(
            problems_of("crates/x/cases/read/a.txt", ""),
            ["crates/x/cases/read/a.txt: a case is a .md file: no other is run"]
        );
    }

    #[test]
    fn tests_live_in_one_binary_and_none_is_forgotten() {
        assert_eq!(problems_of("crates/x/tests/a.rs", "").len(), 1);
        let main = "crates/x/tests/it/main.rs";
        let both = |text| problems(&[file(main, text), file("crates/x/tests/it/read.rs", "")]);
        assert_eq!(both("mod read;\n"), NONE);
        assert_eq!(
            both("// mod read;\n"),
            ["crates/x/tests/it/read.rs: never run: crates/x/tests/it/main.rs has no `mod read;`"]
        );
    }

    #[test]
    fn a_crate_says_what_it_is_for() {
        assert_eq!(problems_of("crates/x/src/lib.rs", "//! A leaf.\n"), NONE);
        assert_eq!(problems_of("crates/x/src/lib.rs", "mod a;\n").len(), 1);
        assert_eq!(problems_of("crates/x/src/a.rs", "fn f() {}\n"), NONE);
    }

    #[test]
    fn names_without_an_edge_fail() {
        assert_eq!(
            problems_of("crates/x/src/utils/path.rs", ""),
            ["crates/x/src/utils/path.rs: `utils` names no edge: call it after what belongs in it"]
        );
        assert_eq!(problems_of("crates/x/src/types.rs", "").len(), 1);
        assert_eq!(problems_of("crates/x/src/tools.rs", ""), NONE);
    }

    #[test]
    fn an_allow_needs_its_reason() {
        let allow = ["#[", "allow("].concat();
        let text = format!("fn f() {{}}\n{allow}dead_code)]\nfn g() {{}}\n");
        assert_eq!(problems_of("a.rs", &text), ["a.rs:2: an `allow` says its `reason = \"…\"`"]);
        let text = format!("{allow}\n    dead_code,\n    reason = \"see [1]\"\n)]\nfn g() {{}}\n");
        assert_eq!(problems_of("a.rs", &text), NONE);
    }

    #[test]
    fn nothing_points_outside() {
        let text = ["see ..", "shared", "x\n"].join("/");
        assert_eq!(problems_of("a.md", &text).len(), 1);
    }
}
