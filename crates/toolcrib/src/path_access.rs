//! From what a call says it touches to the permission to touch just that.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{Directory, FileKind, FsErrorKind, ResolvedPath};
use toolcrib_policy::{Access, Effect, Outside};
use toolcrib_text::visible_name;

use crate::error::{Error, ErrorKind};
use crate::hidden_paths::Reason;
use crate::names::{BASH, WRITE};
use crate::runtime::Runtime;
use crate::session::Session;
use crate::suggest::{MAX_NAMES, lookalike};

/// The length of a command: more than any script that is written for one call has.
const MAX_COMMAND_BYTES: usize = 8 << 20;

/// What a call may touch: what it said, where that really is.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Vec<Granted>,
    /// Which of them name a path: a patch may name thousands, and asks for each again and again.
    by_path: HashMap<PathBuf, Vec<usize>>,
    /// What was found out by looking outside, and is told only after a question was answered.
    untold: Option<Error>,
}

/// One access, as the tool said it and where it leads.
#[derive(Debug)]
struct Granted {
    said: Access,
    place: Option<ResolvedPath>,
    /// The path that was meant, by its letters alone, if it is one.
    meant: Option<PathBuf>,
}

/// Why a path leads nowhere that may be touched.
#[derive(Debug)]
pub(crate) struct Unresolved {
    error: Error,
    /// It tells something about what lies outside the workspace.
    tells_of_outside: bool,
}

impl From<Error> for Unresolved {
    fn from(error: Error) -> Self {
        Unresolved { error, tells_of_outside: false }
    }
}

impl From<Unresolved> for Error {
    fn from(unresolved: Unresolved) -> Self {
        unresolved.error
    }
}

impl Grant {
    /// Finds the real place of everything that a call touches.
    pub(crate) fn resolve(
        runtime: &Runtime,
        session: &Session,
        accesses: Vec<Access>,
    ) -> Result<Grant, Error> {
        let asks = runtime.policy().on_outside() == Outside::Ask;
        let mut untold = None;
        let granted = accesses.into_iter().map(|said| {
            if let Access::Command(script) = &said {
                check_script(script)?;
            }
            let Some(path) = said.path() else {
                return Ok(Granted { said, place: None, meant: None });
            };
            let meant = Some(requested(runtime, session, path)?);
            let place = match resolve(runtime, session, said.effect(), path) {
                Err(unresolved) if asks && unresolved.tells_of_outside => {
                    untold.get_or_insert(unresolved.error);
                    None
                }
                place => Some(place?),
            };
            Ok(Granted { said, place, meant })
        });
        let granted: Vec<Granted> = granted.collect::<Result<_, Error>>()?;
        let mut by_path: HashMap<PathBuf, Vec<usize>> = HashMap::new();
        for (at, path) in
            granted.iter().enumerate().filter_map(|(at, g)| Some((at, g.said.path()?)))
        {
            by_path.entry(path.to_owned()).or_default().push(at);
        }
        Ok(Grant { granted, by_path, untold })
    }

