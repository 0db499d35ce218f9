//! Definitions and syntax errors: any text is parsed in a bounded number of steps, and every line lies within the text.

use std::cell::Cell;

use toolcrib_syntax::{Language, Syntax, new_errors};

use super::parts;

/// Steps of a parse. Ordinary texts of the size of an input need a thousandth of them.
const MAX_STEPS: u64 = 100_000;

/// The parts are a file name, the text before a change and the text after it.
pub(crate) fn syntax(input: &[u8]) -> String {
    let [name, before, after] = parts(input);
    let name = String::from_utf8_lossy(name);
    let Some(language) = Language::of_file(&name, after) else { return "no language".to_owned() };
    let steps = Cell::new(0);
    let is_over = || {
        steps.set(steps.get() + 1);
        steps.get() > MAX_STEPS
    };
    let lines = after.split(|byte| *byte == b'\n').count() as u64;
    let Ok(syntax) = Syntax::parse(language, after, &is_over) else { return "stopped".to_owned() };
    let outline = syntax.outline_until(&is_over);
    for (at, one) in outline.definitions.iter().enumerate() {
        assert!(1 <= one.doc_line && one.doc_line <= one.first_line, "{one:?}");
        assert!(one.first_line <= one.last_line && one.last_line <= lines, "{one:?}");
        assert!(one.outer.is_none_or(|outer| outer < at), "{one:?}");
        assert!(!outline.path(one).contains('\n') && !one.signature.contains('\n'), "{one:?}");
    }
    for line in 1..=lines.min(100) {
        if let Some(around) = outline.around(line) {
            assert!(around.doc_line <= line && line <= around.last_line, "{line}: {around:?}");
        }
    }
    for one in outline.definitions.iter().take(20) {
        assert!(outline.find(&one.name, &[]).next().is_some(), "{one:?}");
    }
    let Ok(errors) = new_errors(language, Some(before), after, &is_over) else {
        return "stopped".to_owned();
    };
    assert!(errors.iter().all(|error| 1 <= error.line && error.line <= lines), "{errors:?}");
    match (outline.definitions.len(), errors.len()) {
        (0, 0) => "no definitions".to_owned(),
        (_, 0) => "definitions".to_owned(),
        _ => "new errors".to_owned(),
    }
}
