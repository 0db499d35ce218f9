//! Changes a client's file with Toolcrib's own tools: atomically, with its mode preserved, and undoable with
//! `toolcrib --root DIR undo`.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Error, ErrorKind, Options, Profile, Protection, Reply, Runtime};

use super::replaced_lines::TextSplice;
use crate::output;
use toolcrib::user_machine;

/// A file and its new content. `None` deletes it.
pub(super) struct FileChange {
    file: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

/// Why a file cannot be changed.
struct Problem {
    text: String,
    /// The operating system does not permit it.
    is_permission: bool,
}

impl From<String> for Problem {
    fn from(text: String) -> Problem {
        Problem { text, is_permission: false }
    }
}

/// The content of a file, without a byte order mark, which the tools keep. `None` if it does not exist.
pub(super) fn read(file: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", file.display())),
        Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())),
    }
}

impl FileChange {
    /// The change that `edit` makes. `None` if it makes none.
    pub(super) fn of(
        file: &Path,
        edit: impl FnOnce(Option<&str>) -> Result<Option<String>, String>,
    ) -> Result<Option<FileChange>, String> {
        let before = read(file)?;
        let after =
            edit(before.as_deref()).map_err(|problem| format!("{}: {problem}", file.display()))?;
        let is_change = before != after;
        Ok(is_change.then(|| FileChange { file: file.to_owned(), before, after }))
    }

    /// Shows the change, also if it is not permitted: then the user makes it by hand.
    pub(super) fn show(&self) -> Result<(), String> {
        output::answer(&format!("{}:", self.file.display()));
        match self.run(true) {
            Err(problem) if problem.is_permission => {
                let before = self.before.as_deref().unwrap_or_default();
                output::answer(&match &self.after {
                    Some(after) => TextSplice::diff(before, after),
                    None => "The file would be deleted.".to_owned(),
                });
                output::warning(&problem.text);
                Ok(())
            }
            shown => shown.map_err(|problem| problem.text),
        }
    }

    /// Makes the change. `shown_by` is the command that shows it.
    pub(super) fn write(&self, shown_by: &str) -> Result<(), String> {
        self.run(false).map_err(|Problem { text, is_permission }| {
            if is_permission {
                format!("{text}\n`{shown_by}` shows the change, to make it by hand.")
            } else {
                text
            }
        })
    }

    fn run(&self, dry_run: bool) -> Result<(), Problem> {
        // Some users keep their settings elsewhere, behind a symlink. The change applies to its target.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let (root, name) = split(&file)?;
        let is_new = self.before.is_none();
        let runtime = runtime(root, dry_run)?;
        let session = runtime.session();
        let call = |tool: &str, arguments: Value, dry_run: bool| -> Result<Reply, Problem> {
            let options = Options { dry_run, ..Options::default() };
            let called = runtime.call(&session, Call::new(tool, arguments), options);
            called.map_err(|error| problem(&file, &error))
        };
        // The tools overwrite a file only if the caller passes its hash.
        let hash = if is_new {
            Value::Null
        } else {
            let read = call("Read", json!({"file_path": name, "limit": 1}), false)?;
            read.metadata()["hash"].clone()
        };
        let reply = match &self.after {
            Some(content) => {
                let args = json!({"file_path": name, "content": content, "expected_hash": hash});
                call("Write", args, dry_run)?
            }
            None => {
                let patch = format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n");
                call("ApplyPatch", json!({"patch": patch}), dry_run)?
            }
        };
        if dry_run {
            return output::reply(&reply).map_err(|error| error.to_string().into());
        }
        let did = match (&self.after, is_new) {
            (None, _) => "Deleted",
            (Some(_), true) => "Created",
            (Some(_), false) => "Changed",
        };
        output::answer(&format!("{did} {}", file.display()));
        Ok(())
    }
}

/// The hints of the tools are for an agent. Of those about permissions, only a command is useful to the user.
fn problem(file: &Path, error: &Error) -> Problem {
    let is_permission = matches!(error.kind(), ErrorKind::Permission | ErrorKind::ReadOnly);
    let (path, message) = (file.display().to_string(), error.message());
    let text = if is_permission && message.starts_with(&path) {
        message.to_owned()
    } else if is_permission {
        let hint = error.hint_text();
        let hint = hint.find("`chmod ").map_or(String::new(), |at| format!("\n{}", &hint[at..]));
        format!("{path} cannot be written: {message}.{hint}")
    } else {
        format!("{path}: {}", error.text())
    };
    Problem { text, is_permission }
}

/// The nearest existing parent directory, and the path of the file as text.
fn split(file: &Path) -> Result<(&Path, String), String> {
    let root = file.ancestors().skip(1).find(|above| above.is_dir());
    let name = root.and_then(|root| Some((root, file.to_str()?)));
    name.map(|(root, name)| (root, name.to_owned()))
        .ok_or_else(|| format!("{}: no parent directory exists", file.display()))
}

/// A runtime for one directory, with nothing protected: the user's command names this file.
fn runtime(root: &Path, dry_run: bool) -> Result<Runtime, String> {
    let everything = Protection::default().allow("**")?;
    let builder = Runtime::builder().root(root).profile(Profile::Open).protection(everything);
    // Messages to the user do not depend on the root.
    let mut builder = builder.absolute_paths(true);
    if let Some(state) = user_machine::state_directory().filter(|_| !dry_run) {
        builder = builder.journal(state, Caps::default());
    }
    builder.build().map_err(|error| error.to_string())
}
