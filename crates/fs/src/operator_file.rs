//! A file of the operator that is read again when it changes.
//!
//! Its directory stays open, so a renamed directory or a changed symlink does not lead to another file. Only the operator's own, complete
//! text is read: the file must be a regular file without another hard link, and must not have changed for a while.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fstat, openat, statat,
};
use rustix::io::Errno;

use crate::local_file_system::is_local;
use crate::private_directory::owner::current_user;
use crate::real_path::real_path;

/// How long a file has to stay the same before it is read. Some programs truncate or remove a file before they write it.
const UNCHANGED_FOR: Duration = Duration::from_secs(1);

/// A file that is read again when it changes.
#[derive(Debug)]
pub struct OperatorFile {
    place: Place,
    /// The file that was found last.
    found: Option<Found>,
    /// Whether another file was found since the last reading.
    is_replaced: bool,
    /// The version that was read last. `None` if there was no file.
    read: Option<Version>,
    /// The owner of the file at the start.
    owner: Option<u32>,
    /// A version that is not read yet, and when it was first seen.
    seen: Option<(Version, Instant)>,
    /// A version that is no text.
    no_text: Option<Version>,
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

/// A file in the place.
#[derive(Debug)]
struct Found {
    /// While it is open, no other file gets its number.
    handle: OwnedFd,
    file: (u64, u64),
    /// Whether it ever had another hard link. Commands may have written through it, also if it is gone since.
    had_link: bool,
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => in_real_directory(path)?,
            Err(error) => return Err(error),
        };
        let mut file = OperatorFile {
            place: Place::Missing(path),
            found: None,
            is_replaced: false,
            read: None,
            owner: None,
            seen: None,
            no_text: None,
        };
        file.hold()?;
        let found = file.find()?;
        file.is_replaced = false;
        file.read = found.as_ref().map(Version::of);
        file.owner = found.map(|found| found.st_uid);
        Ok(file)
    }

    /// Looks whether the file has changed, and reads at most `max` bytes of it.
    pub fn look(&mut self, max: u64) -> OperatorChange {
        self.try_look(max).unwrap_or_else(|error| OperatorChange::Unusable(error.to_string()))
    }

    /// Whether the file has another hard link, through which this user could write it.
    pub fn is_exposed(&self) -> bool {
        let has_link = self.found.as_ref().is_some_and(|found| found.had_link);
        has_link
            && self.held().is_some_and(|(directory, name)| {
                accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
            })
    }

    fn try_look(&mut self, max: u64) -> io::Result<OperatorChange> {
        self.hold()?;
        let unusable = |why: &str| Ok(OperatorChange::Unusable(why.to_owned()));
        let Some(found) = self.find()? else {
            return match self.read {
                None => Ok(OperatorChange::None),
                Some(_) => unusable("the file is missing"),
            };
        };
        let version = Version::of(&found);
        if self.read.as_ref() == Some(&version) {
            self.seen = None;
            return Ok(OperatorChange::None);
        }
        if let Some(why) = self.objection(&found) {
            // If nothing was written, nothing is wrong: a backup may make links.
            if self.read.as_ref().is_some_and(|read| read.has_content_of(&version)) {
                return Ok(OperatorChange::None);
            }
            return unusable(why);
        }
        if u64::try_from(found.st_size).is_ok_and(|size| size > max) {
            return Ok(OperatorChange::Unusable(format!("the file has more than {max} bytes")));
        }
        if !self.is_finished(&version) {
            return Ok(OperatorChange::Unfinished);
        }
        if self.no_text.as_ref() != Some(&version) {
            let Some(bytes) = self.bytes(&version, max)? else {
                return Ok(OperatorChange::Unfinished);
            };
            if let Ok(text) = String::from_utf8(bytes) {
                (self.read, self.seen) = (Some(version), None);
                let is_replaced = std::mem::take(&mut self.is_replaced);
                return Ok(OperatorChange::Changed { text, is_replaced });
            }
            self.no_text = Some(version);
        }
        unusable("the file is not valid UTF-8")
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

    /// The file in the place, which is held from now on.
    fn find(&mut self) -> io::Result<Option<Stat>> {
        let Some((directory, name)) = self.held() else { return Ok(None) };
        let Some(mut stat) = existing(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))? else {
            return Ok(None);
        };
        // A symlink to nothing is no file yet. One to a file is not followed after the start.
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        if is_link && existing(statat(directory, name, AtFlags::empty()))?.is_none() {
            return Ok(None);
        }
        if self.found.as_ref().is_none_or(|found| found.file != number(&stat)) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Some(handle) = existing(openat(directory, name, flags, Mode::empty()))? else {
                return Ok(None);
            };
            stat = fstat(&handle)?;
            self.found = Some(Found { handle, file: number(&stat), had_link: false });
            self.is_replaced = true;
        }
        if let Some(found) = &mut self.found {
            found.had_link |= stat.st_nlink > 1;
        }
        Ok(Some(stat))
    }

    /// The reason not to trust a file. `None` if only the operator can have written it.
    fn objection(&self, stat: &Stat) -> Option<&'static str> {
        let owners = [Some(current_user()), Some(0), self.owner];
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                return Some("it is a symlink now, which is followed only at the start");
            }
            _ => return Some("it is no longer a regular file"),
        }
        if self.found.as_ref().is_none_or(|found| found.had_link) {
            Some("the file has, or had, another hard link; put a new file in its place")
        } else if !owners.contains(&Some(stat.st_uid)) {
            Some("the file belongs to another user")
        } else {
            None
        }
    }

    /// Whether a version is old enough to be complete. Only a local file system has our clock.
    fn is_finished(&mut self, version: &Version) -> bool {
        let is_local = self.found.as_ref().is_some_and(|found| is_local(&found.handle));
        if is_local && version.age().is_some_and(|age| age >= UNCHANGED_FOR) {
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
    fn bytes(&self, version: &Version, max: u64) -> io::Result<Option<Vec<u8>>> {
        let Some((directory, name)) = self.held() else { return Ok(None) };
        // A FIFO that was put in its place must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?;
        let is_it = |file: &OwnedFd| Ok::<_, Errno>(Version::of(&fstat(file)?) == *version);
        if !is_it(&file)? {
            return Ok(None);
        }
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        (&mut file).take(max + 1).read_to_end(&mut bytes)?;
        Ok(is_it(&file.into())?.then_some(bytes))
    }
}

/// The path of a missing file. Its directory is resolved as far as it exists, and the file itself is not followed.
fn in_real_directory(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    Ok(match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => real_path(directory).join(name),
        _ => path,
    })
}

