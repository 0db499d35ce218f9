//! Errors that edits introduced, as language servers see them: in the reply to the edit if they are known in time,
//! otherwise in a later reply, if the file still has that content.

mod launch;
mod notes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_fs::{BulkReader, Content, ContentHash, ReadFile};
use toolcrib_search::{Deadline, Listing, Walk};

use self::launch::{LaunchError, found_program, launch};
use self::notes::{FileNote, later_note, no_errors_note, one_note};
use crate::cancel_and_progress::Cancel;
use crate::cx::EditedFile;
use crate::language_servers::{
    Check, CheckOutcome, CheckResult, LanguageServer, PendingCheck, ProjectFiles, SessionChecks,
};
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::services::Services;
use crate::session::Session;

/// How long the reply to an edit waits for errors.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How long it waits for a server that has not answered before.
const SHORT_WAIT: Duration = Duration::from_millis(100);

/// Files of a call that are checked.
const MAX_FILES: usize = 10;

/// Time for examining the files of all projects of a call.
const MAX_LISTING_TIME: Duration = Duration::from_secs(2);

/// How often a wait checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Who reads the reply of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Model,
    /// A program, which does not wait for notes.
    Program,
}

impl Runtime {
    /// Returns the names of the language servers that check edited files, each with the program that was found for it.
    /// Empty if [`RuntimeBuilder::language_servers`](crate::RuntimeBuilder::language_servers) was not used.
    ///
    /// ```
    /// # fn main() -> Result<(), toolcrib::Error> {
    /// let runtime = toolcrib::Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build()?;
    /// assert!(runtime.language_servers().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn language_servers(&self) -> Vec<(String, Option<PathBuf>)> {
        let services = self.services();
        let servers = services.language_servers.iter().flat_map(|servers| servers.definitions());
        servers.map(|server| (server.name.clone(), found_program(services, server))).collect()
    }
}

/// Checks the files that a call has edited, and adds what is known in time to its reply.
pub(crate) fn checked(
    services: &Services,
    session: &Session,
    edited: Vec<EditedFile>,
    (cancel, reader): (&Cancel, Reader),
    reply: Reply,
) -> Reply {
    let Some(checks) = session.checks().filter(|_| reader == Reader::Model) else { return reply };
    let began = Instant::now();
    let mut projects = Projects::default();
    // A text that does not parse has no types. Its errors are in the reply already.
    let has_syntax_errors = reply.metadata().contains_key("syntax_errors");
    let (mut submitted, mut notes) = (Vec::new(), Vec::new());
    let mut is_slow = false;
    let mut files = edited_once(edited);
    files.retain(|file| !checks.servers().for_file(&file.path).is_empty());
    if files.len() > MAX_FILES {
        let count = files.len();
        notes.push(one_note(&format!("only {MAX_FILES} of the {count} edited files are checked")));
        files.truncate(MAX_FILES);
    }
    for file in files {
        for (number, server, language) in checks.servers().for_file(&file.path) {
            let edit = Edit { services, session, checks, file: &file, language };
            let was_slow = checks.awaits(number);
            match edit.submit((number, server), has_syntax_errors, &mut projects) {
                Ok(Some(check)) => submitted.push(check),
                Ok(None) => {}
                Err(why) => notes.extend(first_note(checks, &why)),
            }
            is_slow |= was_slow;
        }
    }
    let until = began + if is_slow { SHORT_WAIT } else { MAX_WAIT };
    wait(&submitted, until, cancel);
    let (known, unknown): (Vec<_>, Vec<_>) =
        submitted.into_iter().partition(|check| check.result.get().is_some());
    let reply = notes.into_iter().fold(reply, Reply::note);
    let (reply, _) = told(services, session, checks, known, reply);
    if unknown.is_empty() {
        return reply;
    }
    let note = later_note(services, session, &unknown);
    let paths = shown_paths(services, session, &unknown);
    unknown.into_iter().for_each(|check| checks.add(check));
    reply.note(note).with("unknown_errors", paths)
}

/// Adds results of earlier edits to a reply.
pub(crate) fn late_results(services: &Services, session: &Session, reply: Reply) -> Reply {
    let Some(checks) = session.checks() else { return reply };
    let known = checks.take_known();
    if known.is_empty() {
        return reply;
    }
    let (reply, without_errors) = told(services, session, checks, known, reply);
    match without_errors.as_slice() {
        [] => reply,
        files => reply.note(no_errors_note(services, session, files)),
    }
}

