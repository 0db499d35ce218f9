//! Long commands run like short ones, up to the limit.

use serde_json::json;
use toolcrib::{Error, ErrorKind, Reply};

use crate::sandboxed::Sandboxed;

fn run(sandboxed: &Sandboxed, command: &str) -> Result<Reply, Error> {
    sandboxed.call("Bash", json!({"command": command}))
}

#[test]
fn long_here_document_is_complete() {
    let sandboxed = Sandboxed::new();
    let line = "a line of text with 'quotes' and $dollars\n";
    let text = line.repeat(200_000 / line.len());
    let reply = run(&sandboxed, &format!("cat > long.txt <<'END'\n{text}END\nwc -c < long.txt"));
    let reply = reply.unwrap();
    assert!(reply.output().starts_with(&format!("{}\n", text.len())), "{}", reply.output());
    let written = std::fs::read_to_string(sandboxed.top.path().join("ws/long.txt")).unwrap();
    assert_eq!(written, text);
}

#[test]
fn script_with_thousands_of_commands_runs() {
    let sandboxed = Sandboxed::new();
    let reply = run(&sandboxed, &format!("n=0\n{}echo $n", "n=$((n+1))\n".repeat(5_000)));
    assert!(reply.unwrap().output().starts_with("5000\n"));
}

/// `$0`, stdin, options and session state do not depend on the length of a script.
#[test]
fn long_command_runs_like_a_short_one() {
    let padding = format!(": '{}'\n", "x".repeat(1 << 20)).repeat(7);
    let script =
        "read -r line; echo \"$0 $line\"\nexport A=1; mkdir -p d; cd d\nset -e; false\necho no";
    let answers = ["", padding.as_str()].map(|padding| {
        let sandboxed = Sandboxed::new();
        let arguments = json!({"command": format!("{padding}{script}"), "stdin": "input\n"});
        let error = sandboxed.call("Bash", arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
        let after = run(&sandboxed, "echo \"$A\"; basename \"$PWD\"").unwrap();
        assert!(after.output().starts_with("1\nd\n"), "{}", after.output());
        format!("{}\n{}", error.message(), error.text())
    });
    assert!(answers[0].contains("input"), "{}", answers[0]);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn oversized_command_is_rejected() {
    let sandboxed = Sandboxed::new();
    let error = run(&sandboxed, &format!(": {}", "x".repeat(9 << 20))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().contains("8388608"), "{error}");
}
