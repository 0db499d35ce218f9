//! The invariants. They are checked with the state of all nodes, the database and the object store, which no node can see.

use super::database::{Database, Process};
use super::node::Node;
use super::object_store::{Object, ObjectStore};
use super::protocol::{MAX_UNCOPIED, Protocol, Time};

/// After a lease was granted or renewed: only one node believes that it may serve a workspace. Time only ends leases, so
/// no other event can change this.
pub(super) fn one_writer(
    nodes: &[Node],
    workspace: usize,
    now: Time,
    protocol: Protocol,
) -> Result<(), String> {
    let believe = |node: &&Node| node.believes(workspace, now, protocol);
    match nodes.iter().filter(believe).count() {
        0 | 1 => Ok(()),
        count => Err(format!("two writers: {count} nodes serve workspace {workspace}")),
    }
}

/// After a lease was granted: no node has more workspaces than it takes.
pub(super) fn within_capacity(database: &Database, process: Process) -> Result<(), String> {
    let held = database.held_by(process.node);
    if held <= database.capacity() {
        Ok(())
    } else {
        Err(format!("bad placement: node {} has {held} workspaces", process.node))
    }
}

/// Before a call is answered: the lease is still that of this node, unless the process was held up since it checked.
pub(super) fn not_stale(
    database: &Database,
    workspace: usize,
    epoch: u64,
    was_held_up: bool,
) -> Result<(), String> {
    let is_present = database.rows.get(workspace).is_some_and(|row| row.epoch == epoch);
    if is_present || was_held_up {
        Ok(())
    } else {
        Err(format!("stale reply: in workspace {workspace} with the old epoch {epoch}"))
    }
}

/// After a call was answered: not more changes than documented can be lost with the node.
pub(super) fn bounded_loss(uncopied: usize) -> Result<(), String> {
    if uncopied <= MAX_UNCOPIED {
        Ok(())
    } else {
        Err(format!("too many changes: {uncopied} are acknowledged and not copied"))
    }
}

/// After a commit was accepted: it was made with the present lease, and the workspace can be restored if the node dies now.
pub(super) fn committed(
    database: &Database,
    store: &ObjectStore,
    workspace: usize,
    epoch: u64,
    changes: &[Object],
) -> Result<(), String> {
    let Some(row) = database.rows.get(workspace) else { return Ok(()) };
    if row.epoch != epoch {
        return Err(format!(
            "two writers: epoch {epoch} commits to workspace {workspace} after epoch {} began",
            row.epoch
        ));
    }
    let last = row.history.iter().rev().take(changes.len() + 1);
    if !last.map(|object| object.epoch).is_sorted_by(|later, earlier| later >= earlier) {
        return Err(format!("two writers: changes of workspace {workspace} are mixed"));
    }
    missing(store, changes)
}

/// All of these objects exist.
pub(super) fn missing(store: &ObjectStore, objects: &[Object]) -> Result<(), String> {
    match objects.iter().find(|object| !store.has(**object)) {
        None => Ok(()),
        Some(object) => Err(format!(
            "lost workspace: change {} of workspace {} is committed and not stored",
            object.change, object.workspace
        )),
    }
}

/// After objects were removed: none of them is needed.
pub(super) fn not_needed(database: &Database, removed: &[Object]) -> Result<(), String> {
    for object in removed {
        let row = database.rows.get(object.workspace);
        if row.is_some_and(|row| row.history.contains(object)) {
            return Err(format!(
                "lost workspace: change {} of workspace {} was removed",
                object.change, object.workspace
            ));
        }
    }
    Ok(())
}

/// After a time without faults: each workspace is complete, is served, and takes changes again.
pub(super) fn recovered(
    database: &Database,
    store: &ObjectStore,
    nodes: &[Node],
    heads_before: &[usize],
    now: Time,
    protocol: Protocol,
) -> Result<(), String> {
    for (workspace, row) in database.rows.iter().enumerate() {
        missing(store, &row.history)?;
        let is_served = nodes.iter().any(|node| node.believes(workspace, now, protocol));
        let has_grown = heads_before.get(workspace).is_some_and(|head| row.history.len() > *head);
        if !is_served || !has_grown {
            return Err(format!("lost workspace: nobody serves workspace {workspace}"));
        }
    }
    Ok(())
}
