//! Builds the mount layout with the system's bubblewrap, where only bubblewrap may create namespaces: it is
//! setuid, or the system allows it to create user namespaces.
//!
//! bubblewrap gets the layout as arguments. Sources that are mounted elsewhere or writable are passed as
//! descriptors, so that nothing can be swapped between our check of a path and its mount. The mounts over
//! hidden paths are verified again from inside ([`BwrapChecks::verify`]).
//!
//! bubblewrap fails if a hidden file vanishes while it works. The shim then tries again.
//!
//! Its last argument is this program, by descriptor, which does the rest: limits, Landlock, the filter.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, seek};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::mounts::hide_and_pin::{InnerMount, check_covered};
use super::mounts::layout::{LayerKind, MountPlan, RESOLVER_CONTENT, Source};
use super::{PinnedPath, Sandbox};
use crate::path_encoding;
use crate::setup_error::{SetupError, context, path_context};

/// Paths of bubblewrap. The caller's `PATH` is never searched.
const BWRAP_PATHS: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Arguments besides the mounts. `--as-pid-1`: the first process inside is ours, and reaps.
const BASE_ARGS: [&str; 8] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--chdir",
];

/// More descriptors than a layout needs.
const WANTED_NOFILE: u64 = 16 << 10;

/// The path of this system's bubblewrap. `None` if there is none that only root can replace.
pub(crate) fn find() -> Option<PathBuf> {
    let real = BWRAP_PATHS.iter().filter_map(|place| fs::canonicalize(place).ok());
    real.into_iter().find(|program| program.ancestors().all(only_root_can_write))
}

/// Whether it always runs with the privileges of root.
pub(crate) fn is_setuid(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|about| about.mode() & libc::S_ISUID != 0)
}

fn only_root_can_write(path: &Path) -> bool {
    let others = libc::S_IWGRP | libc::S_IWOTH;
    fs::metadata(path).is_ok_and(|about| about.uid() == 0 && about.mode() & others == 0)
}

/// A bubblewrap command line for a sandbox.
pub(crate) struct BwrapCommand {
    program: PathBuf,
    /// Each argument ends with a zero byte.
    args: Vec<u8>,
    /// The descriptors that the arguments name by number. bubblewrap inherits them.
    inherited: Vec<OwnedFd>,
    checks: BwrapChecks,
}

/// What the first process inside checks and restores.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct BwrapChecks {
    /// Paths that must be hidden.
    #[serde(with = "path_encoding::paths")]
    hidden: Vec<PathBuf>,
    /// The files that the roots must be.
    pinned: Vec<PinnedPath>,
    /// The original limit on open files, if it was raised.
    nofile_limit: Option<u64>,
}

impl BwrapCommand {
    pub(crate) fn new(sandbox: &Sandbox) -> Result<BwrapCommand, SetupError> {
        let program = find().ok_or(io::Error::from_raw_os_error(libc::ENOENT));
        let program =
            path_context("find a bubblewrap owned by root in", Path::new("/usr/bin"), program)?;
        let plan = MountPlan::of(sandbox)?;
        let nofile_limit = context("raise the limit on open files", raise_own_nofile_limit())?;
        let pinned = sandbox.writable.iter().chain(&sandbox.read_only).cloned().collect();
        let checks = BwrapChecks { hidden: Vec::new(), pinned, nofile_limit };
        let mut wrapped = BwrapCommand { program, args: Vec::new(), inherited: Vec::new(), checks };
        wrapped.add_args(&BASE_ARGS);
        wrapped.add_args(&["/"]);
        if sandbox.network.is_private() {
            wrapped.add_args(&["--unshare-net"]);
        }
        wrapped.add_plan(&plan)?;
        Ok(wrapped)
    }

