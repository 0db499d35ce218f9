//! Runs each `console` block of the documentation and compares the output.
//!
//! The blocks of a page share a project directory. Lines that begin with `$ ` are commands for bash; the lines after one are
//! its output. `UPDATE=1` writes the real output into the pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolcrib_testkit::{Document, Segment};

use crate::{PROGRAM, text};

#[test]
fn every_console_block_shows_what_the_program_prints() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let mut blocks = 0;
    for path in pages(&repository) {
        let page = std::fs::read_to_string(&path).unwrap();
        let mut document = Document::parse(&page).unwrap();
        let place = Project::new();
        for segment in &mut document.segments {
            if let Segment::Block { info, body, .. } = segment
                && info == "console"
            {
                *body = place.play(body);
                blocks += 1;
            }
        }
        let real = document.render();
        if update {
            std::fs::write(&path, &real).unwrap();
        } else {
            assert_eq!(page, real, "{} (UPDATE=1 writes the real output)", path.display());
        }
    }
    assert!(blocks > 0);
}

fn pages(repository: &Path) -> Vec<PathBuf> {
    let docs = repository.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([repository.join("README.md")]).collect()
}

/// A project directory with its own state, and `toolcrib` on the `PATH`.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Project {
        let place = Project(crate::command_directory());
        std::fs::create_dir(place.project()).unwrap();
        std::fs::create_dir(place.0.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(PROGRAM, place.0.path().join("bin/toolcrib")).unwrap();
        place
    }

    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }

    /// The block with the real output of its commands.
    fn play(&self, block: &str) -> String {
        let mut real = String::new();
        for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let _ = writeln!(real, "$ {command}");
            real += &self.run(command);
        }
        real
    }

    fn run(&self, command: &str) -> String {
        let top = self.0.path();
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.project())
            .env("PATH", format!("{}:{path}", top.join("bin").display()))
            .env("XDG_CONFIG_HOME", top.join("config"))
            .env("XDG_STATE_HOME", top.join("state"))
            .output()
            .unwrap();
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let project = self.project();
        let printed = printed.replace(project.to_str().unwrap(), "/home/me/project");
        printed.lines().map(|line| format!("{}\n", without_age(line))).collect()
    }
}

/// A line of `toolcrib log` with a fixed age, so that it does not depend on the speed of the test.
fn without_age(line: &str) -> String {
    const NOW: &str = "just now";
    let Some(end) =
        [" s ago", " min ago"].into_iter().find_map(|unit| Some(line.find(unit)? + unit.len()))
    else {
        return line.to_owned();
    };
    let last_digit = line[..end].rfind(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let start = line[..last_digit].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    // Columns stay where they are.
    let shorter = NOW.len().saturating_sub(end - start);
    let rest = &line[end..];
    let padding = rest.len() - rest.trim_start_matches(' ').len();
    format!("{}{NOW}{}", &line[..start], &rest[shorter.min(padding)..])
}
