//! A supervised call with its arguments, copied from the caller's memory.

use std::io;
use std::path::PathBuf;

use super::caller::{Base, Caller};
use super::resolve::GivenPath;
use crate::remote_memory::RemoteMemory;
use crate::sandbox::Notification;
use crate::supervised_calls::FCHMODAT2;

/// A supervised call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Open {
        file: GivenPath,
        flags: u32,
        mode: u32,
    },
    Truncate {
        file: GivenPath,
        length: u64,
    },
    Remove {
        file: GivenPath,
        directory: bool,
    },
    Rename {
        from: GivenPath,
        to: GivenPath,
        flags: u32,
    },
    Link {
        from: GivenPath,
        to: GivenPath,
        flags: u32,
    },
    Symlink {
        target: PathBuf,
        at: GivenPath,
    },
    MakeDirectory {
        at: GivenPath,
        mode: u32,
    },
    MakeNode {
        at: GivenPath,
        mode: u32,
        device: u64,
    },
    ChangeMode {
        file: GivenPath,
        mode: u32,
        follow: bool,
    },
    ChangeModeOf {
        descriptor: i32,
        mode: u32,
    },
    /// Sets an extended attribute, or removes it if there is no value.
    SetAttribute {
        of: AttributeTarget,
        name: PathBuf,
        value: Option<(Vec<u8>, u32)>,
    },
    Connect {
        descriptor: i32,
        address: Vec<u8>,
    },
    Bind {
        descriptor: i32,
        address: Vec<u8>,
    },
    /// A datagram to an address. It is only observed.
    Send {
        address: Vec<u8>,
        flags: u32,
    },
    /// A socket where all of them are supervised.
    MakeSocket {
        family: i32,
        /// The type, with flags.
        kind: i32,
        protocol: i32,
    },
}

/// The file of an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttributeTarget {
    Path { file: GivenPath, follow: bool },
    Descriptor(i32),
}

/// The largest value of an extended attribute.
const MAX_ATTRIBUTE_BYTES: u64 = 64 << 10;

/// The largest address of a socket.
const MAX_ADDRESS_BYTES: u64 = 128;

