//! The changes of the commands that run.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolcrib_fs::Written;

use super::CommandChanges;

/// The changes of all running commands of a runtime. Tools and commands report a path before they write it, so that another
/// command does not record the new content as its own.
#[derive(Debug, Default)]
pub(crate) struct RunningChanges {
    commands: Mutex<Vec<Weak<CommandChanges>>>,
}

impl RunningChanges {
    pub(super) fn add(&self, changes: &Arc<CommandChanges>) {
        let runs = |one: Arc<CommandChanges>| !one.has_ended.load(Ordering::Relaxed);
        let mut commands = self.commands.lock();
        commands.retain(|one| one.upgrade().is_some_and(runs));
        commands.push(Arc::downgrade(changes));
    }

    /// Called before these paths are written, by a command or, if there is none, by a tool.
    pub(crate) fn take_over(&self, written: &[Written<'_>], by: Option<&CommandChanges>) {
        let is_other = |one: &Arc<CommandChanges>| {
            by.is_none_or(|command| !std::ptr::eq(Arc::as_ptr(one), command))
        };
        let others: Vec<Arc<CommandChanges>> =
            self.commands.lock().iter().filter_map(Weak::upgrade).filter(is_other).collect();
        others.iter().for_each(|command| command.take_over(written));
    }
}
