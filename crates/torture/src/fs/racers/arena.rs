//! The files of a race, and the calls that are made in it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::call_line;
use toolcrib_devtools::scratch::{Scratch, remove_directory};

use super::canary::{self, Canaries};
use super::swap::{Swap, Swapper};

/// The called tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Read,
    Write,
    Edit,
    Ls,
}

impl Tool {
    pub(super) const ALL: [Tool; 4] = [Tool::Read, Tool::Write, Tool::Edit, Tool::Ls];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Read => "Read",
            Tool::Write => "Write",
            Tool::Edit => "Edit",
            Tool::Ls => "LS",
        }
    }

    pub(super) fn changes(self) -> bool {
        matches!(self, Tool::Write | Tool::Edit)
    }
}

/// The two alternating contents of the file.
const STATES: [&str; 2] = ["state A\n", "state B\n"];
const FILE: &str = "f.txt";

pub(super) struct Arena {
    scratch: Scratch,
    swap: Swap,
    tool: Tool,
    /// The hashes of the two states.
    hashes: [String; 2],
}

impl Arena {
    pub(super) fn new(binary: &Path, swap: Swap, tool: Tool) -> Result<Arena> {
        let scratch = Scratch::in_memory(binary)?;
        let hashes = [hash(&scratch, STATES[0])?, hash(&scratch, STATES[1])?];
        Ok(Arena { scratch, swap, tool, hashes })
    }

    /// Creates fresh files. There is an `f.txt` wherever a call may look for one.
    pub(super) fn prepare(&self) -> Result<()> {
        let top = self.scratch.top();
        self.scratch.remove_state()?;
        for directory in ["ws", "outside"] {
            remove_directory(&top.join(directory))?;
        }
        if let Err(error) = fs::remove_file(top.join("ws.parked"))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
        fs::create_dir_all(top.join("ws/d/sub"))?;
        fs::create_dir(top.join("outside"))?;
        fs::write(top.join("ws").join(FILE), STATES[0])?;
        fs::write(top.join("ws/d").join(FILE), STATES[0])?;
        fs::write(top.join("outside").join(FILE), self.canary())?;
        fs::write(top.join("outside").join(canary::NAME), canary::CONTENT)?;
        self.swapper().park()
    }

    pub(super) fn canaries(&self) -> Result<Canaries> {
        Canaries::observe(&self.scratch.top().join("outside"))
    }

    pub(super) fn swapper(&self) -> Swapper {
        Swapper::new(self.swap, self.scratch.top())
    }

    pub(super) fn command(&self) -> Command {
        self.scratch.command(&["run"])
    }

    pub(super) fn first_call(&self) -> String {
        call_line(0, "LS", &json!({}), true)
    }

    pub(super) fn call(&self, round: usize) -> String {
        let file = self.within(FILE, round);
        let (now, next) = (round % 2, (round + 1) % 2);
        let arguments = match self.tool {
            Tool::Read => json!({"file_path": file}),
            Tool::Ls => json!({"path": self.directory(round)}),
            Tool::Edit => {
                let (old, new) = (STATES[now].trim_end(), STATES[next].trim_end());
                json!({"file_path": file, "old_string": old, "new_string": new})
            }
            Tool::Write if round.is_multiple_of(3) => {
                let new = self.within(&format!("new-{round}"), round);
                json!({"file_path": new, "content": "new\n"})
            }
            Tool::Write => {
                let hash = &self.hashes[now];
                json!({"file_path": file, "content": STATES[next], "expected_hash": hash})
            }
        };
        call_line(round, self.tool.name(), &arguments, false)
    }

    /// The content of the file outside. For Write it equals the one inside, so that the hash would match; otherwise
    /// it contains text that an Edit would find and that no reply may contain.
    fn canary(&self) -> String {
        match self.tool {
            Tool::Write => STATES[0].to_owned(),
            _ => format!("{}{}\n", STATES[0], canary::CONTENT),
        }
    }

    /// The path of a file at or beneath the swapped path; in some rounds in another spelling.
    fn within(&self, name: &str, round: usize) -> String {
        match (self.swap, round % 4 < 2) {
            (Swap::DirectoryAndLink, _) | (Swap::MovedOut, true) => format!("d/{name}"),
            // After the move, `d` has another parent directory.
            (Swap::MovedOut, false) => format!("d/sub/../../{name}"),
            (Swap::FileAndLink | Swap::FileAndFifo, _) | (Swap::Root, true) => name.to_owned(),
            (Swap::Root, false) => format!("{}/{name}", self.scratch.workspace().display()),
        }
    }

    /// The path of the swapped directory, or of the directory with the swapped file.
    fn directory(&self, round: usize) -> String {
        match (self.swap, round % 4 < 2) {
            (Swap::DirectoryAndLink, _) | (Swap::MovedOut, true) => "d".to_owned(),
            (Swap::MovedOut, false) => "d/sub/../..".to_owned(),
            (Swap::FileAndLink | Swap::FileAndFifo, _) | (Swap::Root, true) => ".".to_owned(),
            (Swap::Root, false) => self.scratch.workspace().display().to_string(),
        }
    }
}

/// The hash of a content, as reported by Read.
fn hash(scratch: &Scratch, content: &str) -> Result<String> {
    fs::write(scratch.workspace().join(FILE), content)?;
    let reply = scratch.must_call("Read", &json!({"file_path": FILE}))?;
    let hash = reply.pointer("/metadata/hash").and_then(Value::as_str);
    Ok(hash.ok_or_else(|| format!("Read tells no hash: {reply}"))?.to_owned())
}
