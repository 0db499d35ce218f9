//! The program to copy: its platform, and whether it needs libraries of the other machine.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Larger than any build of the program.
const MAX_BYTES: u64 = 1 << 30;

/// The type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// A program for Linux.
pub(super) struct ProgramFile {
    pub(super) bytes: Vec<u8>,
    /// The processor, as `uname -m` names it.
    pub(super) machine: &'static str,
    /// Whether it uses the C library of the machine that it runs on.
    pub(super) is_dynamic: bool,
    pub(super) sha256: String,
}

impl ProgramFile {
    pub(super) fn read(path: &Path) -> Result<ProgramFile, String> {
        let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
        let file = std::fs::File::open(path).map_err(|error| at(&error))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| at(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(at(&"is too large for a program"));
        }
        let (machine, is_dynamic) = platform(&bytes)
            .ok_or_else(|| at(&"is not a program for Linux on x86_64 or aarch64"))?;
        let mut sha256 = String::new();
        for byte in Sha256::digest(&bytes) {
            let _ = write!(sha256, "{byte:02x}");
        }
        Ok(ProgramFile { bytes, machine, is_dynamic, sha256 })
    }

    /// Whether a machine with this output of `uname -sm` can run it.
    pub(super) fn is_for(&self, uname: &str) -> bool {
        let machine = match uname.split_once(' ') {
            Some(("Linux", "amd64")) => "x86_64",
            Some(("Linux", "arm64")) => "aarch64",
            Some(("Linux", machine)) => machine,
            _ => return false,
        };
        machine == self.machine
    }
}

/// The processor of an ELF file of 64 bits, and whether it names a dynamic loader.
fn platform(bytes: &[u8]) -> Option<(&'static str, bool)> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let machine = match number::<2>(bytes, 18)? {
        62 => "x86_64",
        183 => "aarch64",
        _ => return None,
    };
    let (start, size, count) =
        (number::<8>(bytes, 32)?, number::<2>(bytes, 54)?, number::<2>(bytes, 56)?);
    let is_loader = |header: u64| {
        let at = start.checked_add(header.checked_mul(size)?)?;
        number::<4>(bytes, usize::try_from(at).ok()?)
    };
    let headers: Option<Vec<u64>> = (0..count).map(is_loader).collect();
    Some((machine, headers?.contains(&u64::from(PT_INTERP))))
}

/// A little-endian number of N bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..N)?.copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_of_this_test_is_recognized() {
        let program = ProgramFile::read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(program.machine, std::env::consts::ARCH);
        let os = std::process::Command::new("uname").arg("-sm").output().unwrap();
        assert!(program.is_for(String::from_utf8(os.stdout).unwrap().trim()));
        for other in ["Darwin arm64", "Linux riscv64", "Linux", "", "FreeBSD amd64"] {
            assert!(!program.is_for(other), "{other}");
        }
    }

    /// Whatever is cut off or damaged, there is an answer.
    #[test]
    fn a_damaged_file_is_not_a_program() {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes.truncate(4_096);
        for length in 0..bytes.len() {
            let _ = platform(&bytes[..length]);
        }
        for at in 0..64 {
            let mut damaged = bytes.clone();
            damaged[at] = 0xff;
            let _ = platform(&damaged);
        }
        assert_eq!(platform(b"#!/bin/sh\n"), None);
        assert_eq!(platform(b""), None);
    }
}
