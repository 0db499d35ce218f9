//! Adds changes of another journal, whose numbers and paths were different.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::fs::FlockOperation;

use super::entry::Entry;
use super::{BLOBS, Journal, LOCK_TIMEOUT};
use crate::content::Content;
use crate::error::FsError;
use crate::unix_time::now_ms;

/// Changes that are being added. Until they are, collection does not remove their contents.
#[derive(Debug)]
pub struct JournalImport<'a> {
    journal: &'a Journal,
    _no_collection: OwnedFd,
}

impl Journal {
    /// Begins to add changes of another journal.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be written.
    pub fn import(&self) -> Result<JournalImport<'_>, FsError> {
        self.prepare(&[BLOBS])?;
        let shared = FlockOperation::NonBlockingLockShared;
        let _no_collection = self.lock_file("collecting", shared, LOCK_TIMEOUT)?;
        Ok(JournalImport { journal: self, _no_collection })
    }
}

impl JournalImport<'_> {
    /// Stores a content that one of the changes refers to.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn content(&self, content: &Content) -> Result<(), FsError> {
        self.journal.store.put(content)
    }

    /// Adds the changes, oldest first, with new numbers. They count as recorded now, so that their age does not end the history
    /// of other workspaces. References to changes that are not among them are removed.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written.
    pub fn finish(self, changes: Vec<Entry>) -> Result<(), FsError> {
        let journal = self.journal;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let _lock = journal.lock_file("lock", exclusive, LOCK_TIMEOUT)?;
        let now = now_ms();
        let mut last = journal.log.last_id()?;
        let mut numbers = HashMap::new();
        let mut renumbered = Vec::with_capacity(changes.len());
        for mut change in changes {
            last = last.saturating_add(1);
            numbers.insert(change.id, last);
            change.id = last;
            change.imported_ms = Some(now);
            let undoes = change.about.undoes.iter();
            change.about.undoes = undoes.filter_map(|id| numbers.get(id).copied()).collect();
            change.about.hunk_of = change.about.hunk_of.and_then(|id| numbers.get(&id).copied());
            if change.about.hunk_of.is_none() {
                change.about.hunk = None;
            }
            renumbered.push(change);
        }
        journal.log.append(&renumbered)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::{About, Caps, Effects, FileChange, Version};
    use super::*;

    fn entry(id: u64, path: &str, content: &Content, about: About) -> Entry {
        let file = FileChange::new(Path::new(path), None, Some(Version::of(content, 0o644)));
        let mut entry = Entry::new(format!("t{id}"), about, Effects::on_files(vec![file]));
        (entry.id, entry.time_ms) = (id, 1_000);
        entry
    }

    #[test]
    fn imported_changes_get_new_numbers_and_are_kept_whatever_their_age() {
        let top = tempfile::tempdir().unwrap();
        let caps = Caps { age: Duration::from_secs(3_600), ..Caps::default() };
        let journal = Journal::open(top.path().join("state"), caps).unwrap();
        let content = Content::from(b"text".to_vec());
        journal.prepare(&[BLOBS]).unwrap();
        let own = entry(0, "/own", &content, About::default());
        let own = Entry { time_ms: u64::MAX / 2, ..own };
        journal.append(own).unwrap();
        let undo = About { undoes: vec![7, 3], ..About::default() };
        let part = About { hunk_of: Some(3), hunk: Some(1), ..About::default() };
        let changes = vec![
            entry(7, "/w/a", &content, About::default()),
            entry(9, "/w/b", &content, undo),
            entry(12, "/w/c", &content, part),
        ];
        let import = journal.import().unwrap();
        import.content(&content).unwrap();
        import.finish(changes).unwrap();
        journal.collect().unwrap();
        let all = journal.changes().unwrap();
        assert_eq!(all.damaged, []);
        let of = |entry: &Entry| (entry.id, entry.time_ms, entry.about.undoes.clone());
        let shown: Vec<_> = all.entries.iter().skip(1).map(of).collect();
        assert_eq!(shown, [(2, 1_000, vec![]), (3, 1_000, vec![2]), (4, 1_000, vec![])]);
        assert_eq!((all.entries[3].about.hunk_of, all.entries[3].about.hunk), (None, None));
        let version = all.entries[1].files[0].after.unwrap();
        assert_eq!(journal.content(&version).unwrap().as_deref(), Some(&b"text"[..]));
    }
}
