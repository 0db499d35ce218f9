//! Which of the calls that wait a sandbox refuses, so that a reply can say it.
//!
//! That a call was refused is not said to anybody who only let it go on. But what refuses is of a kind that
//! can be asked: the mount that a path leads to is read-only or not, a network has an address or not.
//! Paths are looked up as the command sees them, from the root of its view; and where files may lie on a
//! server, only in what the kernel has at hand: whoever waits for one keeps all commands waiting.
//!
//! What a command shows is its own words, and may be a lie that changes before the call is made. It is
//! evidence for a reply, and nothing is decided by it.

mod address;
mod distant;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes,
    StatxFlags, fstat, fstatvfs, openat2, statx,
};
use rustix::io::Errno;

use self::address::Reached;
use super::kernel::Waiting;
use super::level::Level;
use super::{Confinement, Sandbox};
use crate::refusal::{Deed, REFUSALS_TOLD, Refusal, Unwritable};
use crate::touch::{Name, Use, changes, has, path_of};

/// So many paths that could not be looked up at once are looked up once more.
const UNSURE: usize = 64;

/// What the sandbox of one command refuses.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// The root of the files as the command sees them.
    root: Option<OwnedFd>,
    sandbox: Sandbox,
    level: Level,
    /// What may be written where there are no mounts to tell, under its real names.
    written: Vec<PathBuf>,
    told: HashSet<Refusal>,
    unsure: Vec<Tried>,
    /// Whether a path may lead to where somebody must be asked; found out when it matters.
    distant: OnceCell<bool>,
}

/// What a call is about to try.
#[derive(Default)]
pub(crate) struct Attempt {
    thread: i32,
    tried: Vec<Tried>,
    reached: Option<Reached>,
}

/// A path, and what was to be done with it.
#[derive(Debug)]
struct Tried {
    path: PathBuf,
    how: How,
    /// Its directory, if that could be looked up and the path could not: the way there may change.
    directory: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// To open for writing.
    Open {
        makes: bool,
        only_makes: bool,
    },
    /// To make a file without a name in a directory.
    Inside,
    /// To make a name that must be new.
    Make,
    Remove,
    Rename,
    /// To rename something else to it.
    Replace,
    /// To change what is there.
    Change,
}

impl How {
    /// Whether a link at the end of the path is followed.
    fn follows(self) -> bool {
        matches!(self, How::Open { .. } | How::Inside | How::Change)
    }

    /// Whether it goes on where there is nothing.
    fn makes(self) -> bool {
        matches!(self, How::Open { makes: true, .. } | How::Make | How::Replace)
    }

    /// The refusal of it.
    fn refusal(self, path: PathBuf, why: Unwritable) -> Refusal {
        match self {
            How::Open { .. } | How::Inside => Refusal::Write(path, why),
            How::Make => Refusal::Change(Deed::Make, path, why),
            How::Remove => Refusal::Change(Deed::Remove, path, why),
            How::Rename | How::Replace => Refusal::Change(Deed::Rename, path, why),
            How::Change => Refusal::Change(Deed::Change, path, why),
        }
    }
}

/// What became of it.
enum Fate {
    Refused(Refusal),
    /// Not the sandbox's doing.
    Fine,
    /// The kernel does not have at hand what tells.
    Unsure,
}

impl Refusals {
    pub(crate) fn new(confinement: &Confinement) -> Refusals {
        let level = confinement.level;
        let mut written = Vec::new();
        if level == Level::Landlock {
            let tmp = confinement.sandbox.tmp.as_path();
            let all = confinement.written().chain([tmp]);
            written.extend(all.filter_map(|path| fs::canonicalize(path).ok()));
        }
        let sandbox = confinement.sandbox.clone();
        let (told, unsure, distant) = (HashSet::new(), Vec::new(), OnceCell::new());
        Refusals { root: None, sandbox, level, written, told, unsure, distant }
    }

    /// Whether enough was told.
    pub(crate) fn are_told(&self) -> bool {
        self.told.len() > REFUSALS_TOLD
    }

    /// What a call is about to try, with the names that it gives; read while it waits.
    pub(crate) fn attempt(&self, waiting: &Waiting, names: &[Name]) -> Attempt {
        if self.are_told() {
            return Attempt::default();
        }
        let possible = names.iter().all(|name| name.meant.follows() || name.is_proper());
        let names = if possible && self.level >= Level::Landlock { names } else { &[] };
        let tried = names.iter().filter_map(tried).collect();
        Attempt { thread: waiting.thread, tried, reached: address::reached(waiting) }
    }