    /// What went wrong outside the workspace, once it may be told.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.untold.clone().map_or(Ok(()), Err)
    }

    /// Whether the call writes outside the workspace, or may.
    pub(crate) fn writes_outside(&self) -> bool {
        let is_outside =
            |place: &Option<ResolvedPath>| place.as_ref().is_none_or(ResolvedPath::is_outside);
        self.granted
            .iter()
            .any(|granted| matches!(granted.said, Access::Write(_)) && is_outside(&granted.place))
    }

    /// The accesses on real paths, as policies and people see them.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let real = |granted: &Granted| match &granted.place {
            Some(place) => granted.said.at(place.path()),
            None => {
                granted.meant.iter().fold(granted.said.clone(), |said, path| said.at(path.clone()))
            }
        };
        self.granted.iter().map(real).collect()
    }

    /// What else a policy is asked about: the paths as they were requested, where they lead elsewhere. A
    /// link to a file is no way around a rule, and neither is a rule about the link's own name.
    pub(crate) fn requested(&self) -> Vec<Access> {
        let requested = |granted: &Granted| {
            let (place, path) = (granted.place.as_ref()?, granted.meant.clone()?);
            (path != place.path()).then(|| granted.said.at(path))
        };
        self.granted.iter().filter_map(requested).collect()
    }

    /// The place that `path` means, if the call said that it would touch it in this way. A write
    /// covers reading; a directory covers what is beneath it.
    pub(crate) fn place(
        &self,
        runtime: &Runtime,
        session: &Session,
        effect: Effect,
        path: &Path,
    ) -> Result<ResolvedPath, Error> {
        let covers = |granted: &&Granted| granted.said.effect() >= effect;
        let same = self.by_path.get(path).into_iter().flatten().map(|&at| &self.granted[at]);
        if let Some(Granted { place: Some(place), .. }) = same.into_iter().find(covers) {
            return Ok(place.clone());
        }
        let place = resolve(runtime, session, effect, path)?;
        let around = |granted: &Granted| match &granted.place {
            Some(around) => place.is_within(around),
            // A tool that finds out what it writes stays in the workspace, but for what the session changed.
            None => {
                let changed = || session.has_changed_outside(&place.path());
                granted.said == Access::WriteAny && (!place.is_outside() || changed())
            }
        };
        if self.granted.iter().filter(covers).any(around) {
            return Ok(place);
        }
        let shown = visible_name(path.as_os_str().as_encoded_bytes());
        let message = format!(
            "the tool wanted to {} {shown}, and had not said so before it began",
            effect.name()
        );
        Err(Error::new(ErrorKind::Denied, message)
            .hint("This is a fault of the tool, not of the call. Nothing was touched."))
    }
}

/// Refuses what cannot be handed to a shell, before anybody is asked about it.
fn check_script(script: &str) -> Result<(), Error> {
    if script.len() > MAX_COMMAND_BYTES {
        let message = format!(
            "the command has {} bytes; at most {MAX_COMMAND_BYTES} are taken",
            script.len()
        );
        return Err(Error::new(ErrorKind::Limit, message).hint(
            format!("Nothing was run. Put the data into a file with {WRITE}, and run a command that reads it."),
        ));
    }
    if script.contains('\0') {
        return Err(Error::invalid("the command has a zero byte, which no script can have")
            .hint("Nothing was run. Use printf '\\0' to write one."));
    }
    Ok(())
}

/// Finds where a path leads, if it may be touched in this way at all.
pub(crate) fn resolve(
    runtime: &Runtime,
    session: &Session,
    effect: Effect,
    path: &Path,
) -> Result<ResolvedPath, Unresolved> {
    let place = resolve_any(runtime, session, effect, path)?;
    if effect == Effect::Write {
        refuse_protected(runtime, &place, path, &place)?;
    }
    Ok(place)
}

/// The same for a place of [`entry`]. If a file or symlink has the name of a directory on the way, nothing is
/// beneath it, and the rules for git directories are asked about that name: a symlink could lead them elsewhere.
pub(crate) fn require_restorable(runtime: &Runtime, place: &ResolvedPath) -> Result<(), Error> {
    let path = place.path();
    let in_the_way = path.ancestors().skip(1).filter_map(|above| {
        let above = runtime.workspace().entry(above)?;
        above.kind().is_some_and(|kind| kind != FileKind::Directory).then_some(above)
    });
    let in_the_way = place.kind().is_none().then(|| in_the_way.last()).flatten();
    refuse_protected(runtime, place, &path, in_the_way.as_ref().unwrap_or(place))
}

