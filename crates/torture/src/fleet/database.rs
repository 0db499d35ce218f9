//! The database: one row for each workspace. A statement takes effect when it arrives, one after the other.

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
    /// Grows with each lease.
    pub(super) epoch: u64,
    /// By the clock of the database.
    pub(super) until: Time,
    /// The objects of the workspace, one for each change. A real row has the number of the last one; the object names
    /// the one before.
    pub(super) history: Vec<Object>,
}

/// A granted lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) workspace: usize,
    pub(super) epoch: u64,
    pub(super) until: Time,
    /// The number of changes in the history.
    pub(super) head: usize,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    Accepted,
    Refused,
}

/// All rows.
pub(super) struct Database {
    pub(super) rows: Vec<Row>,
    /// How many workspaces a node takes.
    capacity: usize,
    protocol: Protocol,
}

impl Database {
    pub(super) fn new(workspaces: usize, capacity: usize, protocol: Protocol) -> Self {
        let rows = vec![Row::default(); workspaces];
        Database { rows, capacity, protocol }
    }

    /// The number of workspaces of a node, also of those whose lease has ended and that no other node has got.
    pub(super) fn held_by(&self, node: usize) -> usize {
        let is_held = |row: &&Row| row.owner.is_some_and(|owner| owner.node == node);
        self.rows.iter().filter(is_held).count()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Grants a workspace without a valid lease, or one of an earlier process of this node, which is known to have ended.
    pub(super) fn acquire(&mut self, process: Process, now: Time) -> Option<Grant> {
        let is_full = self.held_by(process.node) >= self.capacity;
        let is_free = |row: &Row| match row.owner {
            // A late message of an earlier process must not take the lease of the present one.
            Some(owner) if owner.node == process.node => {
                let is_earlier = owner.start < process.start || !self.protocol.orders_processes;
                (owner != process && is_earlier) || (owner == process && row.until < now)
            }
            _ => row.until < now && !is_full,
        };
        let workspace = self.rows.iter().position(is_free)?;
        let row = self.rows.get_mut(workspace)?;
        row.owner = Some(process);
        row.epoch += 1;
        row.until = now + LEASE;
        let (epoch, until, head) = (row.epoch, row.until, row.history.len());
        Some(Grant { workspace, epoch, until, head })
    }

    /// Renews a lease, also one that has ended, unless another process has got the workspace since. Returns its end.
    pub(super) fn renew(&mut self, workspace: usize, epoch: u64, now: Time) -> Option<Time> {
        let row = self.rows.get_mut(workspace).filter(|row| row.epoch == epoch)?;
        row.until = now + LEASE;
        Some(row.until)
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