    /// Tells what of it will be refused, if that is new. To be asked before the call goes on: what a path
    /// leads to may change then.
    pub(crate) fn judge(&mut self, attempt: Attempt, tell: &mut dyn FnMut(Refusal)) {
        let Attempt { thread, mut tried, reached } = attempt;
        if self.root.is_none() && (!tried.is_empty() || reached.is_some()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.root = rustix::fs::open(format!("/proc/{thread}/root"), flags, Mode::empty()).ok();
        }
        if let Some(refusal) = reached.and_then(|reached| self.of_reached(reached)) {
            self.tell(refusal, tell);
        }
        if let [from, to] = tried.as_slice()
            && from.how == How::Rename
            && !self.is_same_mount(from, to)
        {
            // That it cannot be renamed to there is not for want of a right.
            tried.clear();
        }
        for tried in tried {
            let fate = self.fate(&tried);
            self.note(tried, fate, tell);
        }
        if !self.unsure.is_empty() {
            let oldest = self.unsure.remove(0);
            let fate = self.fate(&oldest);
            self.note(oldest, fate, tell);
        }
    }

    /// A socket was refused, by whoever listens.
    pub(crate) fn of_socket(&mut self, tell: &mut dyn FnMut(Refusal)) {
        self.tell(Refusal::AnySocket, tell);
    }

    /// Looks up once more what could not be told about before.
    pub(crate) fn settle(&mut self, tell: &mut dyn FnMut(Refusal)) {
        for one in std::mem::take(&mut self.unsure) {
            if let Fate::Refused(refusal) = self.fate(&one) {
                self.tell(refusal, tell);
            }
        }
    }

    fn tell(&mut self, refusal: Refusal, tell: &mut dyn FnMut(Refusal)) {
        if !self.are_told() && self.told.insert(refusal.clone()) {
            tell(refusal);
        }
    }

    fn note(&mut self, mut tried: Tried, fate: Fate, tell: &mut dyn FnMut(Refusal)) {
        match fate {
            Fate::Refused(refusal) => self.tell(refusal, tell),
            Fate::Unsure if self.unsure.len() < UNSURE => {
                if let (None, Some(parent)) = (&tried.directory, tried.path.parent()) {
                    tried.directory = self.look_up(parent, true).ok();
                }
                self.unsure.push(tried);
            }
            Fate::Unsure | Fate::Fine => {}
        }
    }

    fn fate(&self, tried: &Tried) -> Fate {
        let how = tried.how;
        let found = match (&tried.directory, tried.path.file_name()) {
            (Some(directory), Some(name)) => {
                self.look_up_from(directory, Path::new(name), ResolveFlags::BENEATH, how.follows())
            }
            _ => self.look_up(&tried.path, how.follows()),
        };
        let found = match found {
            Ok(found) => found,
            Err(Errno::NOENT) => return self.fate_of_new(tried),
            Err(Errno::AGAIN) => return Fate::Unsure,
            Err(_) => return Fate::Fine,
        };
        let kind = fstat(&found).map(|status| FileType::from_raw_mode(status.st_mode));
        let would_change = match how {
            How::Open { makes: true, only_makes: true } | How::Make => false,
            How::Open { .. } => kind == Ok(FileType::RegularFile),
            How::Inside => kind == Ok(FileType::Directory),
            // Landlock knows nothing of modes.
            How::Change => self.level.has_view(),
            How::Remove | How::Rename | How::Replace => {
                return match self.held(&found, how) {
                    Some(refusal) => Fate::Refused(refusal),
                    None => self.fate_in_directory(tried),
                };
            }
        };
        let refusal = would_change.then(|| self.refused(&found, None, how)).flatten();
        refusal.map_or(Fate::Fine, Fate::Refused)
    }

    /// What becomes of a name that is not there.
    fn fate_of_new(&self, tried: &Tried) -> Fate {
        if tried.how.makes() { self.fate_in_directory(tried) } else { Fate::Fine }
    }

    /// What becomes of a name that is made in its directory, or removed from it.
    fn fate_in_directory(&self, tried: &Tried) -> Fate {
        let (Some(parent), Some(name)) = (tried.path.parent(), tried.path.file_name()) else {
            return Fate::Fine;
        };
        let fate = |directory: &OwnedFd| {
            let refusal = self.refused(directory, Some(Path::new(name)), tried.how);
            refusal.map_or(Fate::Fine, Fate::Refused)
        };
        if let Some(directory) = &tried.directory {
            return fate(directory);
        }
        match self.look_up(parent, true) {
            Ok(directory) => fate(&directory),
            Err(Errno::AGAIN) => Fate::Unsure,
            Err(_) => Fate::Fine,
        }
    }

    /// Whether something cannot be written; `name` is one to be made in it.
    fn refused(&self, found: &OwnedFd, name: Option<&Path>, how: How) -> Option<Refusal> {
        let real = path_of(found)?;
        let refused = match self.level {
            // What is read-only without us is not refused by us.
            Level::Namespaces | Level::Bubblewrap => {
                is_read_only(found) && !look_up_outside(&real).is_ok_and(|own| is_read_only(&own))
            }
            Level::Landlock => !self.written.iter().any(|path| real.starts_with(path)),
            Level::Calls | Level::Nothing => false,
        };
        let path = name.map_or_else(|| real.clone(), |name| real.join(name));
        refused.then(|| {
            let why = self.why(&path).unwrap_or(Unwritable::Outside);
            how.refusal(path, why)
        })
    }

