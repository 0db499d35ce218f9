//! Serves one connection of a command, from its acceptance to its end.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection_policy::{Attempt, ConnectionPolicy, ConnectionRecord, Outcome, Ruling};
use crate::dial::{DialError, dial};
use crate::job_connections::AcceptedConnection;
use crate::refusal_reply::{Cause, refuse, reset};
use crate::relay::{Copied, Lifetime, RelayEnd, relay};
use crate::resolve::Resolver;

/// Refuses a connection that no job was reported to have made.
pub(crate) fn refuse_unknown(accepted: AcceptedConnection, policy: &dyn ConnectionPolicy) {
    let AcceptedConnection { client, attempt, .. } = accepted;
    reset(client);
    let reason = "it is not known which command made the connection";
    policy.ended(&ConnectionRecord {
        attempt,
        outcome: Outcome::Refused(reason.to_owned()),
        rule: "network:list".to_owned(),
        address: None,
        sent: 0,
        received: 0,
        duration: Duration::ZERO,
    });
}

/// What decides on connections and makes them.
pub(crate) struct WayOut<'a> {
    pub(crate) policy: &'a Arc<dyn ConnectionPolicy>,
    pub(crate) resolver: &'a dyn Resolver,
    #[cfg(feature = "inspect")]
    pub(crate) inspector: Option<&'a Arc<crate::Inspector>>,
}

/// Serves a connection that was accepted.
pub(crate) fn serve(
    AcceptedConnection { client, attempt, first_bytes }: AcceptedConnection,
    way_out: &WayOut<'_>,
    lifetime: &Lifetime<'_>,
) {
    let policy = way_out.policy;
    let began = Instant::now();
    let mut served = Served { address: None, copied: Copied::default() };
    let (rule, outcome) = match policy.decide(&attempt) {
        Ruling::Allow { rule } => {
            let connection = (client, first_bytes);
            let outcome = served.connect(connection, (&attempt, &rule), way_out, lifetime);
            (rule, outcome)
        }
        Ruling::Inspect { rule } => {
            let connection = (client, first_bytes);
            let outcome = served.inspect(connection, (&attempt, &rule), way_out, lifetime);
            (rule, outcome)
        }
        Ruling::Deny { rule, reason } => {
            refuse(client, first_bytes, attempt.port, Cause::Denied, &reason);
            (rule, Outcome::Refused(reason))
        }
    };
    policy.ended(&ConnectionRecord {
        attempt,
        outcome,
        rule,
        address: served.address,
        sent: served.copied.sent,
        received: served.copied.received,
        duration: began.elapsed(),
    });
}

/// What is known of a connection while it is served.
struct Served {
    address: Option<std::net::SocketAddr>,
    copied: Copied,
}

impl Served {
    /// Connects to the host. On failure, the client is told.
    fn dial(
        &mut self,
        (client, first_bytes): (TcpStream, Vec<u8>),
        (attempt, rule): (&Attempt, &str),
        WayOut { policy, resolver, .. }: &WayOut<'_>,
    ) -> Result<(TcpStream, TcpStream, Vec<u8>), Outcome> {
        let (server, address) = match dial(attempt, &***policy, *resolver) {
            Ok(dialed) => dialed,
            Err(error) => {
                let (cause, reason) = match &error {
                    DialError::Refused(reason) | DialError::NeedsRule(reason, _) => {
                        (Cause::Denied, reason.clone())
                    }
                    DialError::Failed(reason) => (Cause::Unreachable, reason.clone()),
                };
                match &error {
                    DialError::NeedsRule(_, address) => {
                        policy.address_refused(attempt, &reason, *address);
                    }
                    _ => policy.refused(attempt, &reason),
                }
                refuse(client, first_bytes, attempt.port, cause, &reason);
                return Err(match error {
                    DialError::Refused(reason) | DialError::NeedsRule(reason, _) => {
                        Outcome::Refused(reason)
                    }
                    DialError::Failed(reason) => Outcome::Failed(reason),
                });
            }
        };
        self.address = Some(address);
        policy.connected(attempt, rule, address);
        // Only latency depends on it.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        Ok((client, server, first_bytes))
    }

    /// Connects to the host and copies bytes until the end.
    fn connect(
        &mut self,
        connection: (TcpStream, Vec<u8>),
        (attempt, rule): (&Attempt, &str),
        way_out: &WayOut<'_>,
        lifetime: &Lifetime<'_>,
    ) -> Outcome {
        let policy = way_out.policy;
        let (client, server, first_bytes) = match self.dial(connection, (attempt, rule), way_out) {
            Ok(dialed) => dialed,
            Err(outcome) => return outcome,
        };
        let sides = (&client, &server);
        match relay(sides, first_bytes, &attempt.host, lifetime, &mut self.copied) {
            Ok(RelayEnd::Closed) => Outcome::Connected,
            Ok(RelayEnd::Refused { reason, first_bytes }) => {
                drop(server);
                policy.refused(attempt, &reason);
                let _ = client.set_nonblocking(false);
                refuse(client, first_bytes, attempt.port, Cause::Denied, &reason);
                Outcome::Refused(reason)
            }
            Ok(RelayEnd::Reset) | Err(_) => {
                // The other side learns of it, too.
                reset(server);
                reset(client);
                Outcome::Connected
            }
        }
    }

    /// Connects to the host and decides on each request until the end.
    #[cfg(feature = "inspect")]
    fn inspect(
        &mut self,
        (client, first_bytes): (TcpStream, Vec<u8>),
        (attempt, rule): (&Attempt, &str),
        way_out: &WayOut<'_>,
        lifetime: &Lifetime<'_>,
    ) -> Outcome {
        // A proxy request is not inspected: it has bytes already, and its client does not trust our CA.
        let inspector = way_out.inspector.cloned().filter(|_| first_bytes.is_empty());
        let Some(inspector) = inspector else {
            return refuse_inspection((client, first_bytes), attempt, &**way_out.policy);
        };
        let (client, server, _) = match self.dial((client, first_bytes), (attempt, rule), way_out) {
            Ok(dialed) => dialed,
            Err(outcome) => return outcome,
        };
        let policy = way_out.policy.clone();
        let inspected = crate::inspect::InspectedConnection { inspector, policy, attempt };
        inspected.serve(client, server, lifetime, &mut self.copied)
    }

    /// This build inspects no requests.
    #[cfg(not(feature = "inspect"))]
    fn inspect(
        &mut self,
        connection: (TcpStream, Vec<u8>),
        (attempt, _): (&Attempt, &str),
        way_out: &WayOut<'_>,
        _: &Lifetime<'_>,
    ) -> Outcome {
        refuse_inspection(connection, attempt, &**way_out.policy)
    }
}

/// Refuses a connection whose requests cannot be inspected.
fn refuse_inspection(
    (client, first_bytes): (TcpStream, Vec<u8>),
    attempt: &Attempt,
    policy: &dyn ConnectionPolicy,
) -> Outcome {
    let reason = format!("requests to {} cannot be inspected here", attempt.target());
    policy.refused(attempt, &reason);
    refuse(client, first_bytes, attempt.port, Cause::Denied, &reason);
    Outcome::Refused(reason)
}
