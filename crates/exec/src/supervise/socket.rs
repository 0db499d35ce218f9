//! Connects sockets for a command. A local socket is connected to only if a command of the session listens
//! on it: a program outside may do anything for those who reach it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fstat, openat2};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout};
use rustix::process::{chdir, fchdir};

use super::address::{self, Reached};
use super::caller::{Base, is_alone, prepare_mode, reopening_path};
use super::perform::access;
use super::resolve::{GivenPath, LastLink};
use super::sock_diag::SocketName;
use super::{Answer, Call};
use crate::guard::{FileAction, NodeKind};
use crate::refusal::Refusal;
use crate::sandbox::{bind, connect};

/// Whether this process finds the same directory under the path of a name in it.
fn is_same_here(path: &Path, parent: &OwnedFd) -> bool {
    let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    let here =
        path.parent().and_then(|above| openat2(CWD, above, flags, Mode::empty(), resolve).ok());
    let here = here.and_then(|here| fstat(here).ok()).map(identity);
    here.is_some() && here == fstat(parent).ok().map(identity)
}

/// A blocking `connect` waits no longer than this at a time.
const CONNECT_TIME: Duration = Duration::from_millis(100);

/// Connects a blocking socket, or gives up after a short time. `limit` is the time that the caller has set, which is
/// there again afterwards.
fn connect_briefly(
    socket: &OwnedFd,
    address: &[u8],
    limit: Option<Duration>,
) -> rustix::io::Result<()> {
    let time = limit.map_or(CONNECT_TIME, |limit| limit.min(CONNECT_TIME));
    set_socket_timeout(socket, Timeout::Send, Some(time))?;
    let connected = connect(socket, address);
    set_socket_timeout(socket, Timeout::Send, limit)?;
    // An attempt in the network goes on, and is already under way the next time.
    connected.map_err(|errno| if errno == Errno::ALREADY { Errno::INPROGRESS } else { errno })
}

/// Families of the network.
const INTERNET: [i32; 2] = [libc::AF_INET, libc::AF_INET6];

impl Call<'_> {
    pub(super) fn connect(&self, descriptor: i32, address: Vec<u8>) -> rustix::io::Result<Answer> {
        let socket = self.caller.duplicate(descriptor)?;
        self.check_waiting()?;
        let (address, held) = match address::parse(&address) {
            Some(Reached::Path(path)) => {
                let listening = self.find_listening(&path)?;
                (address::of_path(&reopening_path(&listening)), Some(listening))
            }
            Some(Reached::Abstract(name)) => {
                self.check_own(&SocketName::Abstract(name))?;
                (address, None)
            }
            Some(Reached::Network(peer)) => {
                self.tell_unreachable(peer);
                (address, None)
            }
            None => (address, None),
        };
        // The status flags are those of the caller's descriptor, too.
        if fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK) {
            let connected = self.credentials.hold(|| connect(&socket, &address));
            return connected.map(|()| Answer::Value(0));
        }
        let limit = socket_timeout(&socket, Timeout::Send)?;
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.later(socket, move |socket| {
            let _held = &held;
            match connect_briefly(socket, &address, limit) {
                Err(Errno::AGAIN | Errno::INPROGRESS)
                    if until.is_none_or(|until| Instant::now() < until) =>
                {
                    Ok(None)
                }
                connected => connected.map(|()| Some(Answer::Value(0))),
            }
        })
    }

    /// Opens the socket at a path, if a command of the session listens on it.
    fn find_listening(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let given = GivenPath { base: Base::WorkingDirectory, path: path.to_owned() };
        let found = self.resolver.resolve(&given, LastLink::Follow)?;
        let (real, kind) = (found.path()?, found.kind());
        let target = found.target.ok_or(Errno::NOENT)?;
        if kind != Some(FileType::Socket) {
            return Err(Errno::CONNREFUSED);
        }
        let device = self.caller.device_of(&target).ok_or(Errno::ACCESS)?;
        let name = SocketName::File { device, inode: fstat(&target)?.st_ino };
        self.check_own(&name).inspect_err(|_| {
            if !address::is_asked_in_passing(&real) {
                self.supervised.tell(Refusal::Socket(real));
            }
        })?;
        Ok(target)
    }

    /// Gives a local socket a name. In directories of the session, which no other program uses, the kernel
    /// goes on with the call. In the workspace, where Landlock refuses that, the name is decided on.
    pub(super) fn bind(&self, descriptor: i32, address: &[u8]) -> rustix::io::Result<Answer> {
        let Some(Reached::Path(path)) = address::parse(address) else {
            return Ok(Answer::Continue);
        };
        let given = GivenPath { base: Base::WorkingDirectory, path };
        let found = self.resolver.resolve(&given, LastLink::Name)?;
        let path = found.path()?;
        if !self.supervised.is_shared(&path) {
            return Ok(Answer::Continue);
        }
        if found.target.is_some() {
            return Err(Errno::ADDRINUSE);
        }
        let socket = self.caller.duplicate(descriptor)?;
        self.check_waiting()?;
        self.ask_without_review(&[access(&path, &found, FileAction::Create(NodeKind::Special))])?;
        let (parent, name) = found.place()?;
        let _ = prepare_mode(Mode::empty(), self.caller.umask());
        // The socket keeps the name that it is bound by. The directory of this thread is its own.
        let (directory, name) = match given.path.is_absolute() && is_same_here(&given.path, parent)
        {
            true => (None, given.path.clone()),
            false => (Some(parent), name.into()),
        };
        if directory.is_some() && !is_alone() {
            return Err(Errno::ACCESS);
        }
        if let Some(directory) = directory {
            fchdir(directory)?;
        }
        let bound = self.credentials.hold(|| bind(&socket, &address::of_path(&name)));
        if directory.is_some() {
            let _ = chdir("/");
        }
        bound.map(|()| Answer::Value(0))
    }

    fn check_own(&self, name: &SocketName) -> rustix::io::Result<()> {
        let own = self.supervised.sockets.is_own(name).unwrap_or(false);
        if own { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// A datagram to an address. It stays in the session's own network if that is all there is.
    pub(super) fn send(&self, address: &[u8]) -> Answer {
        if let Some(Reached::Network(peer)) = address::parse(address) {
            self.tell_unreachable(peer);
        }
        Answer::Continue
    }

    fn tell_unreachable(&self, peer: std::net::SocketAddr) {
        if self.supervised.has_no_network()
            && let Some(refusal) = address::refusal(peer)
        {
            self.supervised.tell(refusal);
        }
    }

    /// Libraries ask local services in passing, and go on without them.
    pub(super) fn refuse_socket(&self, family: i32) -> Answer {
        if INTERNET.contains(&family) {
            self.supervised.tell(Refusal::AnySocket);
        }
        Answer::Error(Errno::PERM)
    }
}
