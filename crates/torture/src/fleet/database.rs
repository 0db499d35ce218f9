//! The database: one row for each workspace and for each node. A statement takes effect when it arrives, one after the other.

use super::object_store::Object;
use super::protocol::{LEASE, Protocol, Time};

/// A process of a node. A node that restarts is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) start: u64,
}

/// The row of a workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) owner: Option<Process>,
    /// Grows with each owner.
    pub(super) epoch: u64,
    /// The objects of the workspace, one for each change. A real row has the number of the last one; the object names
    /// the one before.
    pub(super) history: Vec<Object>,
}

/// A workspace that a process has got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) workspace: usize,
    pub(super) epoch: u64,
    /// The number of changes in the history.
    pub(super) head: usize,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    Accepted,
    Refused,
}

/// The lease of a node: of its present process, until a time of the clock of the database.
#[derive(Debug, Clone, Copy)]
struct NodeLease {
    start: u64,
    until: Time,
}

/// All rows.
pub(super) struct Database {
    pub(super) rows: Vec<Row>,
    leases: Vec<Option<NodeLease>>,
    /// How many workspaces a node takes.
    capacity: usize,
    protocol: Protocol,
}

impl Database {
    pub(super) fn new(
        workspaces: usize,
        nodes: usize,
        capacity: usize,
        protocol: Protocol,
    ) -> Self {
        let (rows, leases) = (vec![Row::default(); workspaces], vec![None; nodes]);
        Database { rows, leases, capacity, protocol }
    }

    /// The number of workspaces of a node, also of those whose lease has ended and that no other node has got.
    pub(super) fn held_by(&self, node: usize) -> usize {
        let is_held = |row: &&Row| row.owner.is_some_and(|owner| owner.node == node);
        self.rows.iter().filter(is_held).count()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    fn has_lease(&self, process: Process, now: Time) -> bool {
        let lease = self.leases.get(process.node).copied().flatten();
        lease.is_some_and(|lease| lease.start == process.start && lease.until >= now)
    }

    /// Renews the lease of a process, or grants the first one. A lease that has ended is not renewed: other nodes may have
    /// got workspaces of the process. Returns the end of the lease.
    pub(super) fn renew(&mut self, process: Process, now: Time) -> Option<Time> {
        let is_first = match self.leases.get(process.node)? {
            None => true,
            // A late message of an earlier process must not end the lease of the present one.
            Some(known) if self.protocol.orders_processes => known.start < process.start,
            Some(known) => known.start != process.start,
        };
        if !is_first && !self.has_lease(process, now) {
            return None;
        }
        let until = now + LEASE;
        *self.leases.get_mut(process.node)? = Some(NodeLease { start: process.start, until });
        Some(until)
    }

    /// Gives a process with a lease a workspace whose owner has none. Those of its own node come first, since their files are
    /// there. One that it has got already and does not know is named again, because the first reply may be lost.
    pub(super) fn acquire(
        &mut self,
        process: Process,
        known: &[usize],
        now: Time,
    ) -> Option<Grant> {
        if !self.has_lease(process, now) {
            return None;
        }
        let mut rows = self.rows.iter().enumerate();
        let unknown =
            rows.find(|(workspace, row)| row.owner == Some(process) && !known.contains(workspace));
        if let Some((workspace, row)) = unknown {
            return Some(Grant { workspace, epoch: row.epoch, head: row.history.len() });
        }
        let is_free = |row: &Row| row.owner.is_none_or(|owner| !self.has_lease(owner, now));
        let is_own = |row: &Row| row.owner.is_some_and(|owner| owner.node == process.node);
        let own = self.rows.iter().position(|row| is_own(row) && is_free(row));
        let is_full = self.held_by(process.node) >= self.capacity;
        let other = || self.rows.iter().position(|row| !is_full && is_free(row));
        let workspace = own.or_else(other)?;
        let row = self.rows.get_mut(workspace)?;
        row.owner = Some(process);
        row.epoch += 1;
        Some(Grant { workspace, epoch: row.epoch, head: row.history.len() })
    }

    /// Appends changes after `parent`, the number of changes before them. Those that are there already are left out, so that
    /// a request can be repeated.
    pub(super) fn commit(
        &mut self,
        workspace: usize,
        epoch: u64,
        parent: usize,
        changes: &[Object],
    ) -> Commit {
        let Some(row) = self.rows.get_mut(workspace) else { return Commit::Refused };
        if self.protocol.is_fenced && row.epoch != epoch {
            return Commit::Refused;
        }
        let Some(known) = row.history.get(parent..) else { return Commit::Refused };
        let same = known.len().min(changes.len());
        if known.get(..same) != changes.get(..same) {
            return Commit::Refused;
        }
        row.history.extend(changes.iter().skip(same));
        Commit::Accepted
    }
}
