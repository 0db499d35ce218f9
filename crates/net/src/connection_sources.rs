//! Which job made a connection, by the addresses of its two ends.
//!
//! The supervisor reports the addresses after `connect`. The gateway may accept the connection before that,
//! and then waits for the report. A connection without a report belongs to no job, and is refused.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::job_connections::JobConnections;

/// Reported connections that were not accepted yet. Beyond that, the oldest report is dropped.
const MAX_REPORTS: usize = 1024;

/// How long a connection may be accepted after its job has ended. A report that is left counts for no later job
/// with the same port.
const ENDED_JOB_GRACE: Duration = Duration::from_secs(5);

/// The jobs that have connections, and the connections that were not accepted yet.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSources {
    jobs: HashMap<Arc<str>, Arc<JobConnections>>,
    reports: VecDeque<Report>,
}

#[derive(Debug)]
struct Report {
    ends: ConnectionEnds,
    job: Arc<JobConnections>,
}

impl Report {
    fn is_outdated(&self) -> bool {
        self.job.ended().is_some_and(|ended| ended.elapsed() > ENDED_JOB_GRACE)
    }
}

/// The addresses of a connection: of the command, and the one that stands for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionEnds {
    local: SocketAddr,
    peer: SocketAddr,
}

impl ConnectionEnds {
    pub(crate) fn new(local: SocketAddr, peer: SocketAddr) -> ConnectionEnds {
        // Sockets of IPv6 have IPv4 addresses in another form.
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        ConnectionEnds { local: canonical(local), peer: canonical(peer) }
    }
}

impl ConnectionSources {
    /// A job has made a connection.
    pub(crate) fn report(&mut self, job: &str, ends: ConnectionEnds) {
        let job = match self.jobs.get(job) {
            Some(job) => job.clone(),
            None => {
                let id: Arc<str> = job.into();
                let made = Arc::new(JobConnections::of(id.clone()));
                self.jobs.insert(id, made.clone());
                made
            }
        };
        // A report of the same ends is of an earlier connection that was never accepted.
        self.reports.retain(|report| report.ends != ends && !report.is_outdated());
        if self.reports.len() >= MAX_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(Report { ends, job });
    }

    /// Takes the job of a connection that was accepted, if it was reported.
    pub(crate) fn take(&mut self, ends: ConnectionEnds) -> Option<Arc<JobConnections>> {
        let position = self.reports.iter().position(|report| report.ends == ends)?;
        let report = self.reports.remove(position).filter(|report| !report.is_outdated());
        report.map(|report| report.job)
    }

    /// All processes of a job have exited. Its connections end soon.
    pub(crate) fn job_ended(&mut self, job: &str) {
        if let Some(job) = self.jobs.remove(job) {
            job.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(local: &str, peer: &str) -> ConnectionEnds {
        ConnectionEnds::new(local.parse().unwrap(), peer.parse().unwrap())
    }

    #[test]
    fn each_report_counts_once_and_for_its_own_ends() {
        let mut sources = ConnectionSources::default();
        sources.report("sh_1", ends("127.0.0.1:1000", "198.18.0.1:443"));
        sources.report("sh_2", ends("[::ffff:127.0.0.1]:1001", "[::ffff:198.18.0.1]:443"));
        assert!(sources.take(ends("127.0.0.1:1000", "198.18.0.2:443")).is_none());
        let second = sources.take(ends("127.0.0.1:1001", "198.18.0.1:443")).unwrap();
        assert_eq!(&*second.job, "sh_2");
        let first = sources.take(ends("127.0.0.1:1000", "198.18.0.1:443")).unwrap();
        assert_eq!(&*first.job, "sh_1");
        assert!(sources.take(ends("127.0.0.1:1000", "198.18.0.1:443")).is_none());
        sources.job_ended("sh_1");
        assert!(first.ended().is_some() && second.ended().is_none());
    }

    #[test]
    fn reports_are_bounded() {
        let mut sources = ConnectionSources::default();
        let local = |number: usize| ends(&format!("127.0.0.1:{}", 1 + number), "198.18.0.1:443");
        for number in 0..=MAX_REPORTS {
            sources.report("sh_1", local(number));
        }
        assert!(sources.take(local(0)).is_none());
        assert!(sources.take(local(1)).is_some());
    }
}
