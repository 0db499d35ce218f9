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
    CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstat, fstatvfs, openat2,
};
use rustix::io::Errno;

use self::address::Reached;
use super::kernel::Waiting;
use super::level::Level;
use super::{Confinement, Sandbox};
use crate::refusal::{REFUSALS_TOLD, Refusal, Unwritable};
use crate::touch::{Name, changes, has, path_of};

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
    tried: Option<Tried>,
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
    Open { makes: bool, only_makes: bool },
    /// To make a file without a name in a directory.
    Inside,
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
        let tried = match names {
            [name] if self.level >= Level::Landlock => tried(name),
            _ => None,
        };
        Attempt { thread: waiting.thread, tried, reached: address::reached(waiting) }
    }

    /// Tells what of it will be refused, if that is new. To be asked before the call goes on: what a path
    /// leads to may change then.
    pub(crate) fn judge(&mut self, attempt: Attempt, tell: &mut dyn FnMut(Refusal)) {
        let Attempt { thread, tried, reached } = attempt;
        if self.root.is_none() && (tried.is_some() || reached.is_some()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.root = rustix::fs::open(format!("/proc/{thread}/root"), flags, Mode::empty()).ok();
        }
        if let Some(refusal) = reached.and_then(|reached| self.of_reached(reached)) {
            self.tell(refusal, tell);
        }
        if let Some(tried) = tried {
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
                    tried.directory = self.look_up(parent).ok();
                }
                self.unsure.push(tried);
            }
            Fate::Unsure | Fate::Fine => {}
        }
    }

    fn fate(&self, tried: &Tried) -> Fate {
        let found = match (&tried.directory, tried.path.file_name()) {
            (Some(directory), Some(name)) => {
                self.look_up_from(directory, Path::new(name), ResolveFlags::BENEATH)
            }
            _ => self.look_up(&tried.path),
        };
        let found = match found {
            Ok(found) => found,
            Err(Errno::NOENT) => return self.fate_of_new(tried),
            Err(Errno::AGAIN) => return Fate::Unsure,
            Err(_) => return Fate::Fine,
        };
        let kind = fstat(&found).map(|status| FileType::from_raw_mode(status.st_mode));
        let would_change = match tried.how {
            How::Open { makes: true, only_makes: true } => false,
            How::Open { .. } => kind == Ok(FileType::RegularFile),
            How::Inside => kind == Ok(FileType::Directory),
        };
        let refusal = would_change.then(|| self.refused(&found, None)).flatten();
        refusal.map_or(Fate::Fine, Fate::Refused)
    }

    /// What becomes of a name that is made in its directory.
    fn fate_of_new(&self, tried: &Tried) -> Fate {
        let makes = matches!(tried.how, How::Open { makes: true, .. });
        let (Some(parent), Some(name), true) = (tried.path.parent(), tried.path.file_name(), makes)
        else {
            return Fate::Fine;
        };
        let fate = |directory: &OwnedFd| {
            self.refused(directory, Some(Path::new(name))).map_or(Fate::Fine, Fate::Refused)
        };
        if let Some(directory) = &tried.directory {
            return fate(directory);
        }
        match self.look_up(parent) {
            Ok(directory) => fate(&directory),
            Err(Errno::AGAIN) => Fate::Unsure,
            Err(_) => Fate::Fine,
        }
    }

    /// Whether something cannot be written; `name` is one to be made in it.
    fn refused(&self, found: &OwnedFd, name: Option<&Path>) -> Option<Refusal> {
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
            let why = self.why(&path);
            Refusal::Write(path, why)
        })
    }

    fn why(&self, path: &Path) -> Unwritable {
        let beneath = |list: &[PathBuf]| {
            let is = |top: &PathBuf| path.starts_with(top);
            list.iter().any(|top| is(top) || fs::canonicalize(top).is_ok_and(|top| is(&top)))
        };
        if beneath(&self.sandbox.protected) {
            Unwritable::Protected
        } else if beneath(&self.sandbox.hidden) {
            Unwritable::Hidden
        } else if beneath(&self.sandbox.read_only) {
            Unwritable::ReadOnly
        } else {
            Unwritable::Outside
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
                let inside = self.look_up(&path);
                let inside = inside.is_ok_and(|found| is_socket(&found));
                let outside = look_up_outside(&path).is_ok_and(|found| is_socket(&found));
                (outside && !inside).then_some(Refusal::Socket(path))
            }
        }
    }

    fn look_up(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let root = self.root.as_ref().ok_or(Errno::SRCH)?;
        self.look_up_from(root, path, ResolveFlags::IN_ROOT)
    }

    /// Looks a path up in what the kernel has at hand; and in what it must look for, if that takes no
    /// longer than a disk does.
    fn look_up_from(
        &self,
        from: &OwnedFd,
        path: &Path,
        resolve: ResolveFlags,
    ) -> rustix::io::Result<OwnedFd> {
        match look_up(from, path, resolve | ResolveFlags::CACHED) {
            Err(Errno::AGAIN) if !self.distant.get_or_init(distant::files_may_be_distant) => {
                look_up(from, path, resolve)
            }
            found => found,
        }
    }
}

/// Opens a path without doing anything to what is there.
fn look_up(from: impl AsFd, path: &Path, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = resolve | ResolveFlags::NO_MAGICLINKS;
    openat2(from, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// The same as we see it, outside.
fn look_up_outside(path: &Path) -> rustix::io::Result<OwnedFd> {
    look_up(CWD, path, ResolveFlags::CACHED)
}

fn is_read_only(found: &OwnedFd) -> bool {
    fstatvfs(found).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The path that a call would open to change it.
fn tried(name: &Name) -> Option<Tried> {
    let how = opened(name.opened?)?;
    Some(Tried { path: name.path()?, how, directory: None })
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
