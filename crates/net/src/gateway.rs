//! The gateway of one network namespace: answers its DNS queries, listens on the addresses that stand for hosts,
//! and serves each connection on a thread.

mod expose;
mod proxy;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{bind, listen};
use rustix::process::{Resource, getrlimit};

pub use self::proxy::ProxyGateway;

use crate::connection_policy::{AddressRuling, Attempt, ConnectionPolicy};
use crate::connection_sources::{ConnectionEnds, ConnectionSources};
use crate::dns_server::{answer, answer_one};
use crate::host::Host;
use crate::job_connections::{AcceptedConnection, JobConnections};
use crate::relay::Lifetime;
use crate::resolve::Resolver;
use crate::serve_connection::{WayOut, refuse_unknown, serve};
use crate::synthetic_addresses::{SyntheticAddresses, synthetic};

/// Connections at a time. More wait in the queues of the listeners.
const MAX_CONNECTIONS: usize = 256;

/// The fewest connections at a time, however few descriptors this process may have.
const MIN_CONNECTIONS: usize = 8;

/// Descriptors of a connection: two sockets and two pipes.
const DESCRIPTORS_PER_CONNECTION: u64 = 6;

/// How long the report of a connection may take. It follows `connect` at once.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that wait to be accepted, per host and port.
const BACKLOG: i32 = 128;

/// Hosts and ports that are listened on. Beyond that, the oldest one is closed; it is opened again on demand.
const MAX_LISTENERS: usize = 512;

/// The stack of a thread that serves one connection. It holds a few buffers.
const STACK_BYTES: usize = 256 << 10;

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Events per `epoll_wait`.
const MAX_EVENTS: usize = 64;

/// The event of the stop request. No listener has this number.
const STOP: u64 = 0;

/// Sockets that were made inside a network namespace, in which the block of synthetic addresses is local.
pub struct NamespaceSockets {
    /// A UDP socket that is bound to the address of the DNS server.
    pub dns: OwnedFd,
    /// TCP sockets that are not bound yet.
    pub unbound: Vec<OwnedFd>,
    /// Makes more of them. `None` if that is not possible.
    pub more: Option<MakeSockets>,
}

impl fmt::Debug for NamespaceSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceSockets")
            .field("unbound", &self.unbound.len())
            .finish_non_exhaustive()
    }
}

/// Why a command cannot connect to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectError {
    /// It stands for no host, and no rule names it.
    Unreachable,
    /// There is no socket for it: a command listens on this port of all addresses, or there are too many.
    NoSocket,
}

/// The way out of one network namespace. Dropping it ends its connections.
#[derive(Debug)]
pub struct NamespaceGateway {
    shared: Arc<Shared>,
}

struct UnboundSockets {
    unbound: Vec<OwnedFd>,
    more: Option<MakeSockets>,
}

impl fmt::Debug for UnboundSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundSockets")
            .field("unbound", &self.unbound.len())
            .finish_non_exhaustive()
    }
}

/// Makes sockets in a namespace.
type MakeSockets = Box<dyn Fn() -> io::Result<Vec<OwnedFd>> + Send + Sync>;

#[derive(Debug)]
struct Shared {
    policy: Arc<dyn ConnectionPolicy>,
    resolver: Arc<dyn Resolver>,
    #[cfg(feature = "inspect")]
    inspector: std::sync::OnceLock<Arc<crate::Inspector>>,
    sockets: Mutex<UnboundSockets>,
    state: Mutex<State>,
    /// Notified when a connection has ended, and when one was reported.
    changed: Condvar,
    max_connections: usize,
    epoll: OwnedFd,
    wake: OwnedFd,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    addresses: SyntheticAddresses,
    sources: ConnectionSources,
    listeners: HashMap<u64, Listener>,
    numbers: HashMap<(Ipv4Addr, u16), u64>,
    last_number: u64,
    connections: usize,
    /// The number of the last connection.
    last_connection: u64,
    /// Ports that are reachable from outside.
    exposed: HashSet<u16>,
}

#[derive(Debug)]
struct Listener {
    socket: Arc<TcpListener>,
    address: Ipv4Addr,
    port: u16,
}

impl NamespaceGateway {
    /// Starts to serve a namespace.
    pub fn start(
        NamespaceSockets { dns, unbound, more }: NamespaceSockets,
        policy: Arc<dyn ConnectionPolicy>,
        resolver: Arc<dyn Resolver>,
    ) -> io::Result<NamespaceGateway> {
        let shared = Shared::new(UnboundSockets { unbound, more }, policy, resolver)?;
        let dns = UdpSocket::from(dns);
        dns.set_nonblocking(true)?;
        spawn("toolcrib-dns", {
            let shared = shared.clone();
            move || shared.answer_queries(&dns)
        })?;
        spawn("toolcrib-accept", {
            let shared = shared.clone();
            move || shared.accept_connections()
        })?;
        Ok(NamespaceGateway { shared })
    }