    /// Returns the command, the descriptors to keep open until it was started, and the checks for the process
    /// inside. This program and `arguments` come last on the command line.
    pub(crate) fn command(
        mut self,
        arguments: impl Iterator<Item = OsString>,
    ) -> Result<(std::process::Command, Vec<OwnedFd>, BwrapChecks), SetupError> {
        let own = open("/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let own = self.inherit(context("open this program", own)?)?;
        let args = context("store the arguments", memfd_with(&self.args))?;
        let args = self.inherit(args)?;
        let mut command = std::process::Command::new(&self.program);
        command.args(["--args", &args, "--"]).arg(format!("/proc/self/fd/{own}"));
        command.args(arguments);
        Ok((command, self.inherited, self.checks))
    }

    fn add_plan(&mut self, plan: &MountPlan) -> Result<(), SetupError> {
        self.add_args(&["--ro-bind", "/", "/"]);
        let mut empty_directories = Vec::new();
        for layer in &plan.layers {
            let path = &layer.path;
            match &layer.kind {
                LayerKind::Writable(source) => self.add_bind("--bind-fd", source, path)?,
                LayerKind::ReadOnly(source) => self.add_bind("--ro-bind-fd", source, path)?,
                LayerKind::Tmpfs => self.add_args_and_path(&["--perms", "0755", "--tmpfs"], path),
                LayerKind::Symlink(target) => {
                    self.add_args_and_path(&["--symlink"], target);
                    self.add_arg(path.as_os_str());
                }
                LayerKind::Devices => self.add_args_and_path(&["--dev"], path),
                LayerKind::EmptyDirectory => {
                    self.add_empty_directory(path);
                    empty_directories.push(path);
                }
                LayerKind::UnreadableFile => self.add_unreadable_file(path),
                LayerKind::ResolverFile => {
                    let content =
                        context("hold the DNS configuration", memfd_with(RESOLVER_CONTENT))?;
                    let number = self.inherit(content)?;
                    self.add_args_and_path(&["--ro-bind-data", &number], path);
                }
            }
        }
        for inner_mount in &plan.inner_mounts {
            match inner_mount {
                InnerMount::Pinned(path) => {
                    let source = Source { path: path.clone(), identity: None };
                    self.add_bind("--bind-fd", &source, path)?;
                }
                InnerMount::Hidden(path) if path.is_dir() => {
                    self.add_empty_directory(path);
                    empty_directories.push(path);
                }
                InnerMount::Hidden(path) => self.add_unreadable_file(path),
            }
            if let InnerMount::Hidden(path) = inner_mount {
                self.checks.hidden.push(path.clone());
            }
        }
        for path in empty_directories {
            self.add_args_and_path(&["--remount-ro"], path);
        }
        // Read-only: root could change settings of the whole system there.
        self.add_args(&["--proc", "/proc", "--remount-ro", "/proc"]);
        Ok(())
    }

    fn add_bind(&mut self, how: &str, source: &Source, path: &Path) -> Result<(), SetupError> {
        let number = self.inherit(source.open()?)?;
        self.add_args_and_path(&[how, &number], path);
        Ok(())
    }

    fn add_empty_directory(&mut self, path: &Path) {
        self.add_args_and_path(&["--perms", "0555", "--tmpfs"], path);
    }

    /// Mounts a device without device access: it cannot be opened.
    fn add_unreadable_file(&mut self, path: &Path) {
        self.add_args_and_path(&["--ro-bind", "/dev/null"], path);
    }

    fn inherit(&mut self, descriptor: OwnedFd) -> Result<String, SetupError> {
        context("pass on a file", fcntl_setfd(&descriptor, FdFlags::empty()))?;
        let number = descriptor.as_raw_fd().to_string();
        self.inherited.push(descriptor);
        Ok(number)
    }

    fn add_args_and_path(&mut self, args: &[&str], path: &Path) {
        self.add_args(args);
        self.add_arg(path.as_os_str());
    }

    fn add_args(&mut self, args: &[&str]) {
        args.iter().for_each(|word| self.add_arg(OsStr::new(word)));
    }

    fn add_arg(&mut self, word: &OsStr) {
        self.args.extend_from_slice(word.as_bytes());
        self.args.push(0);
    }
}

impl BwrapChecks {
    /// Fails if a mount is not where it belongs. Must be called inside.
    pub(crate) fn verify(&self) -> Result<(), SetupError> {
        for path in &self.hidden {
            path_context("hide", path, check_covered(path))?;
        }
        for path in &self.pinned {
            Source { path: path.path.clone(), identity: Some(path.identity) }.open()?;
        }
        if let Some(given) = self.nofile_limit {
            let limit =
                Rlimit { current: Some(given), maximum: getrlimit(Resource::Nofile).maximum };
            context("restore the limit on open files", setrlimit(Resource::Nofile, limit))?;
        }
        Ok(())
    }
}

/// Raises the limit on open files, for one descriptor per mount. Returns the previous limit if it was raised.
fn raise_own_nofile_limit() -> io::Result<Option<u64>> {
    let given = getrlimit(Resource::Nofile);
    let wanted = given.maximum.map_or(WANTED_NOFILE, |most| most.min(WANTED_NOFILE));
    let Some(current) = given.current.filter(|&current| current < wanted) else {
        return Ok(None);
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: given.maximum })?;
    Ok(Some(current))
}

/// A memory file with some content, positioned at its start.
fn memfd_with(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("arguments", MemfdFlags::CLOEXEC)?;
    fs::File::from(file.try_clone()?).write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}
