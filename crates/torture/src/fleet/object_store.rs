//! The object store: objects exist or not, and a request takes effect when it arrives.

use std::collections::BTreeMap;

use super::protocol::Time;

/// An object: a change of a workspace, stored under the epoch of the lease of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    pub(super) workspace: usize,
    pub(super) epoch: u64,
    pub(super) change: u64,
}

/// All objects, with the time when they were stored.
#[derive(Default)]
pub(super) struct ObjectStore {
    objects: BTreeMap<Object, Time>,
}

impl ObjectStore {
    pub(super) fn put(&mut self, object: Object, now: Time) {
        self.objects.entry(object).or_insert(now);
    }

    pub(super) fn has(&self, object: Object) -> bool {
        self.objects.contains_key(&object)
    }

    /// The objects of a workspace.
    pub(super) fn of_workspace(
        &self,
        workspace: usize,
    ) -> impl Iterator<Item = (Object, Time)> + '_ {
        let first = Object { workspace, epoch: 0, change: 0 };
        let end = Object { workspace: workspace + 1, ..first };
        self.objects.range(first..end).map(|(object, stored)| (*object, *stored))
    }

    pub(super) fn remove(&mut self, object: Object) {
        self.objects.remove(&object);
    }
}
