//! Notes about commands that still run: their changes are recorded when they end, so Undo and History lack them.

use crate::phrases::first_of;
use crate::session::Session;

/// Jobs that are named.
const NAMED: usize = 5;

/// A note about running commands that have changed files. `consequence` is `not listed` or `not undone`.
pub(super) fn unrecorded_changes_note(session: &Session, consequence: &str) -> Option<String> {
    let shell = session.shell()?;
    let is_unrecorded =
        |id: &str| shell.changes_of(id).is_some_and(|changes| changes.has_unrecorded());
    let jobs = shell.jobs().list_running();
    let ids: Vec<&str> = jobs.iter().map(|job| job.id()).filter(|id| is_unrecorded(id)).collect();
    let (run, their) = if ids.len() == 1 { ("runs", "its") } else { ("run", "their") };
    let named = first_of(&ids, NAMED, |id| (*id).to_owned());
    (!ids.is_empty()).then(|| {
        format!(
            "[{named} still {run}; {their} latest changes are not recorded yet and {consequence}]"
        )
    })
}
