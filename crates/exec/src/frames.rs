//! Frames of numbers and bytes, the encoding of messages between processes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use rustix::process::Pid;

pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A frame that is being written. Its length comes first.
#[derive(Default)]
pub(crate) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn paths(&mut self, paths: &[PathBuf]) {
        self.number(paths.len() as u64);
        for path in paths {
            self.bytes(path.as_os_str().as_bytes());
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut frame = (self.0.len() as u64).to_le_bytes().to_vec();
        frame.extend(self.0);
        frame
    }
}

/// The unread part of a frame.
pub(crate) struct FrameReader<'a>(pub(crate) &'a [u8]);

impl<'a> FrameReader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(crate) fn pids(&mut self) -> Option<Vec<Pid>> {
        let count = self.number()?;
        (0..count).map(|_| Pid::from_raw(i32::try_from(self.number()?).ok()?)).collect()
    }

    pub(crate) fn paths(&mut self) -> Option<Vec<PathBuf>> {
        let count = self.number()?;
        (0..count).map(|_| Some(PathBuf::from(os_string(self.bytes()?)))).collect()
    }
}
