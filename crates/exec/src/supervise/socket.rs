//! Connects sockets for a command. A Unix socket is connected only if a command of the session listens on it:
//! a program outside may do anything for its clients.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fstat, openat2};
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout, socket_type};
use rustix::process::{chdir, fchdir};

use super::address::{self, Peer};
use super::caller::{Base, apply_umask, has_own_fs, proc_fd_path};
use super::perform::access;
use super::resolve::{FinalSymlink, GivenPath};
use super::sock_diag::SocketName;
use super::{Call, Response};
use crate::gateway::NoRoute;
use crate::guard::{FileAction, NodeKind};
use crate::refusal::Refusal;
use crate::sandbox::network_namespace::is_stand_in;
use crate::sandbox::{bind, connect};

/// Whether the parent of a path is the same directory for this process.
fn is_same_directory_here(path: &Path, parent: &OwnedFd) -> bool {
    let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    let here =
        path.parent().and_then(|above| openat2(CWD, above, flags, Mode::empty(), resolve).ok());
    let here = here.and_then(|here| fstat(here).ok()).map(identity);
    here.is_some() && here == fstat(parent).ok().map(identity)
}

/// The time limit of one attempt of a blocking `connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

/// Connects a blocking socket, or gives up after a short time. `limit` is the caller's own timeout, which is
/// restored afterwards.
fn connect_with_timeout(
    socket: &OwnedFd,
    address: &[u8],
    limit: Option<Duration>,
) -> rustix::io::Result<()> {
    let time = limit.map_or(CONNECT_TIMEOUT, |limit| limit.min(CONNECT_TIMEOUT));
    set_socket_timeout(socket, Timeout::Send, Some(time))?;
    let connected = connect(socket, address);
    set_socket_timeout(socket, Timeout::Send, limit)?;
    // A connection attempt on the network continues, and is already under way at the next attempt.
    connected.map_err(|errno| if errno == Errno::ALREADY { Errno::INPROGRESS } else { errno })
}

/// The families of the internet protocols.
const INTERNET_FAMILIES: [i32; 2] = [libc::AF_INET, libc::AF_INET6];

