//! Resolves the accesses that a call declares, and restricts the tool to them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{Directory, FileKind, FsErrorKind, ResolvedPath};
use toolcrib_policy::{Access, Effect, Outside};
use toolcrib_text::visible_name;

use crate::error::{Error, ErrorKind};
use crate::hidden_paths::Reason;
use crate::message_names::{BASH, WRITE};
use crate::reachable_paths::Paths;
use crate::session::Session;
use crate::suggest::{entry_names, lookalike};

/// The error if a root was removed while the session runs.
pub(crate) fn removed_root_error(root: &Path) -> Error {
    let shown = visible_name(root.as_os_str().as_encoded_bytes());
    let message = format!("{shown} was removed while this session ran");
    Error::new(ErrorKind::Stale, message).hint(
        "Nothing was done. A directory that is created again at this path is another one; the operator must start the server again.",
    )
}

/// More than any script for one call needs.
const MAX_COMMAND_BYTES: usize = 8 << 20;

/// The accesses of a call, with resolved paths.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Vec<GrantedAccess>,
    /// Index by path: a patch may name thousands of files and look each up repeatedly.
    by_path: HashMap<PathBuf, Vec<usize>>,
    /// An error that reveals something about paths outside the workspace. Returned only after approval.
    withheld: Option<Error>,
}

/// One access, as declared and as resolved.
#[derive(Debug)]
struct GrantedAccess {
    declared: Access,
    resolved: Option<ResolvedPath>,
    /// The declared path, made absolute without resolving symlinks.
    requested: Option<PathBuf>,
}

/// Why a path cannot be accessed.
#[derive(Debug)]
pub(crate) struct Unresolved {
    error: Error,
    /// The error reveals something about paths outside the workspace.
    reveals_outside: bool,
}

impl From<Error> for Unresolved {
    fn from(error: Error) -> Self {
        Unresolved { error, reveals_outside: false }
    }
}

impl From<Unresolved> for Error {
    fn from(unresolved: Unresolved) -> Self {
        unresolved.error
    }
}

impl Grant {
    /// Resolves the paths of all accesses.
    pub(crate) fn resolve(
        paths: &Paths,
        session: &Session,
        accesses: Vec<Access>,
    ) -> Result<Grant, Error> {
        let asks = paths.outside == Outside::Ask;
        let mut withheld = None;
        let granted = accesses.into_iter().map(|declared| {
            if let Access::Command(script) = &declared {
                check_script(script)?;
            }
            let Some(path) = declared.path() else {
                return Ok(GrantedAccess { declared, resolved: None, requested: None });
            };
            let requested_path = Some(requested(paths, session, path)?);
            let resolved = match resolve(paths, session, declared.effect(), path) {
                Err(unresolved) if asks && unresolved.reveals_outside => {
                    withheld.get_or_insert(unresolved.error);
                    None
                }
                resolved => Some(resolved?),
            };
            // Otherwise a search finds nothing in it, and a file error says nothing about the cause.
            if let Some(removed) = resolved.as_ref().and_then(ResolvedPath::removed_root) {
                return Err(removed_root_error(removed));
            }
            Ok(GrantedAccess { declared, resolved, requested: requested_path })
        });
        let granted: Vec<GrantedAccess> = granted.collect::<Result<_, Error>>()?;
        let mut by_path: HashMap<PathBuf, Vec<usize>> = HashMap::new();
        for (at, path) in
            granted.iter().enumerate().filter_map(|(at, g)| Some((at, g.declared.path()?)))
        {
            by_path.entry(path.to_owned()).or_default().push(at);
        }
        Ok(Grant { granted, by_path, withheld })
    }

