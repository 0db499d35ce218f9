//! The interface that decides on connections and is told what became of them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::host::Host;
use crate::request_path::RequestPath;

/// A connection that a command tries to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The job that makes the connection.
    pub requester: Arc<str>,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The number of the connection in its network namespace.
    pub number: u64,
}

impl Attempt {
    /// `host:port`.
    pub fn target(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// A decision on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It is allowed.
    Allow {
        /// The rule that decided.
        rule: String,
    },
    /// It is allowed, and each of its requests is decided on.
    Inspect {
        /// The rule that decided.
        rule: String,
    },
    /// It is refused.
    Deny {
        /// The rule that decided.
        rule: String,
        /// The reason, as a sentence for the program.
        reason: String,
    },
}

/// A request of an inspected connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// The method.
    pub method: &'a str,
    /// The path and the query.
    pub path: &'a RequestPath,
    /// Whether it asks for another protocol, such as WebSocket.
    pub is_upgrade: bool,
}

/// A decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestRuling {
    /// It is allowed.
    Allow,
    /// It is refused.
    Deny(RequestRefusal),
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The rule that decided.
    pub rule: String,
    /// The reason.
    pub why: String,
    /// How an operator can allow the request; may be empty.
    pub remedy: String,
}

/// The decision of rules that name an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRuling {
    /// Hosts may have this address, even if it is not public. A command may connect to it without a name.
    Allow,
    /// A command may connect to it without a name, and each request is decided on. No name may have this address: its
    /// requests would not be decided on.
    AllowInspected,
    /// A command may connect to it without a name after an approval.
    Ask,
    /// No connection goes to this address.
    Deny,
}

impl AddressRuling {
    /// Whether a command may try to connect to the address without a name.
    pub(crate) fn names_target(ruling: Option<AddressRuling>) -> bool {
        let names = [AddressRuling::Allow, AddressRuling::AllowInspected, AddressRuling::Ask];
        ruling.is_some_and(|ruling| names.contains(&ruling))
    }
}

/// Decides on connections. Each connection has its own thread, so a method may block.
pub trait ConnectionPolicy: Send + Sync + fmt::Debug {
    /// Decides on a connection.
    fn decide(&self, attempt: &Attempt) -> Ruling;

    /// Decides on a request of a connection that is inspected. Must not block.
    fn decide_request(&self, _: &Attempt, _: &RequestLine<'_>) -> RequestRuling {
        RequestRuling::Deny(RequestRefusal {
            rule: "network:inspect".to_owned(),
            why: "no request is allowed".to_owned(),
            remedy: String::new(),
        })
    }

    /// A request was refused. `subject` is its method and its path. Called before the program learns of it.
    fn request_refused(&self, _: &Attempt, _subject: &str, _: &RequestRefusal) {}

    /// The ruling on an address and port, if a rule names the address and not only a host.
    fn address_ruling(&self, address: SocketAddr) -> Option<AddressRuling>;

    /// A connection to an address of the host was made. [`ConnectionPolicy::ended`] follows, unless this process
    /// ends before.
    fn connected(&self, attempt: &Attempt, rule: &str, address: SocketAddr);

    /// A connection was refused or failed after it had been allowed. Called before the program learns of it.
    fn refused(&self, attempt: &Attempt, reason: &str);

    /// The same, for a host with this address, which is not public and which no rule names.
    fn address_refused(&self, attempt: &Attempt, reason: &str, _address: SocketAddr) {
        self.refused(attempt, reason);
    }

    /// A connection has ended.
    fn ended(&self, record: &ConnectionRecord);
}

/// A connection that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// The attempt.
    pub attempt: Attempt,
    /// What came of it.
    pub outcome: Outcome,
    /// The rule that decided.
    pub rule: String,
    /// The address that was connected to.
    pub address: Option<SocketAddr>,
    /// Bytes from the command to the host.
    pub sent: u64,
    /// Bytes from the host to the command.
    pub received: u64,
    /// How long it lasted.
    pub duration: Duration,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was connected.
    Connected,
    /// It was refused, for this reason.
    Refused(String),
    /// It was allowed and failed, for this reason.
    Failed(String),
}