/// Adds results to a reply. Also returns the checks that found no new errors.
fn told(
    services: &Services,
    session: &Session,
    checks: &SessionChecks,
    known: Vec<PendingCheck>,
    mut reply: Reply,
) -> (Reply, Vec<PendingCheck>) {
    let (mut without_errors, mut files) = (Vec::new(), Vec::<FileNote>::new());
    for check in known {
        // An answer about another content than the present one is not an answer.
        if content_hash(services, session, &check.path) != Some(check.now) {
            continue;
        }
        match check.result.get() {
            None => {}
            Some(CheckOutcome::Errors(errors)) => {
                checks.is_told(&check);
                let has_errors = !errors.is_empty();
                let errors = checks.without_told_lines(&check, errors);
                if !has_errors {
                    without_errors.push(check);
                } else if !errors.is_empty() {
                    let server = &check.server.1;
                    match files.iter_mut().find(|file| file.path == check.path) {
                        Some(file) => file.add(server, errors),
                        None => files.push(FileNote::new(check.path, server, errors)),
                    }
                }
            }
            Some(CheckOutcome::TooMany) => {
                let shown = services.paths.show(session.directory(), &check.path);
                let (server, what) = (&check.server.1, "too many errors to know the new ones");
                let note = format!("{server} has {what} in {shown}");
                reply = first_note(checks, &note).into_iter().fold(reply, Reply::note);
            }
            Some(CheckOutcome::Unanswered) => {
                let shown = services.paths.show(session.directory(), &check.path);
                let note = format!("{} did not check {shown}", check.server.1);
                reply = first_note(checks, &note).into_iter().fold(reply, Reply::note);
            }
            Some(CheckOutcome::Failed(why)) => {
                let note = format!("{} is not used any more: {why}", check.server.1);
                reply = first_note(checks, &note).into_iter().fold(reply, Reply::note);
            }
        }
    }
    if files.is_empty() {
        return (reply, without_errors);
    }
    let (lines, facts) = notes::described(services, session, &files);
    let reply = lines.into_iter().fold(reply, Reply::note).with("new_errors", facts);
    (reply, without_errors)
}

/// A note that a session gets once.
fn first_note(checks: &SessionChecks, note: &str) -> Option<String> {
    checks.says_first(note).then(|| one_note(note))
}

fn shown_paths(
    services: &Services,
    session: &Session,
    pending: &[PendingCheck],
) -> Vec<serde_json::Value> {
    let mut paths: Vec<String> =
        pending.iter().map(|check| services.paths.show(session.directory(), &check.path)).collect();
    paths.dedup();
    paths.into_iter().map(Into::into).collect()
}

/// Waits until all results are known, or until a moment.
fn wait(submitted: &[PendingCheck], until: Instant, cancel: &Cancel) {
    for check in submitted {
        while check.result.get().is_none() && Instant::now() < until && !cancel.is_cancelled() {
            check.result.wait_until(until.min(Instant::now() + CANCEL_POLL));
        }
    }
}

/// Each file once, from its first content to its last.
fn edited_once(edited: Vec<EditedFile>) -> Vec<EditedFile> {
    let mut files: Vec<EditedFile> = Vec::new();
    for file in edited {
        match files.iter_mut().find(|known| known.path == file.path) {
            Some(known) => known.now = file.now,
            None => files.push(file),
        }
    }
    files
}

/// The hash of a file as it is now.
fn content_hash(services: &Services, session: &Session, path: &Path) -> Option<ContentHash> {
    let place = services.paths.resolve(session, session.directory(), path).ok()?;
    let file = ReadFile::open(&place).ok()?;
    Some(Content::from(file.read_all(services.limits.edit_bytes).ok()?).hash())
}

/// The projects of one call, each examined once: all edits of the call are made already.
#[derive(Default)]
struct Projects {
    /// The end of the time for them, which begins with the first one: the start of a server does not count.
    until: Option<Instant>,
    /// By root.
    listings: Vec<(PathBuf, Listing)>,
    /// By number of the server and root. `None` for a project that cannot be examined.
    examined: HashMap<(usize, PathBuf), Option<Arc<ProjectFiles>>>,
}