    /// Returns the withheld error, once it may be revealed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.withheld.clone().map_or(Ok(()), Err)
    }

    /// The accesses with resolved paths, for the policy and the approver.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let real = |granted: &GrantedAccess| match &granted.resolved {
            Some(place) => granted.declared.with_path(place.path()),
            None => granted
                .requested
                .iter()
                .fold(granted.declared.clone(), |declared, path| declared.with_path(path.clone())),
        };
        self.granted.iter().map(real).collect()
    }

    /// The declared paths, where they differ from the resolved ones. The policy decides on both: a symlink does
    /// not bypass a rule on its target, nor on its own name.
    pub(crate) fn requested(&self) -> Vec<Access> {
        let requested = |granted: &GrantedAccess| {
            let (place, path) = (granted.resolved.as_ref()?, granted.requested.clone()?);
            (path != place.path()).then(|| granted.declared.with_path(path))
        };
        self.granted.iter().filter_map(requested).collect()
    }

    /// Resolves `path` if the call has declared it with this effect. Write access includes read access; a
    /// directory includes the paths below it.
    pub(crate) fn place(
        &self,
        paths: &Paths,
        session: &Session,
        effect: Effect,
        path: &Path,
    ) -> Result<ResolvedPath, Error> {
        let covers = |granted: &&GrantedAccess| granted.declared.effect() >= effect;
        let same = self.by_path.get(path).into_iter().flatten().map(|&at| &self.granted[at]);
        if let Some(GrantedAccess { resolved: Some(place), .. }) = same.into_iter().find(covers) {
            return Ok(place.clone());
        }
        let place = resolve(paths, session, effect, path)?;
        let around = |granted: &GrantedAccess| match &granted.resolved {
            Some(around) => place.is_within(around),
            // A tool with `WriteAny` is limited to the workspace and to files that the session has changed
            // outside.
            None => {
                let changed = || session.has_changed_outside(&place.path());
                granted.declared == Access::WriteAny && (!place.is_outside() || changed())
            }
        };
        if self.granted.iter().filter(covers).any(around) {
            return Ok(place);
        }
        let shown = visible_name(path.as_os_str().as_encoded_bytes());
        let message = format!("the tool tried to {} {shown} without declaring it", effect.name());
        Err(Error::new(ErrorKind::Denied, message)
            .hint("This is a bug in the tool, not in the call. Nothing was accessed."))
    }
}

/// Rejects a script that no shell can run, before the approver is asked.
fn check_script(script: &str) -> Result<(), Error> {
    if script.len() > MAX_COMMAND_BYTES {
        let message =
            format!("the command has {} bytes; the limit is {MAX_COMMAND_BYTES}", script.len());
        return Err(Error::new(ErrorKind::Limit, message).hint(
            format!("Nothing was run. Put the data into a file with {WRITE}, and run a command that reads it."),
        ));
    }
    if script.contains('\0') {
        return Err(Error::invalid("the command contains a NUL byte")
            .hint("Nothing was run. Use printf '\\0' to write one."));
    }
    Ok(())
}

/// Resolves a path for this effect. Fails if it is hidden, protected (for writing) or outside.
pub(crate) fn resolve(
    paths: &Paths,
    session: &Session,
    effect: Effect,
    path: &Path,
) -> Result<ResolvedPath, Unresolved> {
    let place = resolve_any(paths, session, effect, path)?;
    if effect == Effect::Write {
        reject_protected(paths, &place, path, &place)?;
    }
    Ok(place)
}

/// Checks that an undo may write a path of [`entry`]. If a file or symlink stands at a parent directory's path,
/// the path itself does not exist, and the rules for git directories check that parent: a symlink could
/// redirect them.
pub(crate) fn require_restorable(paths: &Paths, place: &ResolvedPath) -> Result<(), Error> {
    let path = place.path();
    let in_the_way = path.ancestors().skip(1).filter_map(|above| {
        let above = paths.workspace.entry(above)?;
        above.kind().is_some_and(|kind| kind != FileKind::Directory).then_some(above)
    });
    let in_the_way = place.kind().is_none().then(|| in_the_way.last()).flatten();
    reject_protected(paths, place, &path, in_the_way.as_ref().unwrap_or(place))
}