/// Refuses a place whose name is protected. `path` is the place as the caller named it, `judged` the place that the
/// rules for git directories are asked about.
fn refuse_protected(
    runtime: &Runtime,
    place: &ResolvedPath,
    path: &Path,
    judged: &ResolvedPath,
) -> Result<(), Error> {
    if let Some(pattern) = place.names_on_the_way().find_map(|path| runtime.protection().find(path))
    {
        let message = format!(
            "{} is protected: writing it can make programs run code",
            visible_name(path.as_os_str().as_encoded_bytes())
        );
        return Err(Error::new(ErrorKind::Protected, message)
            .hint(format!(
                "Nothing was written. The operator can allow it with allow_protected = [{pattern:?}] in the configuration."
            ))
            .with("protected_by", pattern));
    }
    if runtime.path_rules().refuses_writing(judged) {
        let shown = visible_name(path.as_os_str().as_encoded_bytes());
        let message =
            format!("{shown} is protected: git runs it, or takes its configuration from it");
        let pattern = visible_name(place.relative().as_os_str().as_encoded_bytes());
        return Err(Error::new(ErrorKind::Protected, message).hint(format!(
            "Nothing was written. The operator can allow it with allow_protected = [{pattern:?}] in the configuration."
        )));
    }
    Ok(())
}

/// The file or symlink at a real path, not followed, also if its name is protected. Only for bringing back what
/// was there before a change.
pub(crate) fn entry(
    runtime: &Runtime,
    session: &Session,
    path: &Path,
) -> Result<ResolvedPath, Error> {
    let shown = visible_name(path.as_os_str().as_encoded_bytes());
    if let Some(reason) = runtime.closed(session, path) {
        return Err(hidden(&shown, &reason));
    }
    let known = runtime.workspace().with(session.opened_roots().iter().cloned());
    let outside = || {
        let place = resolve_any(runtime, session, Effect::Write, path).ok()?;
        (session.has_changed_outside(path) && !place.through_link()).then_some(place)
    };
    known.entry(path).or_else(outside).ok_or_else(|| Error::outside(&shown))
}

/// The same as [`resolve`], also for names that are protected.
pub(crate) fn resolve_any(
    runtime: &Runtime,
    session: &Session,
    effect: Effect,
    given: &Path,
) -> Result<ResolvedPath, Unresolved> {
    let path = &*runtime.expand_home(given)?;
    let shown = |path: &Path| visible_name(path.as_os_str().as_encoded_bytes());
    let is_here = path == Path::new(".") || path.as_os_str().is_empty();
    if runtime.absolute_paths() && path.is_relative() && !is_here {
        let absolute = session.directory().path().join(path);
        return Err(Error::invalid(format!("the path {} is not absolute", shown(path)))
            .hint(format!("Use {} if that is what you mean.", shown(&absolute)))
            .into());
    }
    let requested = requested(runtime, session, given)?;
    // As the caller spelled it: for what lies outside, nothing more may be told.
    let place = runtime.find(session, session.directory(), path).map_err(|error| {
        let told = match error.kind() {
            FsErrorKind::Closed => {
                let mut names = [error.path(), &requested].into_iter();
                let reason = names.find_map(|path| runtime.closed(session, path));
                let unknown = || Error::from_fs(&shown(path), &error);
                reason.map_or_else(unknown, |reason| hidden(&shown(path), &reason))
            }
            _ => Error::from_fs(&shown(error.path()), &error),
        };
        Unresolved { error: told, tells_of_outside: error.tells_of_outside() }
    })?;
    let place = match place.kind() {
        None => shown_as(runtime, session, path).unwrap_or(place),
        Some(_) => place,
    };
    let place = match effect {
        Effect::Read => lookalike_of(runtime, session, &place).unwrap_or(place),
        // What is to be written gets the name that was given. Whether it may be written outside is asked.
        _ if place.is_outside() => {
            let path = shown(path);
            place.for_writing().map_err(|error| Error::from_fs(&path, &error))?
        }
        _ => place,
    };
    // By the names on the way too: one of them may have become a link since the runtime was built.
    let mut names: Vec<PathBuf> = place.paths_on_the_way().collect();
    names.push(requested);
    if let Some(reason) = names.iter().find_map(|path| runtime.closed(session, path)) {
        return Err(hidden(&shown(path), &reason).into());
    }
    Ok(place)
}

