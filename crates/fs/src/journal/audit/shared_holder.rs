//! Which processes of this machine use something that the machine holds as a whole, such as a lease: the last one gives it
//! back.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

use super::{AUDIT, key};
use crate::error::FsError;
use crate::journal::{Caps, Journal, LOCK_TIMEOUT};
use crate::lock::lock_with_timeout;
use crate::random;

/// The file with the id of the machine.
const ID_FILE: &str = "audit/machine-id";

/// Larger than any id.
const MAX_ID_BYTES: u64 = 100;

/// A lock that all processes of this machine share which use the same thing.
#[derive(Debug)]
pub struct SharedHolder {
    file: OwnedFd,
    id: String,
}

impl SharedHolder {
    /// Joins the processes that use something of this name. Waits while the last one gives it back.
    ///
    /// # Errors
    ///
    /// Fails if the state directory cannot be written.
    pub fn join(directory: &Path, name: &str) -> Result<SharedHolder, FsError> {
        let journal = Journal::open(directory, Caps::default())?;
        journal.prepare(&[AUDIT])?;
        let lock = format!("{AUDIT}/{}.holder-lock", key(name));
        let joined = || {
            let id = machine_id(&journal)?;
            let directory = &journal.audit.directory;
            let file = directory.open_file(&lock, OFlags::RDWR | OFlags::CREATE)?.into();
            lock_with_timeout(&file, FlockOperation::NonBlockingLockShared, LOCK_TIMEOUT)?;
            Ok(SharedHolder { file, id })
        };
        joined().map_err(|error: io::Error| journal.audit.error(&lock, &error))
    }

    /// The id of this machine: the same for all processes with this state directory.
    pub fn machine(&self) -> &str {
        &self.id
    }

    /// Whether no other process uses it. If so, none can join until [`SharedHolder::leave`].
    pub fn is_last(&self) -> bool {
        rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Leaves the processes that use it.
    pub fn leave(&self) {
        // The end of the process unlocks it as well.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The random id in the state directory, which the first process makes.
fn machine_id(journal: &Journal) -> io::Result<String> {
    let directory = &journal.audit.directory;
    if directory.read(ID_FILE, MAX_ID_BYTES)?.is_none() {
        use std::io::Write as _;
        let draft = format!("{ID_FILE}-{}", random::hex::<8>()?);
        let mut file = directory.create_file(&draft, OFlags::empty())?;
        file.write_all(random::hex::<16>()?.as_bytes())?;
        // The first one wins.
        let handle = directory.open().map_err(|_| io::ErrorKind::NotFound)?;
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        if rustix::fs::renameat_with(&handle, &draft, &handle, ID_FILE, flags).is_err() {
            directory.remove(&draft)?;
        }
    }
    let id = directory.read(ID_FILE, MAX_ID_BYTES)?.ok_or(io::ErrorKind::NotFound)?;
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let id = String::from_utf8(id)
        .ok()
        .filter(|id| id.len() == 32 && id.as_bytes().iter().all(is_digit));
    id.ok_or_else(|| io::Error::other("has no id; remove it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_process_knows_that_it_is_the_last() {
        let top = tempfile::tempdir().unwrap();
        let state = top.path().join("state");
        let one = SharedHolder::join(&state, "ws").unwrap();
        let two = SharedHolder::join(&state, "ws").unwrap();
        assert_eq!((one.machine(), one.machine().len()), (two.machine(), 32));
        assert!(!one.is_last());
        one.leave();
        assert!(two.is_last());
        assert!(SharedHolder::join(&state, "other").is_ok());
        two.leave();
        assert!(SharedHolder::join(&state, "ws").unwrap().is_last());
    }
}
