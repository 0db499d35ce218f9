//! `cargo xtask picture`: a terminal session as an SVG for the README. A command deletes files, `undo` restores them.
//!
//! The session is real: each line is printed by the program itself.

use std::fmt::Write as _;
use std::fs;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, product, workspace};

use crate::demo_project::DemoProject;

/// Each command of the session, as it is shown and as it is run.
const SESSION: &[(&str, &[&str])] = &[
    ("ls src", &["ls", "src"]),
    (
        "toolcrib call Bash '{\"command\": \"rm -rf src\"}'      # what an agent does",
        &["toolcrib", "--text", "call", "Bash", "{\"command\": \"rm -rf src\"}"],
    ),
    ("toolcrib log", &["toolcrib", "log"]),
    ("toolcrib undo --yes", &["toolcrib", "undo", "--yes"]),
    ("ls src", &["ls", "src"]),
];

const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 16;
const WIDTH: usize = 760;

pub(crate) fn run() -> Result<()> {
    let demo = DemoProject::new(product::build_debug()?, &cache::directory()?)?;
    let mut lines = Vec::new();
    for (shown, words) in SESSION {
        lines.push(("prompt", format!("$ {shown}")));
        let printed = demo.play(words)?;
        lines.extend(printed.lines().map(|line| ("output", line.to_owned())));
    }
    fs::write(workspace::root().join("docs/demo.svg"), draw(&lines))?;
    println!("wrote docs/demo.svg");
    Ok(())
}

fn draw(lines: &[(&str, String)]) -> String {
    let height = 2 * MARGIN + lines.len() * LINE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"A terminal session: rm -rf src, then toolcrib undo\">\n\
         <style>text {{ font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre; }} \
         .prompt {{ fill: #e6edf3; font-weight: 600; }} .output {{ fill: #9da7b3; }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, (class, line)) in lines.iter().enumerate() {
        let y = MARGIN + 14 + number * LINE_HEIGHT;
        let text = line.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{text}</text>");
    }
    svg + "</svg>\n"
}