    /// Sets what inspects connections. Without it, connections that are to be inspected are refused.
    #[cfg(feature = "inspect")]
    pub fn inspect_with(&self, inspector: Arc<crate::Inspector>) {
        self.shared.inspector.get_or_init(|| inspector);
    }

    /// Prepares a connection of a command to an address. Returns the address to connect to: the same one, or
    /// the one that stands for it here.
    pub fn prepare(&self, peer: SocketAddr) -> Result<SocketAddr, ConnectError> {
        let ip = peer.ip().to_canonical();
        if ip.is_loopback() || ip.is_unspecified() {
            return Ok(peer);
        }
        if let Some((address, port)) = synthetic(peer) {
            self.listen_on(address, port)?;
            return Ok(peer);
        }
        let canonical = SocketAddr::new(ip, peer.port());
        if !AddressRuling::names_target(self.shared.policy.address_ruling(canonical)) {
            return Err(ConnectError::Unreachable);
        }
        let address = self.shared.state.lock().addresses.address_of(&Host::Address(ip));
        self.listen_on(address, peer.port())?;
        let stand_in = match peer {
            SocketAddr::V4(_) => IpAddr::V4(address),
            // For sockets of IPv6.
            SocketAddr::V6(_) => IpAddr::V6(address.to_ipv6_mapped()),
        };
        Ok(SocketAddr::new(stand_in, peer.port()))
    }

    /// A job has connected a socket with this local address to an address of [`NamespaceGateway::prepare`], or
    /// will have soon. A connection that is not reported is refused.
    pub fn connected(&self, job: &str, local: SocketAddr, peer: SocketAddr) {
        self.shared.report(job, ConnectionEnds::new(local, peer));
    }

    /// All processes of a job have exited. Its connections end as soon as their bytes are delivered, or shortly
    /// afterwards.
    pub fn job_ended(&self, job: &str) {
        self.shared.state.lock().sources.job_ended(job);
    }

    /// Makes a port of the namespace's loopback reachable at the same port of this machine's loopback. Fails if
    /// another program has that port.
    pub fn expose(&self, port: u16) -> io::Result<()> {
        if !self.shared.state.lock().exposed.insert(port) {
            return Ok(());
        }
        let exposed = expose::start(&self.shared, port);
        if exposed.is_err() {
            self.shared.state.lock().exposed.remove(&port);
        }
        exposed
    }

    /// Stops to listen on a port that a command is about to bind for all addresses.
    pub fn release_port(&self, port: u16) {
        let mut state = self.shared.state.lock();
        let numbers: Vec<u64> = state
            .numbers
            .iter()
            .filter(|((_, other), _)| *other == port)
            .map(|(_, number)| *number)
            .collect();
        for number in numbers {
            self.shared.close(&mut state, number);
        }
    }

    /// Listens on an address that stands for a host.
    fn listen_on(&self, address: Ipv4Addr, port: u16) -> Result<(), ConnectError> {
        let mut state = self.shared.state.lock();
        state.addresses.host_at(address).ok_or(ConnectError::Unreachable)?;
        if state.numbers.contains_key(&(address, port)) {
            return Ok(());
        }
        if state.listeners.len() >= MAX_LISTENERS
            && let Some(oldest) = state.listeners.keys().min().copied()
        {
            self.shared.close(&mut state, oldest);
        }
        let socket = self.bound_socket(SocketAddr::new(address.into(), port));
        let socket = Arc::new(socket.map_err(|_| ConnectError::NoSocket)?);
        state.last_number += 1;
        let number = state.last_number;
        let data = EventData::new_u64(number);
        epoll::add(&self.shared.epoll, &socket, data, EventFlags::IN)
            .map_err(|_| ConnectError::NoSocket)?;
        state.listeners.insert(number, Listener { socket, address, port });
        state.numbers.insert((address, port), number);
        Ok(())
    }

    /// A listening socket of the namespace.
    fn bound_socket(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.shared.take_socket()?;
        set_socket_reuseaddr(&socket, true)?;
        // A socket whose `bind` failed can be bound again.
        if let Err(error) = bind(&socket, &address) {
            self.shared.sockets.lock().unbound.push(socket);
            return Err(error.into());
        }
        listen(&socket, BACKLOG)?;
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for NamespaceGateway {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// The number of connections at a time: half of the descriptors of this process stay for other uses.
fn max_connections() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let share = usize::try_from(descriptors / 2 / DESCRIPTORS_PER_CONNECTION).unwrap_or(usize::MAX);
    share.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

impl Shared {
    fn new(
        sockets: UnboundSockets,
        policy: Arc<dyn ConnectionPolicy>,
        resolver: Arc<dyn Resolver>,
    ) -> io::Result<Arc<Shared>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(STOP), EventFlags::IN)?;
        let (state, changed, stop) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Ok(Arc::new(Shared {
            policy,
            resolver,
            #[cfg(feature = "inspect")]
            inspector: std::sync::OnceLock::new(),
            sockets: Mutex::new(sockets),
            state,
            changed,
            max_connections: max_connections(),
            epoll,
            wake,
            stop,
        }))
    }

    /// A job has made a connection.
    fn report(&self, job: &str, ends: ConnectionEnds) {
        self.state.lock().sources.report(job, ends);
        self.changed.notify_all();
    }

    /// Ends all threads and connections.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // It wakes all threads: no thread reads the value.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        self.changed.notify_all();
    }

