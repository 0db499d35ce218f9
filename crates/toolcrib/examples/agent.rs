//! A coding agent: a loop between a model and the tools. The model here is a script, so that the example runs offline.
//!
//! `cargo run -p toolcrib --example agent`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is a front end: it reads its arguments, makes a project, and shows what happens"
)]

use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{Call, Dialect, Format, Options, Runtime};

fn main() -> ExitCode {
    // The program starts itself again as a helper for commands, PDFs and images. This must come first.
    if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let (project, state) = (directory.path().join("project"), directory.path().join("state"));
    std::fs::create_dir(&project)?;
    let runtime = Runtime::builder()
        .standard()
        .journal(state, toolcrib::Caps::default())
        .root(&project)
        .build()?;
    let session = runtime.session();
    let tools = runtime.catalogue(Format::Anthropic, Dialect::Toolcrib);
    // A real agent sends the messages to a model here: `let mut model = Model::new("…", &tools);`
    let mut model = ScriptedModel::new(&tools);
    let mut result = None;
    while let Some((tool, args)) = model.next_call(result.as_deref()) {
        println!("> {tool} {args}");
        let reply = runtime.call(&session, Call::new(tool, args), Options::default());
        let text = reply.map_or_else(|error| error.text(), |reply| reply.text().to_owned());
        println!("{text}");
        result = Some(text);
    }
    Ok(())
}

/// Calls tools in a fixed order, whatever they reply.
struct ScriptedModel(std::vec::IntoIter<(&'static str, Value)>);

impl ScriptedModel {
    fn new(_tools: &str) -> ScriptedModel {
        let content = "def add(a, b):\n    return a - b\n";
        let edit = json!({"file_path": "add.py", "old_string": "a - b", "new_string": "a + b"});
        let test = "python3 -c 'import add; assert add.add(1, 2) == 3; print(\"passed\")'";
        ScriptedModel(
            vec![
                ("Write", json!({"file_path": "add.py", "content": content})),
                ("Edit", edit),
                ("Bash", json!({"command": test})),
                ("Bash", json!({"command": "rm add.py"})),
                ("Undo", json!({})),
                ("Read", json!({"file_path": "add.py"})),
            ]
            .into_iter(),
        )
    }

    fn next_call(&mut self, _result: Option<&str>) -> Option<(&'static str, Value)> {
        self.0.next()
    }
}
