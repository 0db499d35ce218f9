//! Detects whether a file is on a local file system.

use std::os::fd::AsFd;

use rustix::fs::FsWord;

/// Local file systems: an equal stat fingerprint means equal bytes, at once and for all processes. Network
/// file systems cache metadata, or are written by other machines.
const LOCAL: [FsWord; 9] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
];

/// Whether a file is on a file system whose stat fingerprints show every change. False for unknown file systems.
pub(crate) fn is_local(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| LOCAL.contains(&found.f_type))
}