impl Projects {
    fn listing(&mut self, services: &Services, tree: &BulkReader, stop: &Deadline<'_>) -> &Listing {
        let known = self.listings.iter().position(|(root, _)| root == tree.path());
        let at = known.unwrap_or_else(|| {
            let hidden = services.paths.hidden.beneath(tree.path());
            let (start, named) = (Path::new(""), &[]);
            let walk = Walk { tree, start, ignored: false, named, own: &hidden, stop };
            self.listings.push((tree.path().to_owned(), services.listings.list(&walk)));
            self.listings.len() - 1
        });
        &self.listings[at].1
    }

    /// The files that a server reads. `None` if there are too many, or if the time is over.
    fn files(
        &mut self,
        services: &Services,
        tree: &BulkReader,
        (number, server): (usize, &LanguageServer),
    ) -> Option<Arc<ProjectFiles>> {
        let key = (number, tree.path().to_owned());
        if let Some(known) = self.examined.get(&key) {
            return known.clone();
        }
        let until = *self.until.get_or_insert_with(|| Instant::now() + MAX_LISTING_TIME);
        let stop = Deadline::new(until, &|| false);
        let listing = self.listing(services, tree, &stop);
        let files = ProjectFiles::examine(tree, listing, server, &stop).map(Arc::new);
        self.examined.insert(key, files.clone());
        files
    }
}

/// An edit to check with one server.
struct Edit<'e> {
    services: &'e Services,
    session: &'e Session,
    checks: &'e SessionChecks,
    file: &'e EditedFile,
    language: &'e str,
}

impl Edit<'_> {
    /// Gives the edit to the server. `None` if the server is not for this file. Fails with a sentence for the caller.
    fn submit(
        &self,
        (number, server): (usize, &LanguageServer),
        has_syntax_errors: bool,
        projects: &mut Projects,
    ) -> Result<Option<PendingCheck>, String> {
        let EditedFile { path, was, now } = self.file;
        let Some((tree, relative)) = self.services.paths.workspace.tree_of(path) else {
            return Ok(None);
        };
        let Some(now_text) = text(now).filter(|_| has_needed(server, &tree, &relative)) else {
            return Ok(None);
        };
        let was_text = match was {
            Some(was) => match text(was) {
                Some(text) => Some(text),
                // Errors of a text in another encoding are not comparable.
                None => return Ok(None),
            },
            None => None,
        };
        let was = (was_text, was.as_ref().map(Content::hash));
        let was = self.checks.baseline(number, path, was, now.hash());
        if has_syntax_errors {
            return Ok(None);
        }
        let launch = match launch(self.services, self.checks.servers().jobs(), server, tree.path())
        {
            Ok(launch) => launch,
            Err(LaunchError::NoProgram) => return Ok(None),
            Err(LaunchError::NoSandbox(why)) => return Err(why),
        };
        let Some(project) = projects.files(self.services, &tree, (number, server)) else {
            let root = self.services.paths.show(self.session.directory(), tree.path());
            return Err(format!(
                "{} does not check files: {root} has too many, or they are examined too slowly",
                server.name
            ));
        };
        let result = Arc::new(CheckResult::default());
        let check = Check {
            path: path.clone(),
            language: self.language.to_owned(),
            was,
            now: now_text,
            project,
            launch,
            result: result.clone(),
        };
        self.checks.servers().submit(number, tree.path(), Box::new(check));
        let server = (number, server.name.clone());
        Ok(Some(PendingCheck { path: path.clone(), server, now: now.hash(), result }))
    }
}

/// The text of a file. `None` if it is too large or not UTF-8, or if other programs count its lines in another way.
fn text(content: &Content) -> Option<Arc<str>> {
    if content.len() > toolcrib_lsp::MAX_TEXT_BYTES {
        return None;
    }
    let text = std::str::from_utf8(content).ok()?;
    let has_old_line_ends = text.replace("\r\n", "").contains('\r');
    (!has_old_line_ends).then(|| text.into())
}

/// Whether one of the files that the server needs is above a file.
fn has_needed(server: &LanguageServer, tree: &BulkReader, relative: &Path) -> bool {
    let mut above = relative.ancestors().skip(1);
    server.needs.is_empty()
        || above.any(|directory| {
            server.needs.iter().any(|needed| tree.stamp(&directory.join(needed)).is_some())
        })
}
