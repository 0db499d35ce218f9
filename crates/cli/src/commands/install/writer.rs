//! Changes a client's file with Toolcrib's own tools: atomically, with its mode preserved, and undoable with
//! `toolcrib --root DIR undo`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Options, Profile, Protection, Reply, Runtime};

use crate::output;
use toolcrib::user_machine;

/// A file and its new content. `None` deletes it.
pub(super) struct FileChange {
    file: PathBuf,
    is_new: bool,
    after: Option<String>,
}

/// The content of a file. `None` if it does not exist.
pub(super) fn read(file: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| format!("{}: {error}", file.display())),
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
        let change = FileChange { file: file.to_owned(), is_new: before.is_none(), after };
        Ok((before != change.after).then_some(change))
    }

    /// Shows the change.
    pub(super) fn show(&self) -> Result<(), String> {
        output::answer(&format!("{}:", self.file.display()));
        self.run(true)
    }

    /// Makes the change.
    pub(super) fn write(&self) -> Result<(), String> {
        self.run(false)
    }

    fn run(&self, dry_run: bool) -> Result<(), String> {
        // Some users keep their settings elsewhere, behind a symlink. The change applies to its target.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let (root, name) = split(&file)?;
        let runtime = runtime(root, dry_run)?;
        let session = runtime.session();
        let call = |tool: &str, arguments: Value, dry_run: bool| -> Result<Reply, String> {
            let options = Options { dry_run, ..Options::default() };
            let called = runtime.call(&session, Call::new(tool, arguments), options);
            called.map_err(|error| format!("{}: {}", file.display(), error.text()))
        };
        // The tools overwrite a file only if the caller passes its hash.
        let hash = if self.is_new {
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
            return output::reply(&reply).map_err(|error| error.to_string());
        }
        let did = match (&self.after, self.is_new) {
            (None, _) => "Deleted",
            (Some(_), true) => "Created",
            (Some(_), false) => "Changed",
        };
        output::answer(&format!("{did} {}", file.display()));
        Ok(())
    }
}

/// The nearest existing parent directory, and the path relative to it.
fn split(file: &Path) -> Result<(&Path, String), String> {
    let root = file.ancestors().skip(1).find(|above| above.is_dir());
    let name = root.and_then(|root| Some((root, file.strip_prefix(root).ok()?.to_str()?)));
    name.map(|(root, name)| (root, name.to_owned()))
        .ok_or_else(|| format!("{}: no parent directory exists", file.display()))
}

/// A runtime for one directory, with nothing protected: the user's command names this file.
fn runtime(root: &Path, dry_run: bool) -> Result<Runtime, String> {
    let everything = Protection::default().allow("**")?;
    let mut builder = Runtime::builder().root(root).profile(Profile::Open).protection(everything);
    if let Some(state) = user_machine::state_directory().filter(|_| !dry_run) {
        builder = builder.journal(state, Caps::default());
    }
    builder.build().map_err(|error| error.to_string())
}
