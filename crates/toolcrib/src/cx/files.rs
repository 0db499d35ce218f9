//! Looking: opening, listing, and what things are called in replies.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Directory, FileKind, FsError, ReadFile, ResolvedPath};
use toolcrib_policy::Effect;
use toolcrib_text::visible_name;

use super::Cx;
use crate::error::{Error, ErrorKind};
use crate::hidden_paths::Reason;
use crate::names::{LS, READ};
use crate::open_file::OpenFile;
use crate::suggest::MAX_NAMES;

/// So many names are shown of a directory that was taken for a file.
const SHOWN_NAMES: usize = 20;

impl Cx<'_> {
    /// Opens a file for reading, if the call said that it would read or write it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<OpenFile, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        self.open_at(&place)
    }

    /// Whether there is anything at the path.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.place(Effect::Read, path.as_ref())?.kind().is_some())
    }

    /// Opens a directory for listing, if the call said that it would read it.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Directory, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        if place.kind().is_none() {
            return Err(self.missing(&place));
        }
        if place.kind() != Some(FileKind::Directory) {
            let message = format!("{} is a file, not a directory", self.show_place(&place));
            return Err(Error::invalid(message).hint(format!("{READ} reads a file.")));
        }
        Directory::open(&place).map_err(|error| self.error(&place, &error))
    }

    /// A path as replies show it: real, and relative to the session's directory where it is in it.
    pub fn show(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        Ok(self.show_place(&self.place(Effect::Read, path.as_ref())?))
    }

    /// Why no tool shows what is at a real path, if none does.
    pub(crate) fn hidden(&self, path: &Path) -> Option<Reason> {
        self.runtime.closed(self.session, path)
    }

    /// The real path, by which the session knows what it has seen.
    pub(crate) fn real_path(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        Ok(self.place(Effect::Read, path.as_ref())?.path())
    }

    /// What was given, and the file that it leads to, if a link was followed or the name is really
    /// another that looks the same.
    pub fn followed_link(&self, path: impl AsRef<Path>) -> Result<Option<String>, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        let given = visible_name(path.as_ref().as_os_str().as_encoded_bytes());
        let shown = |name: &OsStr| visible_name(name.as_encoded_bytes());
        let name = path.as_ref().file_name().map(shown);
        let renamed = name.is_some() && name != place.relative().file_name().map(shown);
        let elsewhere = place.through_link() || renamed;
        Ok(elsewhere.then(|| format!("{given} → {}", self.show_place(&place))))
    }

    pub(super) fn open_at(&self, place: &ResolvedPath) -> Result<OpenFile, Error> {
        let shown = self.show_place(place);
        match ReadFile::open(place) {
            Ok(file) => Ok(OpenFile::new(file, shown, place.path())),
            Err(error) => {
                let error = self.error(place, &error);
                Err(match error.kind() {
                    ErrorKind::NotFound => self.missing(place),
                    ErrorKind::IsDirectory => error.hint(self.entries(place)),
                    _ => error,
                })
            }
        }
    }

    pub(super) fn error(&self, place: &ResolvedPath, error: &FsError) -> Error {
        Error::from_fs(&self.show_place(place), error)
    }

    /// An error about a file that it names itself.
    pub(super) fn fs_error(&self, error: &FsError) -> Error {
        Error::from_fs(&self.runtime.show_path(self.session.directory(), error.path()), error)
    }

    pub(super) fn show_place(&self, place: &ResolvedPath) -> String {
        self.runtime.show_path(self.session.directory(), &place.path())
    }

    /// The error for a place at which nothing is.
    pub(super) fn missing(&self, place: &ResolvedPath) -> Error {
        let target = self.show_place(place);
        let message = match place.names_on_the_way().next().filter(|_| place.through_link()) {
            Some(link) => {
                let link = place.root().path().join(link);
                let link = self.runtime.show_path(self.session.directory(), &link);
                format!("{link} leads through a symlink to {target}, which does not exist")
            }
            None => format!("{target} does not exist"),
        };
        Error::new(ErrorKind::NotFound, message).hint(self.near_names(place))
    }

    fn entries(&self, place: &ResolvedPath) -> String {
        let Ok((names, all)) = self.names(place) else {
            return "It cannot be listed.".to_owned();
        };
        let more = names.len().saturating_sub(SHOWN_NAMES);
        let shown = names[..names.len() - more].join(", ");
        match (names.is_empty(), more, all) {
            (true, ..) => "It is empty.".to_owned(),
            (_, 0, _) => format!("It has: {shown}."),
            (_, more, true) => format!("It has: {shown} and {more} more; {LS} lists them."),
            (_, more, false) => {
                format!("It has: {shown} and more than {more} more; {LS} lists them.")
            }
        }
    }

    /// The names in a directory, as shown, in order, and whether those are all.
    pub(super) fn names(&self, place: &ResolvedPath) -> Result<(Vec<String>, bool), FsError> {
        let mut names = Vec::new();
        Directory::open(place)?.each(|name, _| {
            names.push(visible_name(name.as_encoded_bytes()));
            names.len() <= MAX_NAMES
        })?;
        let all = names.len() <= MAX_NAMES;
        names.truncate(MAX_NAMES);
        names.sort();
        Ok((names, all))
    }
}
