//! A file of the operator that is read again when it changes.
//!
//! Its directory is held by descriptor, so that a renamed directory or a changed symlink does not lead to another file. What is read
//! must be complete, and must be what the operator wrote: a regular file with one name that has not changed for a while.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::private_directory::owner::current_user;

/// How long a file has to stay the same before it is read. Some programs truncate or remove a file before they write it.
const UNCHANGED_FOR: Duration = Duration::from_secs(1);

/// A file that is read again when it changes.
#[derive(Debug)]
pub struct OperatorFile {
    place: Place,
    /// The version that was read last. `None` if there was no file.
    read: Option<Version>,
    /// A version that is not read yet, and when it was first seen.
    seen: Option<(Version, Instant)>,
    /// Whether it was missing since it was read. A new file may get the number of the old one.
    was_missing: bool,
}

/// The result of a look at a file.
#[derive(Debug, PartialEq, Eq)]
pub enum OperatorChange {
    /// It is the version that was read last.
    None,
    /// It is another version, which may not be complete yet.
    Unfinished,
    /// Its new content, and whether another file was put in its place.
    Changed {
        /// The content.
        text: String,
        /// Whether it is another file, and not the same with other content.
        is_replaced: bool,
    },
    /// It is another version that is not used, for this reason.
    Unusable(String),
}

#[derive(Debug)]
enum Place {
    Held(OwnedFd, OsString),
    /// The directory does not exist yet.
    Missing(PathBuf),
}