/// The result for a file that may be missing.
fn existing<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// What tells a file from all others while it exists.
fn number(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

impl Version {
    fn of(found: &Stat) -> Version {
        let time = |seconds, nanoseconds| (seconds, i64::try_from(nanoseconds).unwrap_or(0));
        Version {
            file: number(found),
            size: found.st_size,
            modified: time(found.st_mtime, found.st_mtime_nsec),
            changed: time(found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// Whether it is the same file, and nothing has been written to it in between.
    fn has_content_of(&self, other: &Version) -> bool {
        let content = |version: &Version| (version.file, version.size, version.modified);
        content(self) == content(other)
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

    const LINKED: &str = "the file has, or had, another hard link; put a new file in its place";

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
        assert!(unusable(&file.look(1_000)).contains("more than 1000 bytes"));
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
        assert!(unusable(&file.look(1_000)).contains("a symlink now"));
        fs::remove_file(at("moved/a.toml")).unwrap();
        fs::hard_link(at("real/a.toml"), at("moved/a.toml")).unwrap();
        assert_eq!(unusable(&file.look(1_000)), LINKED);
        fs::remove_file(at("moved/a.toml")).unwrap();
        assert!(Command::new("mkfifo").arg(at("moved/a.toml")).status().unwrap().success());
        assert_eq!(unusable(&file.look(1_000)), "it is no longer a regular file");
    }

    /// A command could write through the link, and then remove it.
    #[test]
    fn a_file_that_had_another_hard_link_is_never_read_again() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let path = at("a.toml");
        fs::write(&path, "one").unwrap();
        fs::hard_link(&path, at("link")).unwrap();
        let mut at_start = OperatorFile::at(&path).unwrap();
        assert!(at_start.is_exposed());
        fs::write(at("link"), "other").unwrap();
        fs::remove_file(at("link")).unwrap();
        assert_eq!(unusable(&settle(&mut at_start)), LINKED);
        // The link is made while the file is in use.
        let mut later = OperatorFile::at(&path).unwrap();
        assert!(!later.is_exposed());
        fs::hard_link(&path, at("link")).unwrap();
        assert_eq!(later.look(1_000), OperatorChange::None);
        fs::write(at("link"), "another").unwrap();
        fs::remove_file(at("link")).unwrap();
        for file in [&mut at_start, &mut later] {
            assert_eq!(unusable(&settle(file)), LINKED);
        }
        fs::write(at("new"), "new").unwrap();
        fs::rename(at("new"), &path).unwrap();
        for file in [&mut at_start, &mut later] {
            assert_eq!(settle(file), changed("new", true));
        }
    }

    /// A file system may give a new file the number of a removed one.
    #[test]
    fn a_file_that_was_removed_and_made_again_is_another_one() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        fs::write(&path, "one").unwrap();
        let mut file = OperatorFile::at(&path).unwrap();
        for text in ["two", "three"] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
            assert_eq!(settle(&mut file), changed(text, true));
        }
    }

    #[test]
    fn a_symlink_to_nothing_is_not_followed_later() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        symlink("target", &path).unwrap();
        let mut file = OperatorFile::at(&path).unwrap();
        assert_eq!(file.look(1_000), OperatorChange::None);
        fs::write(top.path().join("target"), "one").unwrap();
        assert!(unusable(&file.look(1_000)).contains("only at the start"));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "two").unwrap();
        assert_eq!(settle(&mut file), changed("two", true));
    }

    #[test]
    fn bytes_that_are_no_text_are_read_once() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        fs::write(&path, "one").unwrap();
        let mut file = OperatorFile::at(&path).unwrap();
        fs::write(&path, b"\xff").unwrap();
        assert!(unusable(&settle(&mut file)).contains("UTF-8"));
        let version = Version::of(&file.find().unwrap().unwrap());
        assert_eq!(file.no_text, Some(version));
        assert!(unusable(&file.look(1_000)).contains("UTF-8"));
        fs::write(&path, "two").unwrap();
        assert_eq!(settle(&mut file), changed("two", false));
    }

    #[test]
    fn the_owner_at_the_start_may_change_the_file() {
        if current_user() != 0 {
            return;
        }
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        fs::write(&path, "one").unwrap();
        let owned_by = |user: u32| std::os::unix::fs::chown(&path, Some(user), None).unwrap();
        owned_by(1_000);
        let mut file = OperatorFile::at(&path).unwrap();
        fs::write(&path, "two").unwrap();
        assert_eq!(settle(&mut file), changed("two", false));
        owned_by(1_001);
        fs::write(&path, "three").unwrap();
        assert_eq!(unusable(&file.look(1_000)), "the file belongs to another user");
    }
}
