//! The format version of a state directory.
//!
//! The file `version` has the format number and the program that wrote it. The number covers all files of
//! the directory except the segments of an index, which are a cache with a header of their own. State of this
//! format or an older one is used, and the first write raises it to this format. State of a newer format, or
//! with a damaged `version`, is neither read nor written.
//!
//! | format | since | difference |
//! | --- | --- | --- |
//! | 1 | 0.1.0 | no `version` |
//! | 2 | after 0.1.0 | symlinks and removed directories in the log, `last`, `version` |
//! | 3 | after 0.1.0 | contents as deltas |
//!
//! A field that an older program may ignore needs no new format. The first line of `version` keeps its form.

use std::cmp::Ordering;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{FsError, FsErrorKind};
use crate::private_directory::PrivateDirectory;

/// The format that this program writes.
const FORMAT: u64 = 3;

const FILE: &str = "version";
const NEW: &str = "version.new";

/// The first line is shorter.
const MAX_LINE_BYTES: u64 = 200;

/// Fails if this program must not use the state in a directory, because a newer program wrote it. A directory
/// that does not exist or is not private passes: its users check that.
pub fn check_state_version(directory: impl AsRef<Path>) -> Result<(), FsError> {
    let directory = PrivateDirectory::new(directory.as_ref());
    if directory.check(&[]).is_err() { Ok(()) } else { is_current(&directory).map(drop) }
}

/// Whether the state has the format of this program, or else an older one. Fails if it has a newer or an
/// unknown one.
pub(crate) fn is_current(directory: &PrivateDirectory) -> Result<bool, FsError> {
    let Some(line) = read(directory)? else { return Ok(false) };
    let Some((format, writer)) = parse(&line) else {
        return Err(unsupported(
            directory.path().join(FILE),
            "is damaged, so the version of the state is unknown; restore the file, name another state \
             directory, or remove the file if no newer toolcrib has used the directory"
                .to_owned(),
        ));
    };
    match format.cmp(&FORMAT) {
        Ordering::Less => Ok(false),
        Ordering::Equal => Ok(true),
        Ordering::Greater => Err(unsupported(
            directory.path().to_owned(),
            format!(
                "has state of format {format}, and toolcrib {} supports formats up to {FORMAT}; use toolcrib \
                 {writer} or newer, or name another state directory",
                env!("CARGO_PKG_VERSION")
            ),
        )),
    }
}

/// Raises older state to the format of this program. The caller holds the lock of the journal.
pub(crate) fn raise(directory: &PrivateDirectory) -> Result<(), FsError> {
    // Another process may have raised it in the meantime.
    if is_current(directory)? {
        return Ok(());
    }
    let write = || -> io::Result<()> {
        // A crash may have left one behind.
        let _ = directory.remove(NEW);
        let mut file = directory.create_file(NEW, OFlags::empty())?;
        file.write_all(line(FORMAT, env!("CARGO_PKG_VERSION")).as_bytes())?;
        file.sync_data()?;
        directory.rename(NEW, FILE)
    };
    let path = || directory.path().join(FILE);
    write().map_err(|error| FsError::from_io(path(), "cannot be written", &error))
}

/// The beginning of the file. `None` if it does not exist.
fn read(directory: &PrivateDirectory) -> Result<Option<Vec<u8>>, FsError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = directory.open_file(FILE, OFlags::RDONLY)?;
        file.take(MAX_LINE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FsError::from_io(directory.path().join(FILE), "cannot be read", &error)),
    }
}

fn line(format: u64, writer: &str) -> String {
    format!("toolcrib state {format}, written by {writer}\n")
}

/// The format and the version of the program that wrote it. `None` if the line is damaged or incomplete.
fn parse(bytes: &[u8]) -> Option<(u64, &str)> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let (format, writer) = text.strip_prefix("toolcrib state ")?.split_once(", written by ")?;
    let format: u64 = format.parse().ok()?;
    let is_version_char = |char: char| char.is_ascii_alphanumeric() || ".+-".contains(char);
    let is_intact = writer.contains('.') && writer.chars().all(is_version_char);
    (is_intact && format > 0).then_some((format, writer))
}

fn unsupported(path: std::path::PathBuf, detail: String) -> FsError {
    FsError::new(FsErrorKind::Unsupported, path, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(version: Option<&[u8]>) -> (tempfile::TempDir, PrivateDirectory) {
        let top = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::new(&top.path().join("state"));
        directory.make(&[]).unwrap();
        if let Some(version) = version {
            std::fs::write(directory.path().join(FILE), version).unwrap();
        }
        (top, directory)
    }

    #[test]
    fn older_state_is_raised_once() {
        for version in [None, Some(line(1, "0.1.0"))] {
            let (_top, directory) = state(version.as_ref().map(String::as_bytes));
            assert_eq!(is_current(&directory), Ok(false));
            raise(&directory).unwrap();
            assert_eq!(is_current(&directory), Ok(true));
            let written = || std::fs::metadata(directory.path().join(FILE)).unwrap().modified();
            let before = written().unwrap();
            raise(&directory).unwrap();
            assert_eq!(written().unwrap(), before);
            assert_eq!(directory.list(".").unwrap(), [FILE]);
        }
    }

    #[test]
    fn newer_state_is_refused_with_the_required_version() {
        let later = [line(FORMAT + 1, "0.9.0-rc.1"), line(12, "10.0.0") + "more\n"];
        for version in later {
            let (_top, directory) = state(Some(version.as_bytes()));
            let writer = version.lines().next().unwrap().rsplit(' ').next().unwrap();
            for result in [check_state_version(directory.path()), raise(&directory)] {
                let error = result.unwrap_err();
                assert_eq!(error.path(), directory.path());
                assert!(error.detail().contains(&format!("use toolcrib {writer} or newer")));
            }
            assert_eq!(std::fs::read(directory.path().join(FILE)).unwrap(), version.as_bytes());
        }
    }

    #[test]
    fn damaged_version_is_refused_and_left_alone() {
        let whole = line(FORMAT, "0.2.0");
        let mut damaged: Vec<Vec<u8>> =
            (0..whole.len()).map(|cut| whole.as_bytes()[..cut].to_vec()).collect();
        damaged.extend([
            b"\0\xff\n".to_vec(),
            line(0, "0.2.0").into_bytes(),
            line(FORMAT, "\u{1b}[2J").into_bytes(),
            b"x".repeat(1 << 20),
        ]);
        for version in damaged {
            let (_top, directory) = state(Some(&version));
            let error = raise(&directory).unwrap_err();
            assert_eq!(error.kind(), FsErrorKind::Unsupported);
            assert!(error.detail().contains("is damaged"), "{error}");
            assert_eq!(std::fs::read(directory.path().join(FILE)).unwrap(), version);
        }
    }

    #[test]
    fn special_file_as_version_is_refused() {
        let (_top, directory) = state(None);
        std::fs::create_dir(directory.path().join(FILE)).unwrap();
        assert!(is_current(&directory).is_err());
        std::fs::remove_dir(directory.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("elsewhere", directory.path().join(FILE)).unwrap();
        assert!(is_current(&directory).is_err());
    }
}