/// A version of a file. Each change of the content makes another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    file: (u64, u64),
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl OperatorFile {
    /// The file at a path, as it is now. The file and its directory may be missing.
    ///
    /// # Errors
    ///
    /// Fails if the path cannot be resolved.
    pub fn at(path: &Path) -> io::Result<OperatorFile> {
        let path = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
            Err(error) => return Err(error),
        };
        let mut file = OperatorFile {
            place: Place::Missing(path),
            read: None,
            seen: None,
            was_missing: false,
        };
        file.hold()?;
        file.read = file.stat()?.as_ref().map(Version::of);
        Ok(file)
    }

    /// Looks whether the file has changed, and reads at most `max` bytes of it.
    pub fn look(&mut self, max: u64) -> OperatorChange {
        self.try_look(max).unwrap_or_else(|error| OperatorChange::Unusable(error.to_string()))
    }

    fn try_look(&mut self, max: u64) -> io::Result<OperatorChange> {
        self.hold()?;
        let unusable = |why: &str| Ok(OperatorChange::Unusable(why.to_owned()));
        let Some(found) = self.stat()? else {
            return match self.read {
                None => Ok(OperatorChange::None),
                Some(_) => {
                    self.was_missing = true;
                    unusable("the file is missing")
                }
            };
        };
        let version = Version::of(&found);
        if self.read.as_ref() == Some(&version) {
            self.seen = None;
            return Ok(OperatorChange::None);
        }
        if let Some(why) = objection(&found) {
            return unusable(why);
        }
        if !self.is_finished(&version) {
            return Ok(OperatorChange::Unfinished);
        }
        let Some(text) = self.text(&version, max)? else { return Ok(OperatorChange::Unfinished) };
        let is_replaced =
            self.was_missing || self.read.as_ref().is_none_or(|read| read.file != version.file);
        (self.read, self.seen, self.was_missing) = (Some(version), None, false);
        Ok(OperatorChange::Changed { text, is_replaced })
    }

    /// Opens the directory once it exists.
    fn hold(&mut self) -> io::Result<()> {
        let Place::Missing(path) = &self.place else { return Ok(()) };
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, directory, flags, Mode::empty()) {
            Ok(held) => self.place = Place::Held(held, name.to_owned()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn held(&self) -> Option<(&OwnedFd, &OsStr)> {
        match &self.place {
            Place::Held(directory, name) => Some((directory, name)),
            Place::Missing(_) => None,
        }
    }

    fn stat(&self) -> io::Result<Option<Stat>> {
        let Some((directory, name)) = self.held() else { return Ok(None) };
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether a version is old enough to be complete. The clock of a file system may differ from ours.
    fn is_finished(&mut self, version: &Version) -> bool {
        if version.age().is_some_and(|age| age >= UNCHANGED_FOR) {
            return true;
        }
        match &self.seen {
            Some((seen, since)) if seen == version => since.elapsed() >= UNCHANGED_FOR,
            _ => {
                self.seen = Some((version.clone(), Instant::now()));
                false
            }
        }
    }

    /// The content of a version. `None` if the file has changed meanwhile.
    fn text(&self, version: &Version, max: u64) -> io::Result<Option<String>> {
        let Some((directory, name)) = self.held() else { return Ok(None) };
        // A FIFO that was put in its place must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?;
        let is_it = |file: &OwnedFd| Ok::<_, Errno>(Version::of(&fstat(file)?) == *version);
        if !is_it(&file)? {
            return Ok(None);
        }
        let mut file = File::from(file);
        let mut text = String::new();
        let read = (&mut file).take(max + 1).read_to_string(&mut text)?;
        if read as u64 > max {
            return Err(io::Error::other(format!("the file has more than {max} bytes")));
        }
        Ok(is_it(&file.into())?.then_some(text))
    }
}

/// Why a file is not read, if somebody else might have written it.
fn objection(found: &Stat) -> Option<&'static str> {
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file {
        Some("it is no longer a regular file")
    } else if found.st_nlink != 1 {
        Some("the file has another hard link")
    } else if found.st_uid != current_user() && found.st_uid != 0 {
        Some("the file belongs to another user")
    } else {
        None
    }
}

impl Version {
    fn of(found: &Stat) -> Version {
        let time = |seconds, nanoseconds| (seconds, i64::try_from(nanoseconds).unwrap_or(0));
        Version {
            file: (found.st_dev, found.st_ino),
            size: found.st_size,
            modified: time(found.st_mtime, found.st_mtime_nsec),
            changed: time(found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// The time since the last change. `None` if that is in the future.
    fn age(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = self.modified.max(self.changed);
        let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
        SystemTime::now().duration_since(UNIX_EPOCH + since).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// Sets the times of a file back, so that nothing has to wait. The change time stays, so `seen` is set back as well.
    fn settle(file: &mut OperatorFile) -> OperatorChange {
        let first = file.look(1_000);
        if first != OperatorChange::Unfinished {
            return first;
        }
        let (_, since) = file.seen.as_mut().unwrap();
        *since -= UNCHANGED_FOR;
        file.look(1_000)
    }

    fn changed(text: &str, is_replaced: bool) -> OperatorChange {
        OperatorChange::Changed { text: text.to_owned(), is_replaced }
    }

    fn unusable(change: &OperatorChange) -> &str {
        let OperatorChange::Unusable(why) = change else { panic!("{change:?}") };
        why
    }

    #[test]
    fn a_change_is_read_once_and_only_when_it_is_complete() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        fs::write(&path, "one").unwrap();
        let mut file = OperatorFile::at(&path).unwrap();
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::write(&path, "").unwrap();
        assert_eq!(file.look(1_000), OperatorChange::Unfinished);
        fs::write(&path, "two").unwrap();
        assert_eq!(file.look(1_000), OperatorChange::Unfinished);
        assert_eq!(settle(&mut file), changed("two", false));
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::write(top.path().join("new"), "three").unwrap();
        fs::rename(top.path().join("new"), &path).unwrap();
        assert_eq!(settle(&mut file), changed("three", true));
        fs::write(&path, "x".repeat(1_001)).unwrap();
        assert!(unusable(&settle(&mut file)).contains("more than 1000 bytes"));
        fs::remove_file(&path).unwrap();
        assert_eq!(unusable(&file.look(1_000)), "the file is missing");
    }

    #[test]
    fn a_missing_file_and_a_missing_directory_may_appear() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("config/a.toml");
        let mut file = OperatorFile::at(&path).unwrap();
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::create_dir(top.path().join("config")).unwrap();
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::write(&path, "one").unwrap();
        assert_eq!(settle(&mut file), changed("one", true));
    }

    #[test]
    fn another_file_at_the_same_path_is_not_read() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/a.toml"), "one").unwrap();
        symlink("real", at("link")).unwrap();
        let mut file = OperatorFile::at(&at("link/a.toml")).unwrap();
        // The directory is moved, and another one takes its name.
        fs::rename(at("real"), at("moved")).unwrap();
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/a.toml"), "other").unwrap();
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::remove_file(at("moved/a.toml")).unwrap();
        symlink("../real/a.toml", at("moved/a.toml")).unwrap();
        assert_eq!(unusable(&file.look(1_000)), "it is no longer a regular file");
        fs::remove_file(at("moved/a.toml")).unwrap();
        fs::hard_link(at("real/a.toml"), at("moved/a.toml")).unwrap();
        assert_eq!(unusable(&file.look(1_000)), "the file has another hard link");
        fs::remove_file(at("moved/a.toml")).unwrap();
        assert!(Command::new("mkfifo").arg(at("moved/a.toml")).status().unwrap().success());
        assert_eq!(unusable(&file.look(1_000)), "it is no longer a regular file");
    }
}
