//! The rules that fail. Each is a function from one file, or from all files, to a list of problems.

use super::File;

/// Vague module names: they do not say what belongs in them.
const VAGUE_NAMES: &[&str] = &["core", "common", "utils", "helpers", "types", "manager"];

/// The rules for single files.
const RULES: &[fn(&File) -> Vec<String>] = &[
    unfinished_work,
    trailing_whitespace,
    cases_are_markdown,
    one_test_binary,
    crate_doc,
    vague_module_name,
    outside_path,
    allow_without_reason,
];

/// All problems, as `path:line: problem`.
pub(super) fn problems(files: &[File]) -> Vec<String> {
    let of_each = files.iter().flat_map(|file| RULES.iter().flat_map(move |rule| rule(file)));
    of_each.chain(forgotten_tests(files)).collect()
}

/// Markers of unfinished work: finish it, or write an issue.
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
    // A case may test whitespace.
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
        // The Markdown cases have a harness of their own.
        ["crates", _, "tests", "cases.rs"] => Vec::new(),
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
        vec![format!("{}: describe the crate in `//!` lines at the top", file.path)]
    } else {
        Vec::new()
    }
}

fn vague_module_name(file: &File) -> Vec<String> {
    let parts = file.parts();
    let ["crates", _, "src", modules @ ..] = parts.as_slice() else {
        return Vec::new();
    };
    let name = modules.iter().map(|part| part.trim_end_matches(".rs"));
    name.filter(|name| VAGUE_NAMES.contains(name))
        .map(|name| {
            format!("{}: `{name}` is a vague name: name the module after its content", file.path)
        })
        .collect()
}

/// No file may refer to a path outside the repository.
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
            format!("{}:{line}: an `allow` needs a `reason = \"…\"`", file.path)
        })
        .collect()
}

/// Test files without a `mod` declaration, which never run.
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

/// Composed of pieces, so that this file passes.
fn unfinished_words() -> [String; 3] {
    [["FIX", "ME"].concat(), ["XX", "X"].concat(), ["todo", "!"].concat()]
}

/// Whether a line contains the word as a whole word: the template of `mktemp` is not a marker.
fn has_word(line: &str, word: &str) -> bool {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + word.len()..).unwrap_or_default();
        let began_earlier = before.ends_with(is_word_char);
        let continues = word.ends_with(is_word_char) && after.starts_with(is_word_char);
        !began_earlier && !continues
    })
}

/// The text from here to the closing bracket of the attribute.
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

/// Applies a rule to each line and prefixes its problems with the path and line number.
fn at_lines(file: &File, rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    // `split` rather than `lines`: a `\r` at the end of a line is whitespace too.
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
    fn rejects_unfinished_work_in_source_only() {
        for word in unfinished_words() {
            let line = format!("fn f() {{}}\n// {word}: later\n");
            let expected = format!("a.rs:2: {word} in the source: finish it, or write an issue");
            assert_eq!(problems_of("a.rs", &line), [expected]);
            assert_eq!(problems_of("a.txt", &line), NONE);
        }
        assert_eq!(problems_of("a.rs", &format!("mktemp a.{}\n", "X".repeat(6))), NONE);
    }

    #[test]
    fn rejects_trailing_whitespace_except_in_cases() {
        let problem = "whitespace at the end of the line";
        assert_eq!(problems_of("a.md", "one\ntwo \n"), [format!("a.md:2: {problem}")]);
        assert_eq!(problems_of("a.toml", "one\r\n"), [format!("a.toml:1: {problem}")]);
        assert_eq!(problems_of("crates/x/cases/read/a.md", "one \n"), NONE);
    }

    #[test]
    fn rejects_cases_that_are_not_markdown() {
        assert_eq!(
            problems_of("crates/x/cases/read/a.txt", ""),
            ["crates/x/cases/read/a.txt: a case is a .md file: no other is run"]
        );
    }

    #[test]
    fn rejects_extra_test_binaries_and_undeclared_tests() {
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
    fn requires_a_crate_description() {
        assert_eq!(problems_of("crates/x/src/lib.rs", "//! A leaf.\n"), NONE);
        assert_eq!(problems_of("crates/x/src/lib.rs", "mod a;\n").len(), 1);
        assert_eq!(problems_of("crates/x/src/a.rs", "fn f() {}\n"), NONE);
    }

    #[test]
    fn rejects_vague_module_names() {
        assert_eq!(
            problems_of("crates/x/src/utils/path.rs", ""),
            [
                "crates/x/src/utils/path.rs: `utils` is a vague name: name the module after its content"
            ]
        );
        assert_eq!(problems_of("crates/x/src/types.rs", "").len(), 1);
        assert_eq!(problems_of("crates/x/src/tools.rs", ""), NONE);
    }

    #[test]
    fn requires_a_reason_for_allow() {
        let allow = ["#[", "allow("].concat();
        let text = format!("fn f() {{}}\n{allow}dead_code)]\nfn g() {{}}\n");
        assert_eq!(problems_of("a.rs", &text), ["a.rs:2: an `allow` needs a `reason = \"…\"`"]);
        let text = format!("{allow}\n    dead_code,\n    reason = \"see [1]\"\n)]\nfn g() {{}}\n");
        assert_eq!(problems_of("a.rs", &text), NONE);
    }

    #[test]
    fn rejects_paths_outside_the_repository() {
        let text = ["see ..", "shared", "x\n"].join("/");
        assert_eq!(problems_of("a.md", &text).len(), 1);
    }
}
