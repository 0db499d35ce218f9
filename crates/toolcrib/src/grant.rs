//! From what a call says it touches to the permission to touch just that.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{Directory, FileKind, Place};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::visible_name;

use crate::error::{Error, ErrorKind};
use crate::hidden::Reason;
use crate::near::{MAX_NAMES, lookalike};
use crate::runtime::Runtime;
use crate::session::Session;

/// What a call may touch: what it said, where that really is.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Vec<Granted>,
    /// Which of them name a path: a patch may name thousands, and asks for each again and again.
    by_path: HashMap<PathBuf, Vec<usize>>,
}

/// One access, as the tool said it and where it leads.
#[derive(Debug)]
struct Granted {
    said: Access,
    place: Option<Place>,
}

impl Grant {
    /// Finds the real place of everything that a call touches.
    pub(crate) fn resolve(
        runtime: &Runtime,
        session: &Session,
        accesses: Vec<Access>,
    ) -> Result<Grant, Error> {
        let granted = accesses.into_iter().map(|said| {
            let place = said.path().map(|path| resolve(runtime, session, said.effect(), path));
            let place = place.transpose()?;
            Ok(Granted { said, place })
        });
        let granted: Vec<Granted> = granted.collect::<Result<_, Error>>()?;
        let mut by_path: HashMap<PathBuf, Vec<usize>> = HashMap::new();
        for (at, path) in
            granted.iter().enumerate().filter_map(|(at, g)| Some((at, g.said.path()?)))
        {
            by_path.entry(path.to_owned()).or_default().push(at);
        }
        Ok(Grant { granted, by_path })
    }

    /// The accesses on real paths, as policies and people see them.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let real = |granted: &Granted| match &granted.place {
            Some(place) => granted.said.at(place.path()),
            None => granted.said.clone(),
        };
        self.granted.iter().map(real).collect()
    }

    /// What else a policy is asked about: the paths as they were requested, where they lead elsewhere. A
    /// link to a file is no way around a rule, and neither is a rule about the link's own name.
    pub(crate) fn requested(&self, session: &Session) -> Vec<Access> {
        let requested = |granted: &Granted| {
            let place = granted.place.as_ref()?;
            let path = without_dots(&session.directory().path().join(granted.said.path()?));
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
    ) -> Result<Place, Error> {
        let covers = |granted: &&Granted| granted.said.effect() >= effect;
        let same = self.by_path.get(path).into_iter().flatten().map(|&at| &self.granted[at]);
        if let Some(Granted { place: Some(place), .. }) = same.into_iter().find(covers) {
            return Ok(place.clone());
        }
        let place = resolve(runtime, session, effect, path)?;
        let around = |granted: &Granted| match &granted.place {
            Some(around) => place.is_within(around),
            None => granted.said == Access::WriteAny,
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

/// Finds where a path leads, if it may be touched in this way at all.
pub(crate) fn resolve(
    runtime: &Runtime,
    session: &Session,
    effect: Effect,
    path: &Path,
) -> Result<Place, Error> {
    let place = resolve_any(runtime, session, effect, path)?;
    if effect == Effect::Write {
        require_writable(runtime, &place, path)?;
    }
    Ok(place)
}

/// The same for a place of [`entry`]. If a file or symlink has the name of a directory on the way, nothing is
/// beneath it, and the rules for git directories are asked about that name: a symlink could lead them elsewhere.
pub(crate) fn require_restorable(runtime: &Runtime, place: &Place) -> Result<(), Error> {
    let path = place.path();
    let in_the_way = path.ancestors().skip(1).filter_map(|above| {
        let kind = runtime.workspace().entry(above)?.kind()?;
        (kind != FileKind::Directory).then(|| above.to_owned())
    });
    let in_the_way = place.kind().is_none().then(|| in_the_way.last()).flatten();
    refuse_protected(runtime, place, &path, &in_the_way.unwrap_or_else(|| path.clone()))
}

/// Refuses a place whose name is protected. `path` is the place as the caller named it.
fn require_writable(runtime: &Runtime, place: &Place, path: &Path) -> Result<(), Error> {
    refuse_protected(runtime, place, path, &place.path())
}

/// `real` is the path that the rules for git directories are asked about.
fn refuse_protected(
    runtime: &Runtime,
    place: &Place,
    path: &Path,
    real: &Path,
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
    if runtime.path_rules().refuses_writing(real) {
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
pub(crate) fn entry(runtime: &Runtime, path: &Path) -> Result<Place, Error> {
    let shown = visible_name(path.as_os_str().as_encoded_bytes());
    if let Some(reason) = runtime.hidden().reason(path) {
        return Err(hidden(&shown, &reason));
    }
    runtime.workspace().entry(path).ok_or_else(|| {
        Error::new(ErrorKind::OutsideWorkspace, format!("{shown} is outside the workspace"))
    })
}

/// The same as [`resolve`], also for names that are protected.
pub(crate) fn resolve_any(
    runtime: &Runtime,
    session: &Session,
    effect: Effect,
    path: &Path,
) -> Result<Place, Error> {
    let shown = |path: &Path| visible_name(path.as_os_str().as_encoded_bytes());
    let is_here = path == Path::new(".") || path.as_os_str().is_empty();
    if runtime.absolute_paths() && path.is_relative() && !is_here {
        let absolute = session.directory().path().join(path);
        return Err(Error::invalid(format!("the path {} is not absolute", shown(path)))
            .hint(format!("Use {} if that is what you mean.", shown(&absolute))));
    }
    // As the caller spelled it: for what lies outside, nothing more may be told.
    let place = runtime
        .workspace()
        .resolve(session.directory(), path)
        .map_err(|error| Error::from_fs(&shown(error.path()), &error))?;
    let place = match effect {
        Effect::Read => lookalike_of(runtime, &place).unwrap_or(place),
        // What is to be written gets the name that was given.
        _ => place,
    };
    // By the name that was given too: it may have become a link since the runtime was built.
    let requested = without_dots(&session.directory().path().join(path));
    let reason = [place.path(), requested].iter().find_map(|path| runtime.hidden().reason(path));
    if let Some(reason) = reason {
        return Err(hidden(&shown(path), &reason));
    }
    Ok(place)
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
    }
}

/// The one file beside a missing one whose name looks the same, if there is one.
fn lookalike_of(runtime: &Runtime, place: &Place) -> Option<Place> {
    let name = place.relative().file_name().filter(|_| place.kind().is_none())?.to_str()?;
    let parent = runtime.workspace().parent(place).filter(|parent| parent.kind().is_some())?;
    let mut names = Vec::new();
    let listed = Directory::open(&parent).and_then(|directory| {
        directory.each(|name, _| {
            names.extend(name.to_str().map(str::to_owned));
            names.len() < MAX_NAMES
        })
    });
    listed.ok()?;
    let found = lookalike(name, names.iter().map(String::as_str))?;
    runtime.workspace().resolve(&parent, Path::new(found)).ok()
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
