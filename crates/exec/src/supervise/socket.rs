//! Connects sockets for a command. A Unix socket is connected only if a command of the session listens on it:
//! a program outside may do anything for its clients.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fstat, openat2};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout, socket_type};
use rustix::net::{SocketType, getsockname};
use rustix::process::{chdir, fchdir};

use super::address::{self, Peer};
use super::caller::{Base, apply_umask, has_own_fs, proc_fd_path};
use super::perform::access;
use super::resolve::{FinalSymlink, GivenPath};
use super::{Call, Response};
use crate::gateway::{NetworkExit, NoRoute};
use crate::guard::{FileAction, NodeKind};
use crate::job::Job;
use crate::refusal::Refusal;
use crate::sandbox::network_namespace::is_stand_in;
use crate::sandbox::{FAST_OPEN, bind, connect};
use crate::sock_diag::SocketName;

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

/// A `connect` that was decided on.
struct DecidedConnect {
    /// The raw address to connect to.
    address: Vec<u8>,
    /// The socket at that address. It is kept open until the end of the call.
    _listening: Option<OwnedFd>,
    /// Learns the local address of the connection, once.
    route: Option<Route>,
}

/// A connection through the gateway.
struct Route {
    exit: Arc<dyn NetworkExit>,
    job: Arc<Job>,
    peer: SocketAddr,
}

impl DecidedConnect {
    fn to(address: Vec<u8>) -> DecidedConnect {
        DecidedConnect { address, _listening: None, route: None }
    }

    /// Tells the gateway of a connection that is made or under way, so that it knows whose it is.
    fn report(&mut self, socket: &OwnedFd, outcome: rustix::io::Result<()>) {
        if matches!(outcome, Ok(()) | Err(Errno::INPROGRESS))
            && let Some(Route { exit, job, peer }) = self.route.take()
            && let Ok(Ok(local)) = getsockname(socket).map(SocketAddr::try_from)
        {
            exit.connected(job.id(), local, peer);
        }
    }
}

/// Whether `connect` may wait for a peer. The flags of a socket do not tell: the caller can change them.
fn may_wait(socket: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(matches!(socket_type(socket)?, SocketType::STREAM | SocketType::SEQPACKET))
}

/// The bits of a socket type that are not flags.
const SOCKET_TYPE: i32 = 0xf;

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
        let mut decided = match address::parse(&address) {
            Some(Peer::Path(path)) => {
                let listening = self.open_session_socket(&path)?;
                let address = address::unix_address(&proc_fd_path(&listening));
                DecidedConnect { _listening: Some(listening), ..DecidedConnect::to(address) }
            }
            Some(Peer::Abstract(name)) => {
                self.check_session_socket(&SocketName::Abstract(name))?;
                DecidedConnect::to(address)
            }
            Some(Peer::Network(peer)) => self.route(&socket, peer, address)?,
            None => DecidedConnect::to(address),
        };
        // The kernel never continues this call: until then the caller could put a Unix socket in the place of
        // this one, and the path of an outside program's socket in the place of the address. No other part of
        // the sandbox denies that connection.
        if !may_wait(&socket)? {
            let connected = self.credentials.run_as(|| connect(&socket, &decided.address));
            return connected.map(|()| Response::Value(0));
        }
        // The status flags are shared with the caller's descriptor. It can change them before the call is made.
        if fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK) {
            return self.perform_on_thread(socket, move |socket| {
                let connected = connect(socket, &decided.address);
                decided.report(socket, connected);
                connected.map(|()| Response::Value(0))
            });
        }
        let limit = socket_timeout(&socket, Timeout::Send)?;
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.retry_on_thread(socket, move |socket| {
            let connected = connect_with_timeout(socket, &decided.address, limit);
            decided.report(socket, connected);
            match connected {
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
                let socket = self.caller.duplicate(descriptor)?;
                let is_stream = socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM);
                if is_stream {
                    exit.before_bind(own);
                }
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

    /// Reports a datagram to an address that cannot be reached. It stays in the session's own network. A TCP
    /// socket could be connected by sending: the filter denies that for calls that are not supervised.
    pub(super) fn send(&self, address: &[u8], flags: u32) -> Response {
        if flags & FAST_OPEN != 0 {
            return Response::Error(Errno::OPNOTSUPP);
        }
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

    /// The connection to `peer`, of which `address` is the raw form. Fails if there is no way to it.
    fn route(
        &self,
        socket: &OwnedFd,
        peer: SocketAddr,
        address: Vec<u8>,
    ) -> rustix::io::Result<DecidedConnect> {
        let is_stream = || socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM);
        let Some(exit) = self.supervised.exit.as_ref().filter(|_| is_stream()) else {
            self.report_unreachable(peer);
            return Ok(DecidedConnect::to(address));
        };
        let has_own_loopback = self.supervised.level.has_namespaces();
        if has_own_loopback && address::refusal(peer).is_none() {
            return Ok(DecidedConnect::to(address));
        }
        let job = &self.supervised.job;
        match exit.before_connect(peer) {
            Ok(at) => {
                let address = if at == peer { address } else { address::network_address(at) };
                let route = Route { exit: exit.clone(), job: job.clone(), peer: at };
                Ok(DecidedConnect { route: Some(route), ..DecidedConnect::to(address) })
            }
            Err(NoRoute::Refused) => {
                let refusal = if has_own_loopback {
                    Refusal::Unlisted(peer)
                } else {
                    Refusal::WithoutProxy(peer)
                };
                self.supervised.report(refusal);
                Err(Errno::NETUNREACH)
            }
            Err(NoRoute::NoSocket) => Err(Errno::CONNREFUSED),
        }
    }

    /// Denies a socket, unless it is a TCP socket and there is a proxy. The kernel sees the same arguments. Only
    /// internet sockets are reported: libraries try local services and work without them.
    pub(super) fn make_socket(&self, family: i32, kind: i32, protocol: i32) -> Response {
        let is_internet = INTERNET_FAMILIES.contains(&family);
        let has_proxy = self.supervised.exit.is_some();
        let is_stream = kind & SOCKET_TYPE == libc::SOCK_STREAM;
        if has_proxy && is_internet && is_stream && matches!(protocol, 0 | libc::IPPROTO_TCP) {
            return Response::Continue;
        }
        // Programs that use the proxy also try to look up names, and work without that.
        if is_internet && !has_proxy {
            self.supervised.report(Refusal::AnySocket);
        }
        Response::Error(Errno::PERM)
    }
}