/// The sentence about the command that adds a path to a setting.
fn allowed_by(paths: &Paths, setting: &str, path: &str) -> String {
    let command = paths.settings.command(&["add", setting, path]);
    format!("The operator can allow it with `{command}`.")
}

/// Rejects a path with a protected name. `path` is the path in the call, `judged` the path for the rules for
/// git directories.
fn reject_protected(
    paths: &Paths,
    place: &ResolvedPath,
    path: &Path,
    judged: &ResolvedPath,
) -> Result<(), Error> {
    let protection = &paths.protection;
    let protected = place.relative_aliases().find_map(|path| {
        let exception = protection.narrowest_exception(path)?;
        Some((protection.find(path)?, exception, protection.reason(path)))
    });
    if let Some((pattern, exception, reason)) = protected {
        let shown = visible_name(path.as_os_str().as_encoded_bytes());
        let message = format!("{shown} is protected: {reason}");
        return Err(Error::new(ErrorKind::Protected, message)
            .hint(format!(
                "Nothing was written. {}",
                allowed_by(paths, "allow_protected", &exception)
            ))
            .with("protected_by", pattern));
    }
    if paths.path_rules.refuses_writing(judged) {
        let shown = visible_name(path.as_os_str().as_encoded_bytes());
        let message =
            format!("{shown} is protected: git runs it or reads its configuration from it");
        let pattern = visible_name(place.relative().as_os_str().as_encoded_bytes());
        return Err(Error::new(ErrorKind::Protected, message).hint(format!(
            "Nothing was written. {}",
            allowed_by(paths, "allow_protected", &pattern)
        )));
    }
    Ok(())
}

/// The file or symlink at a resolved path, not followed. Protected names are allowed. Only for restoring
/// previous content.
pub(crate) fn entry(paths: &Paths, session: &Session, path: &Path) -> Result<ResolvedPath, Error> {
    let shown = visible_name(path.as_os_str().as_encoded_bytes());
    if let Some(reason) = paths.closed_reason(session, path) {
        return Err(hidden_error(paths, &shown, &reason));
    }
    let known = paths.workspace.with(session.opened_roots().iter().cloned());
    let outside = || {
        let place = resolve_any(paths, session, Effect::Write, path).ok()?;
        (session.has_changed_outside(path) && !place.through_link()).then_some(place)
    };
    known.entry(path).or_else(outside).ok_or_else(|| Error::outside(&shown))
}

/// Like [`resolve`], but allows protected names.
pub(crate) fn resolve_any(
    paths: &Paths,
    session: &Session,
    effect: Effect,
    given: &Path,
) -> Result<ResolvedPath, Unresolved> {
    let path = &*paths.expand_home(given)?;
    let shown = |path: &Path| visible_name(path.as_os_str().as_encoded_bytes());
    let is_here = path == Path::new(".") || path.as_os_str().is_empty();
    if paths.only_absolute && path.is_relative() && !is_here {
        let absolute = session.directory().path().join(path);
        return Err(Error::invalid(format!("the path {} is not absolute", shown(path)))
            .hint(format!("Did you mean {}?", shown(&absolute)))
            .into());
    }
    let requested = requested(paths, session, given)?;
    // With the caller's spelling: an error about a path outside may not reveal more.
    let place = paths.resolve(session, session.directory(), path).map_err(|error| {
        let shown_error = match error.kind() {
            FsErrorKind::Forbidden => {
                let mut names = [error.path(), &requested].into_iter();
                let reason = names.find_map(|path| paths.closed_reason(session, path));
                let unknown = || Error::from_fs(&shown(path), &error);
                reason.map_or_else(unknown, |reason| hidden_error(paths, &shown(path), &reason))
            }
            _ => Error::from_fs(&shown(error.path()), &error),
        };
        Unresolved { error: shown_error, reveals_outside: error.reveals_outside() }
    })?;
    let place = match place.kind() {
        None => file_shown_as(paths, session, path).unwrap_or(place),
        Some(_) => place,
    };
    let place = match effect {
        Effect::Read => lookalike_file(paths, session, &place).unwrap_or(place),
        // A written file gets the given name. The policy decides whether it may be written outside.
        _ if place.is_outside() => {
            let path = shown(path);
            place.for_writing().map_err(|error| Error::from_fs(&path, &error))?
        }
        _ => place,
    };
    // Every component too: one of them may have become a symlink since the paths was built.
    let mut names: Vec<PathBuf> = place.path_aliases().collect();
    names.push(requested);
    if let Some(reason) = names.iter().find_map(|path| paths.closed_reason(session, path)) {
        return Err(hidden_error(paths, &shown(path), &reason).into());
    }
    Ok(place)
}

