//! Serves one connection of a command, from its acceptance to its end.

use std::net::TcpStream;
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

/// Serves a connection that was accepted.
pub(crate) fn serve(
    AcceptedConnection { client, attempt, first_bytes }: AcceptedConnection,
    policy: &dyn ConnectionPolicy,
    resolver: &dyn Resolver,
    lifetime: &Lifetime<'_>,
) {
    let began = Instant::now();
    let mut served = Served { address: None, copied: Copied::default() };
    let (rule, outcome) = match policy.decide(&attempt) {
        Ruling::Allow { rule } => {
            let connection = (client, first_bytes);
            let outcome = served.connect(connection, (&attempt, &rule), policy, resolver, lifetime);
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
    /// Connects to the host and copies bytes until the end.
    fn connect(
        &mut self,
        (client, first_bytes): (TcpStream, Vec<u8>),
        (attempt, rule): (&Attempt, &str),
        policy: &dyn ConnectionPolicy,
        resolver: &dyn Resolver,
        lifetime: &Lifetime<'_>,
    ) -> Outcome {
        let (server, address) = match dial(attempt, policy, resolver) {
            Ok(dialed) => dialed,
            Err(error) => {
                let (cause, reason) = match &error {
                    DialError::Refused(reason) => (Cause::Denied, reason.clone()),
                    DialError::Failed(reason) => (Cause::Unreachable, reason.clone()),
                };
                policy.refused(attempt, &reason);
                refuse(client, first_bytes, attempt.port, cause, &reason);
                return match error {
                    DialError::Refused(reason) => Outcome::Refused(reason),
                    DialError::Failed(reason) => Outcome::Failed(reason),
                };
            }
        };
        self.address = Some(address);
        policy.connected(attempt, rule, address);
        // Only latency depends on it.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
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
}