impl Call<'_> {
    pub(super) fn connect(
        &self,
        descriptor: i32,
        address: Vec<u8>,
    ) -> rustix::io::Result<Response> {
        let socket = self.caller.duplicate(descriptor)?;
        self.check_still_pending()?;
        let (address, listening) = match address::parse(&address) {
            Some(Peer::Path(path)) => {
                let listening = self.open_session_socket(&path)?;
                (address::unix_address(&proc_fd_path(&listening)), Some(listening))
            }
            Some(Peer::Abstract(name)) => {
                self.check_session_socket(&SocketName::Abstract(name))?;
                (address, None)
            }
            Some(Peer::Network(peer)) => (self.route(&socket, peer)?.unwrap_or(address), None),
            None => (address, None),
        };
        // The status flags are shared with the caller's descriptor.
        if fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK) {
            let connected = self.credentials.run_as(|| connect(&socket, &address));
            return connected.map(|()| Response::Value(0));
        }
        let limit = socket_timeout(&socket, Timeout::Send)?;
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.retry_on_thread(socket, move |socket| {
            let _kept_open = &listening;
            match connect_with_timeout(socket, &address, limit) {
                Err(Errno::AGAIN | Errno::INPROGRESS)
                    if until.is_none_or(|until| Instant::now() < until) =>
                {
                    Ok(None)
                }
                connected => connected.map(|()| Some(Response::Value(0))),
            }
        })
    }

    /// Opens the socket at a path. Fails if no command of the session listens on it.
    fn open_session_socket(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let given = GivenPath { base: Base::WorkingDirectory, path: path.to_owned() };
        let found = self.resolver.resolve(&given, FinalSymlink::Follow)?;
        let (real, kind) = (found.path()?, found.kind());
        let target = found.target.ok_or(Errno::NOENT)?;
        if kind != Some(FileType::Socket) {
            return Err(Errno::CONNREFUSED);
        }
        let device = self.caller.device_of(&target).ok_or(Errno::ACCESS)?;
        let name = SocketName::File { device, inode: fstat(&target)?.st_ino };
        self.check_session_socket(&name).inspect_err(|_| {
            if !address::is_optional_service(&real) {
                self.supervised.report(Refusal::Socket(real));
            }
        })?;
        Ok(target)
    }

    /// Binds a Unix socket. In directories of the session, which no other program uses, the kernel continues
    /// the call. In the workspace, where Landlock denies that, the guard decides about the path.
    pub(super) fn bind(&self, descriptor: i32, address: &[u8]) -> rustix::io::Result<Response> {
        let path = match (address::parse(address), &self.supervised.exit) {
            (Some(Peer::Path(path)), _) => path,
            (Some(Peer::Network(own)), Some(exit)) => {
                exit.before_bind(own);
                return Ok(Response::Continue);
            }
            _ => return Ok(Response::Continue),
        };
        let given = GivenPath { base: Base::WorkingDirectory, path };
        let found = self.resolver.resolve(&given, FinalSymlink::Name)?;
        let path = found.path()?;
        if !self.supervised.is_shared(&path) {
            return Ok(Response::Continue);
        }
        if found.target.is_some() {
            return Err(Errno::ADDRINUSE);
        }
        let socket = self.caller.duplicate(descriptor)?;
        self.check_still_pending()?;
        self.ask_guard_without_review(&[access(
            &path,
            &found,
            FileAction::Create(NodeKind::Special),
        )])?;
        let (parent, name) = found.parent_and_name()?;
        let _ = apply_umask(Mode::empty(), self.caller.umask());
        // The socket keeps the name that it is bound to. This thread has its own working directory.
        let is_here = given.path.is_absolute() && is_same_directory_here(&given.path, parent);
        let (directory, name) =
            if is_here { (None, given.path.clone()) } else { (Some(parent), name.into()) };
        if directory.is_some() && !has_own_fs() {
            return Err(Errno::ACCESS);
        }
        if let Some(directory) = directory {
            fchdir(directory)?;
        }
        let bound = self.credentials.run_as(|| bind(&socket, &address::unix_address(&name)));
        if directory.is_some() {
            let _ = chdir("/");
        }
        bound.map(|()| Response::Value(0))
    }

    fn check_session_socket(&self, name: &SocketName) -> rustix::io::Result<()> {
        let own = self.supervised.sockets.is_session_socket(name).unwrap_or(false);
        if own { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Reports a datagram to an address that cannot be reached. It stays in the session's own network.
    pub(super) fn send(&self, address: &[u8]) -> Response {
        if let Some(Peer::Network(peer)) = address::parse(address) {
            self.report_unreachable(peer);
        }
        Response::Continue
    }

    fn report_unreachable(&self, peer: SocketAddr) {
        let is_local = peer.ip().to_canonical().is_loopback() || is_stand_in(peer.ip());
        let is_answered = self.supervised.exit.is_some() && is_local;
        if self.supervised.has_private_network()
            && !is_answered
            && let Some(refusal) = address::refusal(peer)
        {
            let is_listed = self.supervised.exit.is_some();
            self.supervised.report(if is_listed { Refusal::Unlisted(peer) } else { refusal });
        }
    }

    /// The raw address to connect to in place of `peer`, if it is another one. Fails if there is no way to it.
    fn route(&self, socket: &OwnedFd, peer: SocketAddr) -> rustix::io::Result<Option<Vec<u8>>> {
        let is_stream = || socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM);
        let Some(exit) = self.supervised.exit.as_ref().filter(|_| is_stream()) else {
            self.report_unreachable(peer);
            return Ok(None);
        };
        if address::refusal(peer).is_none() {
            return Ok(None);
        }
        match exit.before_connect(self.supervised.job.id(), peer) {
            Ok(same) if same == peer => Ok(None),
            Ok(other) => Ok(Some(address::network_address(other))),
            Err(NoRoute::Refused) => {
                self.supervised.report(Refusal::Unlisted(peer));
                Err(Errno::NETUNREACH)
            }
            Err(NoRoute::NoSocket) => Err(Errno::CONNREFUSED),
        }
    }

    /// Denies a socket. Only internet sockets are reported: libraries try local services and work without
    /// them.
    pub(super) fn refuse_socket(&self, family: i32) -> Response {
        if INTERNET_FAMILIES.contains(&family) {
            self.supervised.report(Refusal::AnySocket);
        }
        Response::Error(Errno::PERM)
    }
}
