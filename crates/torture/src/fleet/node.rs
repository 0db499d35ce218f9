//! A node: the leases that it believes to have, the changes that it has not copied, and its clock.

use std::collections::VecDeque;

use super::database::{Grant, Process};
use super::object_store::Object;
use super::protocol::{LEASE, MARGIN, MAX_UNCOPIED, Protocol, Time};

/// A workspace of a process, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) process: Process,
    pub(super) workspace: usize,
    pub(super) epoch: u64,
}

/// A workspace of a process.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) epoch: u64,
    /// Whether the files are there.
    pub(super) is_serving: bool,
    /// The number of changes that are known to be committed.
    pub(super) base: usize,
    /// Acknowledged changes that are not known to be committed, with whether they are stored.
    pub(super) uncopied: VecDeque<(Object, bool)>,
}

/// What the disk has of a workspace after its process ended.
struct Left {
    epoch: u64,
    base: usize,
    changes: Vec<u64>,
}

/// A node.
pub(super) struct Node {
    pub(super) process: Process,
    pub(super) is_up: bool,
    pub(super) hangs_until: Time,
    pub(super) cut_off_until: Time,
    /// The end of its lease by the clock that the protocol uses.
    valid_until: i64,
    /// How fast its clock is, in parts per thousand.
    drift: i64,
    /// How far its time of day is from that of the database.
    offset: i64,
    pub(super) held: Vec<Option<Held>>,
    disk: Vec<Option<Left>>,
}

impl Node {
    pub(super) fn new(number: usize, workspaces: usize, drift: i64, offset: i64) -> Self {
        Node {
            process: Process { node: number, start: 0 },
            is_up: true,
            hangs_until: 0,
            cut_off_until: 0,
            valid_until: i64::MIN,
            drift,
            offset,
            held: (0..workspaces).map(|_| None).collect(),
            disk: (0..workspaces).map(|_| None).collect(),
        }
    }

    /// Its clock, which cannot be set.
    pub(super) fn clock(&self, now: Time) -> i64 {
        let now = now as i64;
        now + now * self.drift / 1_000
    }

    pub(super) fn held(&self, place: Place) -> Option<&Held> {
        let held = self.held.get(place.workspace)?.as_ref()?;
        (self.is_process(place.process) && held.epoch == place.epoch).then_some(held)
    }

    pub(super) fn held_mut(&mut self, place: Place) -> Option<&mut Held> {
        let is_process = self.is_process(place.process);
        let held = self.held.get_mut(place.workspace)?.as_mut()?;
        (is_process && held.epoch == place.epoch).then_some(held)
    }

    pub(super) fn is_process(&self, process: Process) -> bool {
        self.is_up && self.process == process
    }

    /// Whether this node thinks that it may serve a workspace.
    pub(super) fn believes(&self, workspace: usize, now: Time, protocol: Protocol) -> bool {
        let held = self.held.get(workspace).and_then(Option::as_ref);
        self.is_up && self.is_valid(now, protocol) && held.is_some_and(|held| held.is_serving)
    }

    fn is_valid(&self, now: Time, protocol: Protocol) -> bool {
        let clock =
            if protocol.measures_duration { self.clock(now) } else { now as i64 + self.offset };
        clock < self.valid_until
    }

    /// Whether a call in a workspace may begin.
    pub(super) fn accepts(&self, place: Place, now: Time, protocol: Protocol) -> bool {
        self.held(place).is_some_and(|held| held.is_serving) && self.is_valid(now, protocol)
    }

    /// Notes a renewed lease.
    pub(super) fn renewed(&mut self, asked: i64, until: Time, protocol: Protocol) {
        self.valid_until = self.valid_until.max(end(asked, until, protocol));
    }

    /// Takes a workspace. Changes on the disk that no other process can have replaced are kept. Returns the number of the
    /// others.
    pub(super) fn take(&mut self, grant: Grant) -> u64 {
        let Grant { workspace, epoch, head } = grant;
        if self.held.get(workspace).is_none_or(Option::is_some) {
            // The same message again.
            return 0;
        }
        let left = self.disk.get_mut(workspace).and_then(Option::take);
        let (mut kept, mut lost) = (VecDeque::new(), 0);
        if let Some(Left { epoch: before, base, changes }) = left {
            // The commit of some of them may have been accepted after the process ended.
            let uncommitted = changes.into_iter().skip(head.saturating_sub(base));
            if before + 1 == epoch {
                let object = |change| (Object { workspace, epoch, change }, false);
                kept = uncommitted.map(object).collect();
            } else {
                lost = uncommitted.count() as u64;
            }
        }
        if let Some(place) = self.held.get_mut(workspace) {
            *place = Some(Held { epoch, is_serving: false, base: head, uncopied: kept });
        }
        lost
    }

    /// Gives a workspace up. Returns the number of changes that are lost.
    pub(super) fn give_up(&mut self, place: Place) -> u64 {
        if self.held(place).is_none() {
            return 0;
        }
        let held = self.held.get_mut(place.workspace).and_then(Option::take);
        held.map_or(0, |held| held.uncopied.len() as u64)
    }

    /// The workspaces that it knows to have.
    pub(super) fn known(&self) -> Vec<usize> {
        let held = self.held.iter().enumerate().filter(|(_, held)| held.is_some());
        held.map(|(workspace, _)| workspace).collect()
    }

    /// The process ends. Returns the number of changes that are lost.
    pub(super) fn die(&mut self, disk_is_lost: bool) -> u64 {
        self.is_up = false;
        (self.hangs_until, self.valid_until) = (0, i64::MIN);
        let mut lost = 0;
        for (held, disk) in self.held.iter_mut().zip(&mut self.disk) {
            let held = held.take();
            if disk_is_lost {
                lost += held.map_or(0, |held| held.uncopied.len() as u64);
                lost += disk.take().map_or(0, |left| left.changes.len() as u64);
            } else if let Some(Held { epoch, base, uncopied, .. }) = held {
                let changes = uncopied.into_iter().map(|(object, _)| object.change).collect();
                *disk = Some(Left { epoch, base, changes });
            }
        }
        lost
    }

    /// Starts another process.
    pub(super) fn start(&mut self) -> Process {
        self.is_up = true;
        self.process.start += 1;
        self.process
    }
}

impl Held {
    /// Adds a change that is acknowledged now, unless too many are not copied.
    pub(super) fn change(&mut self, object: Object) {
        if self.uncopied.len() < MAX_UNCOPIED {
            self.uncopied.push_back((object, false));
        }
    }

    /// Notes that a change is stored.
    pub(super) fn stored(&mut self, object: Object) {
        for (_, is_stored) in self.uncopied.iter_mut().filter(|(known, _)| *known == object) {
            *is_stored = true;
        }
    }

    /// Notes that this many changes are committed in all.
    pub(super) fn committed(&mut self, head: usize) {
        let new = head.saturating_sub(self.base).min(self.uncopied.len());
        self.uncopied.drain(..new);
        self.base += new;
    }

    /// The changes to commit next.
    pub(super) fn to_commit(&self, protocol: Protocol) -> Vec<Object> {
        let may_go = |(_, is_stored): &&(Object, bool)| *is_stored || !protocol.stores_first;
        self.uncopied.iter().take_while(may_go).map(|(object, _)| *object).collect()
    }
}

/// The end of a lease that was asked for at a time of the node's clock, and that ends at a time of the database's.
fn end(asked: i64, until: Time, protocol: Protocol) -> i64 {
    if protocol.measures_duration {
        asked + (LEASE - MARGIN) as i64
    } else {
        until as i64 - MARGIN as i64
    }
}
