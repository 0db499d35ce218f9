//! Names that make programs run code and that came while commands ran.
//!
//! Where nothing is, nothing can be protected, and nothing is made in a workspace to have something to
//! protect. So a command can make such a name; it is looked for afterwards, and what could run something is
//! moved out of the workspace before anybody else uses it. What a new repository always has stays.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcrib_exec::Job;
use toolcrib_fs::{Tree, set_aside};
use toolcrib_text::visible_name;

use super::{harmless, repository};
use crate::runtime::Runtime;

/// So many hooks of one repository are looked at.
const MAX_HOOKS: usize = 1_000;

/// Hooks that git has made as examples, and does not run.
const EXAMPLE: &str = "sample";

/// Where things are set aside, in the host's own directory.
const QUARANTINE: &str = "quarantine";

/// What was there before, and who may have made what is there now.
#[derive(Debug, Default)]
pub(crate) struct Newcomers {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    names: HashSet<PathBuf>,
    /// Commands that ran when it was last looked.
    commands: Vec<Arc<Job>>,
}

/// A name that came.
#[derive(Debug)]
pub(crate) struct Newcomer {
    /// Its real path.
    pub(crate) path: PathBuf,
    pub(crate) fate: Fate,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It stays, and is protected from now on.
    Stays,
    /// It is here now.
    SetAside(PathBuf),
    /// It could not be moved, and why.
    CannotBeMoved(String),
}

/// What to say of them, on a line for those that stay and one for those that do not.
pub(crate) fn newcomer_notes(
    newcomers: &[Newcomer],
    show: impl Fn(&Path) -> String,
) -> Vec<String> {
    let (mut stay, mut notes) = (Vec::new(), Vec::new());
    for Newcomer { path, fate } in newcomers {
        let shown = show(path);
        match fate {
            Fate::Stays => stay.push(shown),
            Fate::SetAside(place) => {
                let place = visible_name(place.as_os_str().as_encoded_bytes());
                notes.push(format!(
                    "a command made {shown}, which can make programs run code: it was set aside as {place}; allow_protected in config.toml lets commands make it"
                ));
            }
            Fate::CannotBeMoved(why) => notes.push(format!(
                "a command made {shown}, which can make programs run code, and it could not be set aside: {why}"
            )),
        }
    }
    if !stay.is_empty() {
        let names = stay.join(", ");
        notes.push(format!(
            "made what can make programs run code, and is protected from now on: {names}"
        ));
    }
    notes
}

impl Newcomers {
    /// Before a command, with the names that are there now: what came since an earlier one began that still
    /// runs, or did. What came while none ran is the user's.
    pub(crate) fn before(&self, runtime: &Runtime, now: &[PathBuf]) -> Vec<Newcomer> {
        let mut known = self.lock();
        let newcomers = match known.commands.is_empty() {
            true => Vec::new(),
            false => known.newcomers(runtime, now),
        };
        known.learn(now, &newcomers);
        newcomers
    }

    /// A command was started.
    pub(crate) fn began(&self, job: Arc<Job>) {
        self.lock().commands.push(job);
    }

    /// A command has ended.
    pub(crate) fn after(&self, runtime: &Runtime, now: &[PathBuf]) -> Vec<Newcomer> {
        let mut known = self.lock();
        let newcomers = known.newcomers(runtime, now);
        known.learn(now, &newcomers);
        newcomers
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn newcomers(&self, runtime: &Runtime, now: &[PathBuf]) -> Vec<Newcomer> {
        let new = now.iter().filter(|name| !self.names.contains(*name));
        new.flat_map(|name| received(runtime, name)).collect()
    }

    /// Takes what is there, but for what was moved away, as what was there; and forgets commands that are
    /// over.
    fn learn(&mut self, now: &[PathBuf], newcomers: &[Newcomer]) {
        self.names = now.iter().cloned().collect();
        for gone in newcomers.iter().filter(|one| matches!(one.fate, Fate::SetAside(_))) {
            self.names.remove(&gone.path);
        }
        self.commands.retain(|job| !job.snapshot().over);
    }
}

/// Moves what could run something, and says what became of it.
fn received(runtime: &Runtime, name: &Path) -> Vec<Newcomer> {
    let Some((tree, relative)) = runtime.workspace().tree_of(name) else { return Vec::new() };
    let dangerous = dangerous(&tree, &relative);
    if dangerous.is_empty() {
        return vec![Newcomer { path: name.to_owned(), fate: Fate::Stays }];
    }
    let into = runtime.journal().map(|journal| journal.directory().join(QUARANTINE));
    let moved = dangerous.into_iter().map(|relative| {
        let fate = match set_aside(&tree, &relative, into.as_deref()) {
            Ok(place) => Fate::SetAside(place),
            Err(error) => Fate::CannotBeMoved(error.to_string()),
        };
        Newcomer { path: tree.path().join(relative), fate }
    });
    moved.collect()
}

/// What of a protected name could run something; from the root, as the name.
fn dangerous(tree: &Tree, name: &Path) -> Vec<PathBuf> {
    let has = |part: &str| name.iter().any(|one| one == part);
    let last = name.file_name().and_then(|last| last.to_str()).unwrap_or_default();
    let file_is = |harmless: fn(&str) -> bool| {
        repository::text(tree, name).is_some_and(|text| harmless(&text))
    };
    let stays = match last {
        "hooks" if has(".git") => {
            // A link in its place is moved as a whole.
            let Ok(hooks) = tree.directory(name) else { return vec![name.to_owned()] };
            let mut dangerous = Vec::new();
            let _ = hooks.each(|hook, _| {
                let hook = name.join(hook);
                if hook.extension().is_none_or(|extension| extension != EXAMPLE) {
                    dangerous.push(hook);
                }
                dangerous.len() < MAX_HOOKS
            });
            return dangerous;
        }
        "info" if has(".git") => true,
        "config" | "config.worktree" if has(".git") => file_is(harmless::for_git),
        "hgrc" if has(".hg") => file_is(harmless::for_mercurial),
        ".svn" => true,
        _ => false,
    };
    if stays { Vec::new() } else { vec![name.to_owned()] }
}
