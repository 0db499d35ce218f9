//! Whether files may lie where somebody must be asked for them, who may not answer.

use std::fs;
use std::path::Path;

/// Kinds of file systems that ask nobody but a disk of this machine, or the kernel.
const NEAR: [&str; 39] = [
    "autofs",
    "bcachefs",
    "binfmt_misc",
    "bpf",
    "btrfs",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "jfs",
    "mqueue",
    "ntfs3",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "reiserfs",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "vfat",
    "xfs",
];

/// Where a command sees nothing of what is mounted outside.
const UNSEEN: [&str; 4] = ["/run", "/proc", "/sys", "/dev"];

/// Whether a command can come upon files of a server, or of a program that pretends to be a disk.
pub(super) fn files_may_be_distant() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo");
    mounts.map_or(true, |mounts| mounts.lines().any(is_distant))
}

/// `36 35 98:0 /in/it /where options … - kind source options`
fn is_distant(line: &str) -> bool {
    let place = line.split(' ').nth(4).map(Path::new);
    let kind = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').next());
    let (Some(place), Some(kind)) = (place, kind) else { return true };
    !NEAR.contains(&kind) && !UNSEEN.iter().any(|unseen| place.starts_with(unseen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_near_or_distant_by_its_kind() {
        let line = |place: &str, kind: &str| format!("36 35 98:0 / {place} rw - {kind} x rw");
        assert!(!is_distant(&line("/", "ext4")) && !is_distant(&line("/home", "btrfs")));
        assert!(is_distant(&line("/mnt", "nfs4")) && is_distant(&line("/home/x", "fuse.sshfs")));
        assert!(!is_distant(&line("/run/user/1000/gvfs", "fuse.gvfsd-fuse")));
        assert!(is_distant("nonsense"));
    }
}
