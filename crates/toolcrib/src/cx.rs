//! All that a tool can reach: the files it said it would touch, and nothing else.

use std::path::Path;

use toolcrib_fs::{Change, Committed, Place, ReadFile};
use toolcrib_policy::Effect;

use crate::call::Options;
use crate::cancel::Progress;
use crate::error::{Error, ErrorKind};
use crate::file::OpenFile;
use crate::grant::Grant;
use crate::limits::Limits;
use crate::near::near;
use crate::runtime::Runtime;
use crate::session::Session;

/// So many names are looked at to find one that is near; a larger directory is not worth the time.
const MAX_NAMES: usize = 10_000;

/// The hands of a call. A tool has no other way to the machine.
pub struct Cx<'a> {
    runtime: &'a Runtime,
    session: &'a Session,
    grant: &'a Grant,
    options: Options<'a>,
}

impl<'a> Cx<'a> {
    pub(crate) fn begin(
        runtime: &'a Runtime,
        session: &'a Session,
        grant: &'a Grant,
        options: Options<'a>,
    ) -> Self {
        Cx { runtime, session, grant, options }
    }

    /// Whether nothing is to be changed. The methods that change see to it themselves; a tool needs
    /// this only for its words.
    pub fn dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// The bounds of the call.
    pub fn limits(&self) -> &Limits {
        self.runtime.limits()
    }

    /// Fails if the caller does not want the answer any more. For loops and waits.
    pub fn check_cancelled(&self) -> Result<(), Error> {
        self.options.cancel.check()
    }

    /// Tells the caller how far the call is.
    pub fn progress(&self, progress: Progress<'_>) {
        (self.options.progress)(progress);
    }

    /// What [`crate::RuntimeBuilder::state`] was given of this type.
    pub fn state<T: 'static>(&self) -> Result<&'a T, Error> {
        self.runtime.states().get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Error::new(ErrorKind::Internal, format!("the runtime was given no {name}"))
        })
    }

    /// Opens a file for reading, if the call said that it would read or write it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<OpenFile, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        let shown = self.show_place(&place);
        match ReadFile::open(&place) {
            Ok(file) => Ok(OpenFile::new(file, shown)),
            Err(error) => {
                let error = Error::from_fs(&shown, &error);
                Err(match error.kind() {
                    ErrorKind::NotFound => error.hint(self.near_names(&place)),
                    ErrorKind::IsDirectory => error.hint(self.entries(&place)),
                    _ => error,
                })
            }
        }
    }

    /// Whether there is anything at the path.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.place(Effect::Read, path.as_ref())?.kind().is_some())
    }

    /// Puts `now` in the place of a file that reads `was`, at once, if the call said that it would
    /// write it. In a dry run only finds out whether that could be done.
    pub fn replace(
        &self,
        path: impl AsRef<Path>,
        was: Vec<u8>,
        now: Vec<u8>,
    ) -> Result<Committed, Error> {
        let place = self.place(Effect::Write, path.as_ref())?;
        self.make(&place, Change::replace(place.clone(), was, now))
    }

    /// Makes a new file and the directories on the way to it, if the call said that it would write it.
    /// In a dry run only finds out whether that could be done.
    pub fn create(&self, path: impl AsRef<Path>, now: Vec<u8>) -> Result<Committed, Error> {
        let place = self.place(Effect::Write, path.as_ref())?;
        self.make(&place, Change::create(place.clone(), now))
    }

    /// A path as replies show it: real, and relative to the session's directory where it is in it.
    pub fn show(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        Ok(self.show_place(&self.place(Effect::Read, path.as_ref())?))
    }

    /// The link that was given, and the file that it leads to, if a link was followed.
    pub fn followed_link(&self, path: impl AsRef<Path>) -> Result<Option<String>, Error> {
        let place = self.place(Effect::Read, path.as_ref())?;
        let from = || path.as_ref().display().to_string();
        Ok(place.through_link().then(|| format!("{} → {}", from(), self.show_place(&place))))
    }

    fn make(&self, place: &Place, change: Change) -> Result<Committed, Error> {
        self.check_cancelled()?;
        let outcome = if self.dry_run() {
            change.check().map(|()| Committed { hard_link_broken: false })
        } else {
            change.commit()
        };
        outcome.map_err(|error| Error::from_fs(&self.show_place(place), &error))
    }

    fn place(&self, effect: Effect, path: &Path) -> Result<Place, Error> {
        self.grant.place(self.runtime, self.session, effect, path)
    }

    fn show_place(&self, place: &Place) -> String {
        let path = place.path();
        let shown = match path.strip_prefix(self.session.directory().path()) {
            Ok(relative) if !self.runtime.absolute_paths() => relative,
            _ => &path,
        };
        let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        // A name is one line, whatever is in it.
        toolcrib_text::visible(shown.as_os_str().as_encoded_bytes()).replace('\n', "\\n")
    }

    fn near_names(&self, place: &Place) -> String {
        let wanted = place.relative().file_name().unwrap_or_default().to_string_lossy();
        let names = self.runtime.workspace().names_beside(place, MAX_NAMES);
        let names: Vec<String> =
            names.unwrap_or_default().iter().map(|name| name.to_string_lossy().into()).collect();
        let near = near(&wanted, names.iter().map(String::as_str), 3);
        match near.as_slice() {
            [] => "Nothing there has a name like it.".to_owned(),
            near => format!("There is: {}.", near.join(", ")),
        }
    }

    fn entries(&self, place: &Place) -> String {
        const SHOWN: usize = 20;
        let names = self.runtime.workspace().names_in(place, MAX_NAMES).unwrap_or_default();
        let mut names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
        names.sort();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        match (names.is_empty(), more) {
            (true, _) => "It is empty.".to_owned(),
            (false, 0) => format!("It has: {}.", names.join(", ")),
            (false, more) => format!("It has: {} and {more} more.", names.join(", ")),
        }
    }
}
