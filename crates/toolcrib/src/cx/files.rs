//! The methods of [`Cx`] that read files and directories, and show paths.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Directory, FileKind, FsError, ReadFile, ResolvedPath, RootKind};
use toolcrib_policy::Effect;
use toolcrib_text::{Encoding, visible_name};

use super::Cx;
use crate::cx::OpenFile;
use crate::error::{Error, ErrorKind};
use crate::hidden_paths::Reason;
use crate::message_names::{LS, READ};
use crate::suggest::entry_names;

/// Entries shown if a directory was given in place of a file.
const MAX_SHOWN_ENTRIES: usize = 20;

impl Cx<'_> {
    /// The directories whose changes this session sees.
    pub(crate) fn visible_roots(&self) -> Vec<PathBuf> {
        let opened = self.session.opened_roots();
        let roots = self.services.paths.workspace.roots().chain(opened.iter().map(|root| &**root));
        roots.map(|root| root.location().to_owned()).collect()
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Fails if the call has not declared the path for reading or writing, if the file does not exist, or if it
    /// is not a regular file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<OpenFile, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
        self.open_at(&place)
    }

    /// Returns whether a file, directory or other entry exists at the path. Fails if the call has not declared
    /// the path.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.granted_path(Effect::Read, path.as_ref())?.kind().is_some())
    }

    /// The encoding of the content of a file, given by its resolved path. A guess stays the same for the whole
    /// session.
    pub(crate) fn encoding(&self, path: &Path, content: &[u8]) -> Encoding {
        let encoding = Encoding::of_known(content, self.session.encoding(path));
        self.session.remember_encoding(path, encoding);
        encoding
    }

    /// Opens a directory for listing.
    ///
    /// # Errors
    ///
    /// Fails if the call has not declared the path for reading, if it does not exist, or if it is not a
    /// directory.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Directory, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
        if place.kind().is_none() {
            return Err(self.missing_error(&place));
        }
        if place.kind() != Some(FileKind::Directory) {
            let message = format!("{} is a file, not a directory", self.show_place(&place));
            return Err(
                Error::new(ErrorKind::NotADirectory, message).hint(format!("{READ} reads a file."))
            );
        }
        Directory::open(&place).map_err(|error| self.error(&place, &error))
    }

    /// Returns a path as replies show it: resolved, and relative to the session's directory if it is below it.
    /// Fails if the call has not declared the path.
    pub fn show(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        Ok(self.show_place(&self.granted_path(Effect::Read, path.as_ref())?))
    }

    /// Why a resolved path is hidden. `None` if it is not.
    pub(crate) fn hidden_reason(&self, path: &Path) -> Option<Reason> {
        self.services.paths.closed_reason(self.session, path)
    }

    /// The resolved path, by which the session records the files that it has read.
    pub(crate) fn real_path(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        Ok(self.granted_path(Effect::Read, path.as_ref())?.path())
    }

    /// The note about a file in the private temporary directory of the session. `None` for other files. Fails if the
    /// call has not declared the path.
    pub fn session_file_note(&self, path: impl AsRef<Path>) -> Result<Option<String>, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
        let root = place.root();
        Ok((root.kind() == RootKind::Session).then(|| {
            format!(
                "{} is private to this session: the user and other programs do not see this file.",
                root.path().display()
            )
        }))
    }

    /// The note about the private temporary directory of the session. `None` for other paths, and for directories in it.
    /// Fails if the call has not declared the path.
    pub(crate) fn session_directory_note(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Option<String>, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
        let root = place.root();
        let is_it = root.kind() == RootKind::Session && place.relative().as_os_str().is_empty();
        Ok(is_it.then(|| {
            let shown = root.path();
            format!(
                "{} is private to this session; files of the user's {0} are not here",
                shown.display()
            )
        }))
    }

    /// Describes where a path leads (`given → real`) if it leads through a symlink, or if the file has another
    /// name that looks the same. `None` otherwise. Fails if the call has not declared the path.
    pub fn followed_link(&self, path: impl AsRef<Path>) -> Result<Option<String>, Error> {
        let place = self.granted_path(Effect::Read, path.as_ref())?;
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
                    ErrorKind::NotFound => self.missing_error(place),
                    ErrorKind::IsDirectory => error.hint(self.entries_hint(place)),
                    _ => error,
                })
            }
        }
    }

    pub(super) fn error(&self, place: &ResolvedPath, error: &FsError) -> Error {
        Error::from_fs(&self.show_place(place), error)
    }

    /// Converts an error, with the path that it contains.
    pub(super) fn fs_error(&self, error: &FsError) -> Error {
        Error::from_fs(&self.services.paths.show(self.session.directory(), error.path()), error)
    }

    pub(super) fn show_place(&self, place: &ResolvedPath) -> String {
        self.services.paths.show(self.session.directory(), &place.path())
    }

    /// The error for a path that does not exist.
    pub(super) fn missing_error(&self, place: &ResolvedPath) -> Error {
        let target = self.show_place(place);
        let message = match place.path_aliases().next().filter(|_| place.through_link()) {
            Some(link) => {
                let link = self.services.paths.show(self.session.directory(), &link);
                format!("{link} leads through a symlink to {target}, which does not exist")
            }
            None => format!("{target} does not exist"),
        };
        Error::new(ErrorKind::NotFound, message).hint(self.suggestions_hint(place))
    }

    fn entries_hint(&self, place: &ResolvedPath) -> String {
        let Ok((names, all)) = entry_names(place) else {
            return "It cannot be listed.".to_owned();
        };
        let shown = |name: &OsString| visible_name(name.as_encoded_bytes());
        let names: Vec<String> = names.iter().map(shown).collect();
        let more = names.len().saturating_sub(MAX_SHOWN_ENTRIES);
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
}
