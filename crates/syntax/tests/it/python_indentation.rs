//! Errors in the indentation of Python that a change introduces. Python itself decides on changed files of its own library.

use std::process::{Command, Stdio};

use toolcrib_syntax::{Language, NewError, new_errors};

fn errors(before: Option<&[u8]>, after: &[u8]) -> Vec<NewError> {
    new_errors(Language::Python, before, after, &|| false).unwrap()
}

#[test]
fn errors_are_named_as_python_names_them() {
    const BEFORE: &str = "def a():\n    b()\n    c()\n\nd()\n";
    for (after, expected) in [
        ("def a():\n    b()\n        c()\n\nd()\n", "3: unexpected indent"),
        ("def a():\n\nd()\n", "3: expected an indented block"),
        ("def a():\n    # b()\nd()\n", "3: expected an indented block"),
        (
            "def a():\n    b()\n  c()\n\nd()\n",
            "3: unindent does not match any outer indentation level",
        ),
        (
            "def a():\n        b()\n\tc()\n\nd()\n",
            "3: inconsistent use of tabs and spaces in indentation",
        ),
        (" d()\n", "1: unexpected indent"),
        ("if a:\n    b()\n  # c\nelse:", "4: expected an indented block"),
    ] {
        let found = errors(Some(BEFORE.as_bytes()), after.as_bytes());
        let found: Vec<String> =
            found.iter().map(|one| format!("{}: {}", one.line, one.what)).collect();
        assert_eq!(found, [expected], "{after}");
    }
}

#[test]
fn valid_indentation_is_not_an_error() {
    for after in [
        "a = (\n1,\n        2)\n",
        "a = '''\n      b\n  '''\nc()\n",
        "a = \"x\\\n   y\"\nb = 1 + \\\n        2\n",
        "if a: b()\nelse: c()\n",
        "if a:\n    b()\n  # comment\n\n        # comment\n    c()\n",
        "\u{feff}a = 1\n",
        "class A:\n\tdef b(self):\n\t\treturn {'c': [1,\n2]}\n",
        "x = f\"{a['b']}: {c}\"\ny = f'''{\nd}'''\n",
        "",
        "\n   \n",
    ] {
        assert_eq!(errors(None, after.as_bytes()), [], "{after}");
    }
}

#[test]
fn an_error_from_before_is_not_reported() {
    let before = b"def a():\n\nd()\n";
    assert_eq!(errors(Some(before), b"def a():\n\nd()\nd()\n"), []);
}

const CHANGES: &str = include_str!("changed_python_files.py");

#[test]
#[expect(clippy::print_stderr, reason = "reports the figures")]
fn python_agrees_on_changed_files_of_its_library() {
    let mut python = Command::new("python3");
    let Ok(output) = python.args(["-c", CHANGES]).stderr(Stdio::inherit()).output() else {
        eprintln!("not tested: python3 is not installed");
        return;
    };
    assert!(output.status.success());
    let mut rest = &output.stdout[..];
    let (mut valid, mut wrong, mut missed, mut of_grammar) = (0, 0, Vec::new(), Vec::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = String::from_utf8(rest[..end].to_vec()).unwrap();
        let words: Vec<&str> = header.split(' ').collect();
        let [kind, line, was, is] = words[..] else { panic!("{header}") };
        let (texts, later) =
            rest[end + 1..].split_at(was.parse::<usize>().unwrap() + is.parse::<usize>().unwrap());
        let (before, after) = texts.split_at(was.parse().unwrap());
        rest = later;
        let found = errors(Some(before), after);
        let shown = || String::from_utf8_lossy(after).into_owned();
        match kind {
            "valid" => {
                valid += 1;
                let is_alarm = found.iter().any(|one| one.what.contains("indent"));
                assert!(!is_alarm, "a false alarm: {found:?} in\n{}", shown());
                // The grammar does not know comments at the margin after a decorator.
                of_grammar.extend(found);
            }
            "indentation" => {
                wrong += 1;
                if !found.iter().any(|one| one.line.to_string() == line) {
                    missed.push(format!("line {line}: {found:?}"));
                }
            }
            _ => {}
        }
    }
    eprintln!("{valid} valid changes; {wrong} errors in the indentation");
    eprintln!("missed: {missed:?}\nfalse alarms of the grammar: {of_grammar:?}");
    assert!(valid > 50 && wrong > 50, "{valid} {wrong}");
    assert!(missed.len() * 20 <= wrong, "{missed:?}");
    assert!(of_grammar.len() * 20 <= valid, "{of_grammar:?}");
}
