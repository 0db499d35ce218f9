//! Reports long functions and files for review.

use super::File;

const LONG_FUNCTION_LINES: usize = 70;
const LONG_FILE_LINES: usize = 500;

/// The long functions of a Rust file without its tests, and the file itself if it is long.
pub(super) fn long_items(file: &File) -> Vec<String> {
    if file.extension() != "rs" || file.parts().contains(&"tests") {
        return Vec::new();
    }
    let lines: Vec<&str> = production_lines(&file.text).collect();
    let mut reports = Vec::new();
    if lines.len() > LONG_FILE_LINES {
        reports.push(format!("{}: {} lines without its tests", file.path, lines.len()));
    }
    for function in functions(&lines).into_iter().filter(|f| f.lines > LONG_FUNCTION_LINES) {
        let Function { name, at, lines } = function;
        reports.push(format!("{}:{at}: fn {name} has {lines} lines", file.path));
    }
    reports
}

struct Function<'a> {
    name: &'a str,
    /// The first line.
    at: usize,
    /// The number of lines from the signature to the closing brace.
    lines: usize,
}

/// The lines before the tests.
fn production_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.trim() != "#[cfg(test)]")
}

/// All functions with a body. It needs no parser: rustfmt aligns the closing brace of a function with its
/// signature.
fn functions<'a>(lines: &[&'a str]) -> Vec<Function<'a>> {
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let rest = lines.iter().skip(index);
        let end = rest.zip(1..).find(|(line, _)| closes(line, indent));
        if let Some((last, lines)) = end
            && last.ends_with('}')
        {
            functions.push(Function { name, at: index + 1, lines });
        }
    }
    functions
}

/// The name of the function whose signature begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let before = words.by_ref().take_while(|&word| word != "fn");
    let qualifiers = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    if before.into_iter().any(|word| !qualifiers.contains(&word) && !word.starts_with("pub(")) {
        return None;
    }
    let name = words.next()?;
    name.split(['(', '<']).next()
}

/// Whether a function that began at this indentation ends on this line: with its brace, or with a semicolon
/// if it has no body.
fn closes(line: &str, indent: usize) -> bool {
    if line.len() - line.trim_start().len() != indent {
        return false;
    }
    let code = line.trim_start();
    let on_one_line = function_name(line).is_some() && code.ends_with('}');
    on_one_line || code == "}" || code.ends_with(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(&str, usize, usize)> {
        let lines: Vec<&str> = text.lines().collect();
        functions(&lines).into_iter().map(|f| (f.name, f.at, f.lines)).collect()
    }

    #[test]
    fn measures_functions_from_signature_to_brace() {
        let text = "\
pub(crate) fn one<T>(
    t: T,
) -> T {
    if true {
        t
    } else {
        t
    }
}

trait Tool {
    fn name(&self) -> String;

    const fn empty() {}

    fn two(&self) {
        self.name();
    }
}
";
        assert_eq!(lengths(text), [("one", 1, 9), ("empty", 14, 1), ("two", 16, 3)]);
    }

    #[test]
    fn ignores_lines_that_only_mention_a_function() {
        assert_eq!(function_name("    run: fn() -> Result<()>,"), None);
        assert_eq!(function_name("// the fn here"), None);
        assert_eq!(function_name("pub unsafe extern \"C\" fn f(x: u8) {"), Some("f"));
    }

    #[test]
    fn reports_long_items_outside_tests() {
        let body = "    work();\n".repeat(LONG_FUNCTION_LINES);
        let long = format!("fn long() {{\n{body}}}\n");
        let report = |path: &str, text: String| long_items(&File { path: path.to_owned(), text });
        assert_eq!(report("a.rs", long.clone()), ["a.rs:1: fn long has 72 lines"]);
        assert_eq!(report("a.rs", format!("#[cfg(test)]\n{long}")), [] as [&str; 0]);
        assert_eq!(report("crates/x/tests/it/a.rs", long), [] as [&str; 0]);
        let lines = "\n".repeat(LONG_FILE_LINES + 1);
        assert_eq!(report("a.rs", lines), ["a.rs: 501 lines without its tests"]);
    }
}
