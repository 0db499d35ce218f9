//! The tested calls with their initial files.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Uid, XattrFlags};
use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::{Scratch, remove_directory};

const LARGE_BYTES: usize = 256 << 10;
/// A mode that no umask gives, so that preserving it is deliberate.
const MODE: u32 = 0o640;
const ATTRIBUTE: &str = "user.torture";
/// Another owner, if we may change owners.
const OWNER: u32 = 1234;

/// A call and the files that it changes.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// How to create its files, for display.
    pub(super) preparation: &'static str,
    scratch: Scratch,
    tool: &'static str,
    arguments: Value,
    pub(super) subjects: Vec<Subject>,
    /// The number of changes in the journal before the call.
    pub(super) logged: u64,
}

/// A file that the call changes, with its old and new content; `None` if it does not exist.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

pub(super) fn all(binary: &Path) -> Result<Vec<Scenario>> {
    Ok(vec![edit(binary)?, write(binary)?, undo(binary)?])
}

fn edit(binary: &Path) -> Result<Scenario> {
    let body = Random::new(17).text(LARGE_BYTES);
    let (old, new) = (format!("old\n{body}"), format!("new\n{body}"));
    Scenario {
        name: "Edit of 256 KiB",
        preparation: "a.txt has 256 KiB, mode 640, and one line `old`",
        scratch: Scratch::new(binary)?,
        tool: "Edit",
        arguments: json!({"file_path": "a.txt", "old_string": "old\n", "new_string": "new\n"}),
        subjects: vec![Subject { name: "a.txt", old: Some(old), new: Some(new) }],
        logged: 0,
    }
    .save_state()
}

fn write(binary: &Path) -> Result<Scenario> {
    let new = "a new file\n".to_owned();
    Scenario {
        name: "Write into two new directories",
        preparation: "in an empty workspace",
        scratch: Scratch::new(binary)?,
        tool: "Write",
        arguments: json!({"file_path": "one/two/new.txt", "content": new}),
        subjects: vec![Subject { name: "one/two/new.txt", old: None, new: Some(new) }],
        logged: 0,
    }
    .save_state()
}

/// The removed file comes first, so that its removal must be reverted if a later step fails.
fn undo(binary: &Path) -> Result<Scenario> {
    let mut random = Random::new(19);
    let (made, b, c) = (random.text(5_000), random.text(9_000), random.text(9_000));
    let edited = |body: &str| (format!("edited\n{body}"), format!("first\n{body}"));
    let ((b_old, b_new), (c_old, c_new)) = (edited(&b), edited(&c));
    let scratch = Scratch::new(binary)?;
    let subjects = vec![
        Subject { name: "a-made.txt", old: Some(made.clone()), new: None },
        Subject { name: "b.txt", old: Some(b_old), new: Some(b_new.clone()) },
        Subject { name: "c.txt", old: Some(c_old), new: Some(c_new.clone()) },
    ];
    for (name, text) in [("b.txt", b_new), ("c.txt", c_new)] {
        fs::write(scratch.workspace().join(name), text)?;
        let edit = json!({"file_path": name, "old_string": "first\n", "new_string": "edited\n"});
        scratch.must_call("Edit", &edit)?;
    }
    scratch.must_call("Write", &json!({"file_path": "a-made.txt", "content": made}))?;
    Scenario {
        name: "Undo of three files at once",
        preparation: "an Edit of b.txt, an Edit of c.txt and a Write of a new a-made.txt were made",
        scratch,
        tool: "Undo",
        arguments: json!({"steps": 3}),
        subjects,
        logged: 3,
    }
    .save_state()
}

impl Scenario {
    pub(super) fn top(&self) -> &Path {
        self.scratch.top()
    }

    pub(super) fn trace_file(&self) -> PathBuf {
        self.top().join("trace")
    }

    pub(super) fn command(&self) -> Command {
        self.scratch.call_command(self.tool, &self.arguments)
    }

    pub(super) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Creates the initial files and journal, at the same paths each time because the journal contains them.
    pub(super) fn prepare(&self) -> Result<()> {
        let workspace = self.scratch.workspace();
        remove_directory(&workspace)?;
        fs::create_dir(&workspace)?;
        for subject in &self.subjects {
            if let Some(old) = &subject.old {
                let path = workspace.join(subject.name);
                fs::write(&path, old)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(MODE))?;
                // A file that is removed and restored is a new file: only its mode is preserved.
                if subject.new.is_some() {
                    make_special(&path)?;
                }
            }
        }
        self.scratch.remove_state()?;
        copy_tree(&self.saved_state(), &self.scratch.state())
    }

    /// Describes a lost mode, owner or extended attribute of an existing file.
    pub(super) fn lost_attributes(&self, subject: &Subject) -> Result<Vec<String>> {
        let path = self.scratch.workspace().join(subject.name);
        let Ok(stat) = fs::metadata(&path) else { return Ok(Vec::new()) };
        let mut lost = Vec::new();
        let mode = stat.permissions().mode() & 0o7777;
        if subject.old.is_some() && mode != MODE {
            lost.push(format!("{} has mode {mode:o}, not {MODE:o}", subject.name));
        }
        if subject.old.is_some() && subject.new.is_some() && !is_special(&path)? {
            lost.push(format!("{} lost its owner or its extended attribute", subject.name));
        }
        Ok(lost)
    }

    /// Saves the current journal as the start of each run.
    fn save_state(self) -> Result<Scenario> {
        // The program refuses a state directory that others can enter.
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(self.scratch.state())?;
        copy_tree(&self.scratch.state(), &self.saved_state())?;
        Ok(self)
    }

    fn saved_state(&self) -> PathBuf {
        self.top().join("saved-state")
    }
}

/// Sets an extended attribute and, if permitted, another owner, which a change must preserve.
fn make_special(path: &Path) -> Result<()> {
    // Some file systems have no extended attributes.
    let _ = rustix::fs::setxattr(path, ATTRIBUTE, b"kept", XattrFlags::empty());
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(OWNER), Gid::from_raw(OWNER));
        rustix::fs::chown(path, Some(user), Some(group))?;
    }
    Ok(())
}

fn is_special(path: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let stat = fs::metadata(path)?;
    let is_root = rustix::process::geteuid().is_root();
    let owner_kept = !is_root || (stat.uid(), stat.gid()) == (OWNER, OWNER);
    let mut value = [0; 8];
    let attribute = rustix::fs::getxattr(path, ATTRIBUTE, &mut value);
    let attribute_kept = !matches!(attribute, Err(rustix::io::Errno::NODATA));
    Ok(owner_kept && attribute_kept)
}

/// Copies directories and files, with their modes.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
