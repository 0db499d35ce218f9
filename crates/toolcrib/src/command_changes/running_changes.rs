//! The changes of the commands that run.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolcrib_fs::{Writer, Written};

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

    /// Called before `command` writes these paths.
    pub(super) fn taken_over_by_command(&self, written: &[Written<'_>], command: &CommandChanges) {
        let is_other = |one: &Arc<CommandChanges>| !std::ptr::eq(Arc::as_ptr(one), command);
        for other in self.running().into_iter().filter(is_other) {
            let _ = other.take_over(written, Writer::Command);
        }
    }

    /// Calls `write`, which writes these paths for a tool. Running commands that have changed these files record their
    /// changes first, so that an undo of them keeps the new content.
    pub(crate) fn write_by_tool<T>(&self, paths: &[PathBuf], write: impl FnOnce() -> T) -> T {
        let written: Vec<Written<'_>> =
            paths.iter().map(|path| Written { path, whole: false }).collect();
        let running = self.running();
        let _pending: Vec<_> =
            running.iter().filter_map(|command| command.take_over_by_tool(&written)).collect();
        write()
    }

    fn running(&self) -> Vec<Arc<CommandChanges>> {
        self.commands.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
