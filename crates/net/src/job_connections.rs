//! The connections of one job.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use crate::connection_policy::Attempt;
use crate::refusal_reply::reset;

/// Accepted connections of a job that wait until another one has ended. More are reset.
const MAX_WAITING: usize = 64;

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    pub(crate) client: TcpStream,
    pub(crate) attempt: Attempt,
    /// Bytes for the host that were read already.
    pub(crate) first_bytes: Vec<u8>,
}

/// The connections of one job.
#[derive(Debug)]
pub(crate) struct JobConnections {
    pub(crate) job: Arc<str>,
    ended: OnceLock<Instant>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    served: usize,
    waiting: VecDeque<AcceptedConnection>,
}

impl JobConnections {
    pub(crate) fn of(job: Arc<str>) -> JobConnections {
        JobConnections { job, ended: OnceLock::new(), state: Mutex::default() }
    }

    /// Returns the connection if it can be served now: fewer than `max_served` of the job are. Otherwise it waits,
    /// or is reset.
    pub(crate) fn admit(
        &self,
        accepted: AcceptedConnection,
        max_served: usize,
    ) -> Option<AcceptedConnection> {
        let mut state = self.state.lock();
        if state.served < max_served {
            state.served += 1;
            return Some(accepted);
        }
        if state.waiting.len() < MAX_WAITING {
            state.waiting.push_back(accepted);
        } else {
            reset(accepted.client);
        }
        None
    }

    /// A served connection has ended. Returns the next one to serve.
    pub(crate) fn next(&self) -> Option<AcceptedConnection> {
        let mut state = self.state.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.served -= 1;
        }
        next
    }

    /// All processes of the job have exited.
    pub(crate) fn end(&self) {
        self.ended.get_or_init(Instant::now);
    }

    /// When all its processes had exited.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.ended.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::host::Host;

    #[test]
    fn a_job_has_a_share_and_a_bounded_queue() {
        const MAX_SERVED: usize = 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let job = JobConnections::of("sh_1".into());
        let accepted = || AcceptedConnection {
            client: TcpStream::connect(listener.local_addr().unwrap()).unwrap(),
            attempt: Attempt {
                requester: job.job.clone(),
                host: Host::parse("a.example").unwrap(),
                port: 443,
                number: 1,
            },
            first_bytes: Vec::new(),
        };
        // The backlog of the listener is smaller than the number of connections.
        let mut held = Vec::new();
        let mut admit = || {
            let admitted = job.admit(accepted(), MAX_SERVED).is_some();
            held.push(listener.accept().unwrap());
            admitted
        };
        assert!((0..MAX_SERVED).all(|_| admit()));
        assert!((0..MAX_WAITING + 10).all(|_| !admit()));
        assert!((0..MAX_WAITING).all(|_| job.next().is_some()));
        assert!((0..MAX_SERVED).all(|_| job.next().is_none()));
        assert!(job.admit(accepted(), MAX_SERVED).is_some());
    }
}