impl Operation {
    /// Reads the arguments of a call. Numbers that the kernel takes as 32 bits are truncated. Returns `None`
    /// for other calls.
    pub(super) fn read(notification: &Notification) -> io::Result<Option<Operation>> {
        let arguments = notification.arguments;
        let caller = Caller { thread: notification.thread };
        let memory = RemoteMemory::of(caller.thread);
        let number = |index: usize| arguments[index] as u32;
        let at = |base: usize, path: usize| -> io::Result<GivenPath> {
            let path = memory.read_path(arguments[path])?;
            Ok(GivenPath { base: Base::from_argument(arguments[base]), path })
        };
        let here = |path: usize| -> io::Result<GivenPath> {
            Ok(GivenPath { base: Base::WorkingDirectory, path: memory.read_path(arguments[path])? })
        };
        let attribute_of = || -> io::Result<AttributeTarget> {
            Ok(match notification.syscall {
                libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
                    AttributeTarget::Descriptor(number(0) as i32)
                }
                call => {
                    let follow = matches!(call, libc::SYS_setxattr | libc::SYS_removexattr);
                    AttributeTarget::Path { file: here(0)?, follow }
                }
            })
        };
        Ok(Some(match notification.syscall {
            libc::SYS_openat => {
                Operation::Open { file: at(0, 1)?, flags: number(2), mode: number(3) }
            }
            libc::SYS_truncate => Operation::Truncate { file: here(0)?, length: arguments[1] },
            libc::SYS_unlinkat => {
                let directory = number(2) & libc::AT_REMOVEDIR.unsigned_abs() != 0;
                Operation::Remove { file: at(0, 1)?, directory }
            }
            libc::SYS_renameat2 => {
                Operation::Rename { from: at(0, 1)?, to: at(2, 3)?, flags: number(4) }
            }
            libc::SYS_linkat => {
                Operation::Link { from: at(0, 1)?, to: at(2, 3)?, flags: number(4) }
            }
            libc::SYS_symlinkat => {
                Operation::Symlink { target: memory.read_path(arguments[0])?, at: at(1, 2)? }
            }
            libc::SYS_mkdirat => Operation::MakeDirectory { at: at(0, 1)?, mode: number(2) },
            libc::SYS_mknodat => {
                Operation::MakeNode { at: at(0, 1)?, mode: number(2), device: arguments[3] }
            }
            libc::SYS_fchmod => {
                Operation::ChangeModeOf { descriptor: number(0) as i32, mode: number(1) }
            }
            libc::SYS_fchmodat => {
                Operation::ChangeMode { file: at(0, 1)?, mode: number(2), follow: true }
            }
            FCHMODAT2 => {
                let flags = number(3);
                let file = at(0, 1)?;
                if file.path.as_os_str().is_empty() && flags & libc::AT_EMPTY_PATH as u32 != 0 {
                    Operation::ChangeModeOf { descriptor: number(0) as i32, mode: number(2) }
                } else {
                    let follow = flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0;
                    Operation::ChangeMode { file, mode: number(2), follow }
                }
            }
            libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr => {
                if arguments[3] > MAX_ATTRIBUTE_BYTES {
                    return Err(io::Error::from_raw_os_error(libc::E2BIG));
                }
                let length = usize::try_from(arguments[3]).unwrap_or(0);
                let value = memory.read_exact(arguments[2], length)?;
                let (of, name) = (attribute_of()?, memory.read_path(arguments[1])?);
                Operation::SetAttribute { of, name, value: Some((value, number(4))) }
            }
            libc::SYS_removexattr | libc::SYS_lremovexattr | libc::SYS_fremovexattr => {
                let (of, name) = (attribute_of()?, memory.read_path(arguments[1])?);
                Operation::SetAttribute { of, name, value: None }
            }
            libc::SYS_connect => {
                let length = usize::try_from(arguments[2].min(MAX_ADDRESS_BYTES)).unwrap_or(0);
                let address = memory.read_up_to(arguments[1], length)?;
                Operation::Connect { descriptor: number(0) as i32, address }
            }
            libc::SYS_bind => {
                let length = usize::try_from(arguments[2].min(MAX_ADDRESS_BYTES)).unwrap_or(0);
                let address = memory.read_up_to(arguments[1], length)?;
                Operation::Bind { descriptor: number(0) as i32, address }
            }
            libc::SYS_sendto => {
                let length = usize::try_from(arguments[5].min(MAX_ADDRESS_BYTES)).unwrap_or(0);
                let address = memory.read_up_to(arguments[4], length)?;
                Operation::Send { address, flags: number(3) }
            }
            libc::SYS_socket => Operation::MakeSocket {
                family: number(0) as i32,
                kind: number(1) as i32,
                protocol: number(2) as i32,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => Operation::Open { file: here(0)?, flags: number(1), mode: number(2) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                Operation::Open { file: here(0)?, flags: flags.unsigned_abs(), mode: number(1) }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => Operation::Remove { file: here(0)?, directory: false },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => Operation::Remove { file: here(0)?, directory: true },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => Operation::Rename { from: here(0)?, to: here(1)?, flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => Operation::Rename { from: at(0, 1)?, to: at(2, 3)?, flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => Operation::Link { from: here(0)?, to: here(1)?, flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => {
                Operation::Symlink { target: memory.read_path(arguments[0])?, at: here(1)? }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => Operation::MakeDirectory { at: here(0)?, mode: number(1) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => {
                Operation::MakeNode { at: here(0)?, mode: number(1), device: arguments[2] }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => {
                Operation::ChangeMode { file: here(0)?, mode: number(1), follow: true }
            }
            _ => return Ok(None),
        }))
    }
}