    /// A socket of the namespace that is not bound.
    fn take_socket(&self) -> io::Result<OwnedFd> {
        let mut sockets = self.sockets.lock();
        if sockets.unbound.is_empty()
            && let Some(more) = &sockets.more
        {
            let made = more()?;
            sockets.unbound.extend(made);
        }
        sockets.unbound.pop().ok_or(io::ErrorKind::OutOfMemory.into())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn close(&self, state: &mut State, number: u64) {
        if let Some(listener) = state.listeners.remove(&number) {
            let _ = epoll::delete(&self.epoll, &listener.socket);
            state.numbers.remove(&(listener.address, listener.port));
        }
    }

    fn answer_queries(&self, dns: &UdpSocket) {
        while !self.is_stopped() {
            let mut both =
                [PollFd::new(dns, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut both, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            answer_one(dns, |query| answer(query, &mut self.state.lock().addresses));
        }
    }

    fn accept_connections(self: &Arc<Shared>) {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for event in &events {
                let event: &Event = event;
                if !self.wait_for_slot() {
                    return;
                }
                self.accept(event.data.u64());
            }
        }
    }

    /// Waits until another connection can be served. Returns false if the namespace is closed.
    fn wait_for_slot(&self) -> bool {
        let mut state = self.state.lock();
        while state.connections >= self.max_connections && !self.is_stopped() {
            self.changed.wait(&mut state);
        }
        !self.is_stopped()
    }

    /// Accepts a connection, and serves it on a thread of its own.
    fn accept(self: &Arc<Shared>, number: u64) {
        let mut state = self.state.lock();
        let Some(listener) = state.listeners.get(&number) else { return };
        let (client, source) = match listener.socket.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                drop(state);
                // Out of descriptors, mostly: the connection still waits.
                if error.kind() != io::ErrorKind::WouldBlock {
                    std::thread::sleep(ACCEPT_PAUSE);
                }
                return;
            }
        };
        let Some(host) = state.addresses.host_at(listener.address).cloned() else { return };
        let port = listener.port;
        let ends = ConnectionEnds::new(source, SocketAddr::new(listener.address.into(), port));
        let accepted = AcceptedConnection {
            client,
            attempt: Attempt {
                requester: "".into(),
                host,
                port,
                number: state.last_connection + 1,
            },
            first_bytes: Vec::new(),
        };
        state.last_connection += 1;
        state.connections += 1;
        drop(state);
        let slot = Slot(self.clone());
        let shared = self.clone();
        // Without a thread, the connection is closed.
        let _ = spawn("toolcrib-net", move || {
            let _slot = slot;
            shared.serve_after_report(accepted, ends);
        });
    }

    /// Serves a connection when its job is known.
    fn serve_after_report(&self, accepted: AcceptedConnection, ends: ConnectionEnds) {
        let Some(job) = self.wait_for_report(ends) else {
            refuse_unknown(accepted, &*self.policy);
            return;
        };
        let attempt = Attempt { requester: job.job.clone(), ..accepted.attempt };
        self.serve_in_turn(&job, AcceptedConnection { attempt, ..accepted });
    }

    /// Serves a connection of a job if it may have another one, and then those of the same job that wait.
    fn serve_in_turn(&self, job: &JobConnections, accepted: AcceptedConnection) {
        let mut current = job.admit(accepted, self.max_of_job());
        while let Some(accepted) = current {
            if accepted.client.set_nonblocking(false).is_ok() {
                let lifetime = Lifetime { stop: &self.stop, job: Some(job) };
                let way_out = WayOut {
                    policy: &self.policy,
                    resolver: &*self.resolver,
                    #[cfg(feature = "inspect")]
                    inspector: self.inspector.get(),
                };
                serve(accepted, &way_out, &lifetime);
            }
            current = job.next();
        }
    }

    /// The number of connections of one job at a time. The rest is for other jobs.
    fn max_of_job(&self) -> usize {
        self.max_connections - self.max_connections / 8
    }

    /// The job that made a connection. `None` if it is not reported in time.
    fn wait_for_report(&self, ends: ConnectionEnds) -> Option<Arc<JobConnections>> {
        let until = Instant::now() + REPORT_TIMEOUT;
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.sources.take(ends) {
                return Some(job);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                return None;
            }
            self.changed.wait_for(&mut state, left);
        }
    }
}

/// Counts as one connection until it is dropped.
struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.state.lock().connections -= 1;
        self.0.changed.notify_all();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(run).map(drop)
}