/// A path as it was requested, by its letters alone.
fn requested(runtime: &Runtime, session: &Session, path: &Path) -> Result<PathBuf, Error> {
    Ok(without_dots(&session.directory().path().join(runtime.expand_home(path)?)))
}

/// The refusal of a hidden place.
fn hidden(shown: &str, reason: &Reason) -> Error {
    match reason {
        Reason::Own => {
            let message = format!("{shown} is where this program keeps its own things");
            Error::new(ErrorKind::Protected, message)
                .hint("No tool reads or writes there, and no setting lets one.")
        }
        Reason::Secret(place) => {
            let place = visible_name(place.as_os_str().as_encoded_bytes());
            let message =
                format!("{shown} is hidden: the user's keys, tokens or history may be there");
            Error::new(ErrorKind::Protected, message)
                .hint(format!(
                    "No tool reads or writes it, and no command sees it. The operator can allow it with allow_hidden = [{place:?}] in the configuration."
                ))
                .with("hidden_by", place)
        }
        Reason::System(directory) => {
            let directory = directory.display();
            Error::new(ErrorKind::Protected, format!("{shown} is not open to file tools")).hint(
                format!(
                    "No file tool looks into {directory}. {BASH} may show what you need of it."
                ),
            )
        }
    }
}

/// Entries of a directory that are looked at for one that is shown as a given name.
const MAX_SHOWN_NAMES: usize = 100_000;

/// The place that is shown as this path, where a name on the way is shown with escapes: it has bytes that are not UTF-8, a
/// line end or another character that is not shown as it is.
fn shown_as(runtime: &Runtime, session: &Session, path: &Path) -> Option<ResolvedPath> {
    if !path.as_os_str().as_encoded_bytes().contains(&b'\\') {
        return None;
    }
    let exists = |path: &Path| {
        let place = runtime.find(session, session.directory(), path).ok()?;
        place.kind().is_some().then_some(place)
    };
    let (mut real, mut place) = (PathBuf::new(), None);
    for part in path.components() {
        let literal = real.join(part);
        if let Some(found) = exists(&literal) {
            (real, place) = (literal, Some(found));
            continue;
        }
        let Component::Normal(name) = part else { return None };
        let directory = match real.as_os_str().is_empty() {
            true => session.directory().clone(),
            false => place?,
        };
        real.push(entry_shown_as(&directory, name)?);
        place = Some(exists(&real)?);
    }
    place
}

/// The one entry of a directory that is shown as this name and is not called so.
fn entry_shown_as(directory: &ResolvedPath, name: &OsStr) -> Option<OsString> {
    let wanted = name.to_str().filter(|name| name.contains('\\'))?;
    let (mut found, mut seen) = (Vec::new(), 0);
    let listed = Directory::open(directory).and_then(|directory| {
        directory.each(|name, _| {
            seen += 1;
            if visible_name(name.as_encoded_bytes()) == wanted {
                found.push(name.to_owned());
            }
            seen < MAX_SHOWN_NAMES && found.len() < 2
        })
    });
    listed.ok()?;
    found.pop().filter(|_| found.is_empty())
}

/// The one file beside a missing one whose name looks the same, if there is one.
fn lookalike_of(
    runtime: &Runtime,
    session: &Session,
    place: &ResolvedPath,
) -> Option<ResolvedPath> {
    if place.is_outside() && runtime.policy().on_outside() != Outside::Read {
        return None;
    }
    let name = place.relative().file_name().filter(|_| place.kind().is_none())?.to_str()?;
    let parent = place.parent().filter(|parent| parent.kind().is_some())?;
    let mut names = Vec::new();
    let listed = Directory::open(&parent).and_then(|directory| {
        directory.each(|name, _| {
            names.extend(name.to_str().map(str::to_owned));
            names.len() < MAX_NAMES
        })
    });
    listed.ok()?;
    let found = lookalike(name, names.iter().map(String::as_str))?;
    runtime.find(session, &parent, Path::new(found)).ok()
}

/// A path without `.` and `..`, by its letters alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}