/// A path made absolute without resolving symlinks.
fn requested(paths: &Paths, session: &Session, path: &Path) -> Result<PathBuf, Error> {
    Ok(normalized(&session.directory().path().join(paths.expand_home(path)?)))
}

/// The error for a hidden path.
fn hidden_error(paths: &Paths, shown: &str, reason: &Reason) -> Error {
    match reason {
        Reason::Own => {
            let message = format!("{shown} belongs to Toolcrib's own state");
            Error::new(ErrorKind::Protected, message)
                .hint("No tool can read or write it, and no setting allows it.")
        }
        Reason::Secret(place) => {
            let place = visible_name(place.as_os_str().as_encoded_bytes());
            let message =
                format!("{shown} is hidden: it may contain passwords, keys, tokens or history");
            Error::new(ErrorKind::Protected, message)
                .hint(format!(
                    "File tools and sandboxed commands cannot read or write it. {}",
                    allowed_by(paths, "allow_hidden", &place)
                ))
                .with("hidden_by", place)
        }
        Reason::OtherWorkspace => {
            Error::new(ErrorKind::Protected, format!("{shown} is not in this workspace"))
                .hint("Other workspaces are hidden, and no setting allows it.")
        }
        Reason::System(directory) => {
            let directory = directory.display();
            Error::new(ErrorKind::Protected, format!("{shown} is not open to file tools"))
                .hint(format!("No file tool reads {directory}. Use {BASH} instead."))
        }
    }
}

/// Limit of directory entries compared with an escaped name.
const MAX_SHOWN_NAMES: usize = 100_000;

/// The file that replies show as this path, if a component is shown with escapes: it contains invalid UTF-8, a
/// newline or another character that is not shown directly.
fn file_shown_as(paths: &Paths, session: &Session, path: &Path) -> Option<ResolvedPath> {
    if !path.as_os_str().as_encoded_bytes().contains(&b'\\') {
        return None;
    }
    let exists = |path: &Path| {
        let place = paths.resolve(session, session.directory(), path).ok()?;
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
        let directory =
            if real.as_os_str().is_empty() { session.directory().clone() } else { place? };
        real.push(entry_shown_as(&directory, name)?);
        place = Some(exists(&real)?);
    }
    place
}

/// The unique directory entry that is shown as this name and has another real name.
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

/// The unique file in the same directory whose name looks the same as that of a missing file.
fn lookalike_file(paths: &Paths, session: &Session, place: &ResolvedPath) -> Option<ResolvedPath> {
    if place.is_outside() && paths.outside != Outside::Read {
        return None;
    }
    let name = place.relative().file_name().filter(|_| place.kind().is_none())?.to_str()?;
    let parent = place.parent().filter(|parent| parent.kind().is_some())?;
    let (names, _) = entry_names(&parent).ok()?;
    let found = lookalike(name, names.iter().filter_map(|name| name.to_str()))?;
    paths.resolve(session, &parent, Path::new(found)).ok()
}

/// Removes `.` and `..` without resolving symlinks.
fn normalized(path: &Path) -> PathBuf {
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
