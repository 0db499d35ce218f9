//! `cargo xtask demo`: the first command for a newcomer. An agent searches, edits and deletes; `undo` restores everything.

use std::io::{Write as _, stdout};
use std::time::Instant;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, product};

use crate::demo_project::DemoProject;

/// A command of the session.
struct Scene {
    title: &'static str,
    /// As one would type it.
    shown: &'static str,
    words: &'static [&'static str],
}

const SCENES: &[Scene] = &[
    Scene {
        title: "The agent searches.",
        shown: r#"toolcrib call Grep '{"pattern": "fn parse", "output_mode": "content"}'"#,
        words: &[
            "toolcrib",
            "--text",
            "call",
            "Grep",
            r#"{"pattern": "fn parse", "output_mode": "content"}"#,
        ],
    },
    Scene {
        title: "The agent edits. The reply has the diff.",
        shown: r#"toolcrib call Edit '{"file_path": "src/parser.rs", "old_string": "text.split_once", "new_string": "text.trim().split_once"}'"#,
        words: &[
            "toolcrib",
            "--text",
            "call",
            "Edit",
            r#"{"file_path": "src/parser.rs", "old_string": "text.split_once", "new_string": "text.trim().split_once"}"#,
        ],
    },
    Scene {
        title: "The agent deletes everything, with a command in the sandbox.",
        shown: r#"toolcrib call Bash '{"command": "rm -rf src"}'"#,
        words: &["toolcrib", "--text", "call", "Bash", r#"{"command": "rm -rf src"}"#],
    },
    Scene {
        title: "You look at the changes of the agent.",
        shown: "toolcrib log",
        words: &["toolcrib", "log"],
    },
    Scene {
        title: "You undo all of them.",
        shown: "toolcrib undo --since 1 --yes",
        words: &["toolcrib", "undo", "--since", "1", "--yes"],
    },
    Scene { title: "The files are back.", shown: "ls src", words: &["ls", "src"] },
];

/// The task.
pub(crate) fn run() -> Result<()> {
    println!(
        "This builds Toolcrib without optimization: up to four minutes on two cores, seconds the next time. Then it plays\n\
         the session of an agent in a temporary directory. Nothing else on this machine is changed.\n"
    );
    let began = Instant::now();
    let binary = product::build_demo()?;
    println!("Built in {} s.\n", began.elapsed().as_secs());
    let demo = DemoProject::new(binary, &cache::directory()?)?;
    for (number, Scene { title, shown, words }) in SCENES.iter().enumerate() {
        println!("# {}. {title}\n$ {shown}", number + 1);
        stdout().flush()?;
        println!("{}", demo.play(words)?);
    }
    if !demo.is_unchanged() {
        return Err("the files are not as they were before the session: this is a bug".into());
    }
    println!(
        "Every byte is as it was before. Install it, and connect an agent:\n\n  \
         cargo install --locked --path crates/cli && toolcrib install claude --exclusive    # or codex, gemini, opencode, …"
    );
    Ok(())
}