    /// Whether something is a mount of ours, which can be neither removed nor renamed.
    fn held(&self, found: &OwnedFd, how: How) -> Option<Refusal> {
        if !self.level.has_view() || !is_mount(found) {
            return None;
        }
        let path = path_of(found)?;
        let by_us = !look_up_outside(&path).is_ok_and(|own| is_mount(&own));
        by_us.then(|| {
            let why = self.why(&path).unwrap_or(Unwritable::Holding);
            how.refusal(path, why)
        })
    }

    /// Whether what is renamed stays in one mount: else it is copied by whoever tried, and removed.
    fn is_same_mount(&self, from: &Tried, to: &Tried) -> bool {
        let mount = |tried: &Tried| {
            let directory = self.look_up(tried.path.parent()?, true).ok()?;
            Some(statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?.stx_mnt_id)
        };
        mount(from).is_some_and(|from| mount(to) == Some(from))
    }

    /// What of the sandbox it is beneath; nothing, if it is simply outside.
    fn why(&self, path: &Path) -> Option<Unwritable> {
        let beneath = |list: &[PathBuf]| {
            let is = |top: &PathBuf| path.starts_with(top);
            list.iter().any(|top| is(top) || fs::canonicalize(top).is_ok_and(|top| is(&top)))
        };
        if beneath(&self.sandbox.protected) {
            Some(Unwritable::Protected)
        } else if beneath(&self.sandbox.hidden) {
            Some(Unwritable::Hidden)
        } else if beneath(&self.sandbox.read_only) {
            Some(Unwritable::ReadOnly)
        } else {
            None
        }
    }

    /// Whether somebody cannot be reached.
    fn of_reached(&self, reached: Reached) -> Option<Refusal> {
        match reached {
            Reached::Network(address) => address::refusal(address),
            Reached::Socket(path) => {
                let is_socket = |found: &OwnedFd| {
                    let kind = fstat(found).map(|status| FileType::from_raw_mode(status.st_mode));
                    kind == Ok(FileType::Socket)
                };
                let inside = self.look_up(&path, true);
                let inside = inside.is_ok_and(|found| is_socket(&found));
                let outside = look_up_outside(&path).is_ok_and(|found| is_socket(&found));
                (outside && !inside).then_some(Refusal::Socket(path))
            }
        }
    }

    fn look_up(&self, path: &Path, follow: bool) -> rustix::io::Result<OwnedFd> {
        let root = self.root.as_ref().ok_or(Errno::SRCH)?;
        self.look_up_from(root, path, ResolveFlags::IN_ROOT, follow)
    }

    /// Looks a path up in what the kernel has at hand; and in what it must look for, if that takes no
    /// longer than a disk does.
    fn look_up_from(
        &self,
        from: &OwnedFd,
        path: &Path,
        resolve: ResolveFlags,
        follow: bool,
    ) -> rustix::io::Result<OwnedFd> {
        match look_up(from, path, resolve | ResolveFlags::CACHED, follow) {
            Err(Errno::AGAIN) if !self.distant.get_or_init(distant::files_may_be_distant) => {
                look_up(from, path, resolve, follow)
            }
            found => found,
        }
    }
}

/// Opens a path without doing anything to what is there.
fn look_up(
    from: impl AsFd,
    path: &Path,
    resolve: ResolveFlags,
    follow: bool,
) -> rustix::io::Result<OwnedFd> {
    let resolve = resolve | ResolveFlags::NO_MAGICLINKS;
    let last = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    openat2(from, path, OFlags::PATH | OFlags::CLOEXEC | last, Mode::empty(), resolve)
}

/// The same as we see it, outside.
fn look_up_outside(path: &Path) -> rustix::io::Result<OwnedFd> {
    look_up(CWD, path, ResolveFlags::CACHED, true)
}

fn is_read_only(found: &OwnedFd) -> bool {
    fstatvfs(found).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether something is mounted just there.
fn is_mount(found: &OwnedFd) -> bool {
    let about = statx(found, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    about.is_ok_and(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The path that a call would change, and how.
fn tried(name: &Name) -> Option<Tried> {
    let how = match name.meant {
        Use::Open(flags) => opened(flags)?,
        Use::Make => How::Make,
        Use::Remove => How::Remove,
        Use::Rename => How::Rename,
        Use::Replace => How::Replace,
        Use::Change => How::Change,
        Use::Link => return None,
    };
    let path = name.path().filter(|path| !is_descriptor(path))?;
    Some(Tried { path, how, directory: None })
}

/// Whether a path is that of something that a process has open: it was looked at when it was opened. Every
/// shell of ours ends by writing to one.
fn is_descriptor(path: &Path) -> bool {
    let mut parts = path.iter().skip(1);
    parts.next().is_some_and(|first| first == "proc")
        && parts.nth(1).is_some_and(|part| part == "fd")
}

/// What opening with these flags is.
fn opened(flags: u64) -> Option<How> {
    let tmpfile = u64::from(libc::O_TMPFILE.unsigned_abs());
    if flags & tmpfile == tmpfile {
        return Some(How::Inside);
    }
    let (makes, only_makes) = (has(flags, libc::O_CREAT), has(flags, libc::O_EXCL));
    changes(flags).then_some(How::Open { makes, only_makes })
}
