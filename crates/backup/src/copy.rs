//! Copies one workspace: one round at a time, each of which adds at most one segment.
//!
//! The history is read first and the files after it, so that no change is in the history of a backup without being in its files. A
//! segment is stored after all contents that it names.

use std::collections::HashSet;

use toolcrib::{BackupSource, now_ms};
use toolcrib_fs::{ChangeOutbox, ContentHash, Entry, KeptPath};

use crate::blobs::{self, Known};
use crate::error::{BackupError, BackupErrorKind};
use crate::objects::{Objects, Put};
use crate::position::{self, LocalStatus, Position};
use crate::scan::{self, FoundTree};
use crate::segment::{self, Header, LeftOut, Segment};
use crate::tree::{self, Node, Tree};

/// The list of files is kept after so many segments.
const KEPT_SEGMENTS: u64 = 16;

/// A workspace that is copied.
pub(crate) struct Copy {
    source: BackupSource,
    outbox: ChangeOutbox,
    objects: Objects,
    machine: String,
    known: Known,
    /// Known once the backup was asked.
    position: Option<Position>,
    /// The tree of the last segment. `None` if it is not known: the next segment is a checkpoint.
    tree: Option<Tree>,
    /// The files as they were read last.
    found: FoundTree,
    /// The segment that the kept list of files belongs to.
    kept: u64,
    left_out: LeftOut,
    copied_ms: u64,
    problem: Option<String>,
}

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// Another process of this machine copies the workspace.
    ByAnother,
    /// The backup has everything. With `soon`, a file may have changed in the meantime.
    UpToDate { soon: bool },
    /// A segment was added.
    Added { soon: bool },
}

impl Copy {
    pub(crate) fn new(source: BackupSource, objects: Objects, machine: &str) -> Copy {
        let outbox = source.outbox(&objects.address().to_string());
        Copy {
            source,
            outbox,
            objects,
            machine: machine.to_owned(),
            known: Known::default(),
            position: None,
            tree: None,
            found: FoundTree::new(),
            kept: 0,
            left_out: LeftOut::default(),
            copied_ms: 0,
            problem: None,
        }
    }

    /// Changes when the history does. Does not use the network.
    pub(crate) fn log_stamp(&self) -> Option<(u64, u64)> {
        self.outbox.log_stamp()
    }

    /// The files that the last round left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The number of the last segment.
    pub(crate) fn number(&self) -> u64 {
        self.position.as_ref().map_or(0, |position| position.number)
    }

    /// After an error, the state of the backup is unknown.
    pub(crate) fn forget(&mut self) {
        self.position = None;
        self.tree = None;
        self.objects.close();
        self.objects.forget_keys();
    }

    /// Copies new contents and changes. With `takes_over`, a backup that another machine has continued is continued here.
    pub(crate) fn round(&mut self, takes_over: bool) -> Result<Round, BackupError> {
        if !self.outbox.try_lock().map_err(BackupError::local)? {
            return Ok(Round::ByAnother);
        }
        let position = match self.position.take() {
            Some(position) => position,
            None => self.begin(takes_over)?,
        };
        let time_ms = now_ms();
        let is_checkpoint = self.tree.is_none() || position.needs_checkpoint();
        let news = self.outbox.after(position.journal).map_err(BackupError::local)?;
        let has_news = !news.changes.is_empty();
        let changes = if is_checkpoint { self.all_changes(news.last)? } else { news.changes };
        self.copy_contents(&changes)?;
        let scan = scan::scan(&self.source, &self.found, &self.objects, &self.known)?;
        (self.left_out, self.found) = (scan.left_out, scan.tree);
        let (tree, soon) = (tree_of(&self.found), scan.is_unsettled);
        if self.tree.as_ref() == Some(&tree) && !has_news {
            // A checkpoint that nothing needs can wait.
            self.position = Some(Position { journal: news.last, ..position });
            self.report(time_ms, None, false);
            return Ok(Round::UpToDate { soon });
        }
        let before = self.tree.take().filter(|_| !is_checkpoint).unwrap_or_default();
        let (put, gone) = tree::difference(&before, &tree);
        let header = self.header(&position, is_checkpoint, time_ms, &tree)?;
        let segment = Segment { header, put, gone, changes };
        let position = self.add(segment, position, news.last)?;
        let is_kept = !is_checkpoint && position.number < self.kept + KEPT_SEGMENTS;
        (self.position, self.tree) = (Some(position), Some(tree));
        if !is_kept {
            self.keep_files()?;
        }
        self.report(time_ms, None, true);
        Ok(Round::Added { soon })
    }

    /// All changes in the history up to a number. Later changes belong to the next segment.
    fn all_changes(&self, last: u64) -> Result<Vec<Entry>, BackupError> {
        let mut outbox = self.source.outbox(&self.objects.address().to_string());
        let mut all = outbox.after(0).map_err(BackupError::local)?.changes;
        all.retain(|change| change.id <= last);
        Ok(all)
    }

    fn header(
        &self,
        position: &Position,
        is_checkpoint: bool,
        time_ms: u64,
        tree: &Tree,
    ) -> Result<Header, BackupError> {
        let number = position.number + 1;
        let sizes = tree.values().filter_map(|node| match node {
            Node::File { size, .. } => Some(*size),
            Node::Directory { .. } | Node::Link { .. } => None,
        });
        Ok(Header {
            format: Header::FORMAT,
            number,
            previous: position.hash.clone(),
            checkpoint: if is_checkpoint { number } else { position.checkpoint },
            time_ms,
            machine: self.machine.clone(),
            root: KeptPath::new(self.outbox.root()),
            tree: tree::hash(tree)?.to_string(),
            files: tree.len() as u64,
            bytes: sizes.sum(),
            left_out: self.left_out,
        })
    }

    /// Adds a segment. Returns the position after it.
    fn add(
        &self,
        segment: Segment,
        position: Position,
        journal: u64,
    ) -> Result<Position, BackupError> {
        let (number, checkpoint) = (segment.header.number, segment.header.checkpoint);
        let encoded = segment.encode()?;
        // Whoever finds the segment later knows that it is ours.
        Position { pending: Some(encoded.hash.clone()), ..position.clone() }.keep(&self.outbox)?;
        if segment::put(&self.objects, number, &encoded)? == Put::Exists {
            // The answer to an earlier attempt may have been lost.
            let there = segment::get(&self.objects, number)?;
            if there.as_ref() != Some(&encoded.bytes) {
                return Err(self.foreign(number));
            }
        }
        let (size, is_checkpoint) = (encoded.bytes.len() as u64, checkpoint == number);
        let position = Position {
            number,
            hash: encoded.hash,
            pending: None,
            checkpoint,
            checkpoint_bytes: if is_checkpoint { size } else { position.checkpoint_bytes },
            bytes_since: if is_checkpoint { 0 } else { position.bytes_since + size },
            journal,
        };
        position.keep(&self.outbox)?;
        Ok(position)
    }

    /// Keeps the state by which the next start continues without reading all files.
    pub(crate) fn keep_files(&mut self) -> Result<(), BackupError> {
        let Some(position) = &self.position else { return Ok(()) };
        // Only together with the tree of the last segment.
        if self.tree.is_some() && self.kept != position.number {
            position::keep_files(&self.outbox, position.number, &self.found)?;
            self.kept = position.number;
        }
        Ok(())
    }

    /// Tells `status` and `doctor` how it is going.
    pub(crate) fn report(&mut self, copied_ms: u64, problem: Option<String>, is_new: bool) {
        const INTERVAL_MS: u64 = 20_000;
        if problem.is_none() {
            let is_due = copied_ms >= self.copied_ms.saturating_add(INTERVAL_MS);
            if !is_new && !is_due && self.problem.is_none() {
                return;
            }
            self.copied_ms = copied_ms;
        } else if self.problem == problem {
            return;
        }
        self.problem.clone_from(&problem);
        let status = LocalStatus {
            address: self.objects.address().to_string(),
            root: self.outbox.root().to_owned(),
            segment: self.number(),
            copied_ms: self.copied_ms,
            problem,
        };
        status.keep(&self.outbox);
    }

    /// Finds out where the backup is, and whether this machine may continue it.
    fn begin(&mut self, takes_over: bool) -> Result<Position, BackupError> {
        let kept = Position::read(&self.outbox)?;
        let position = match kept {
            Some(kept) => self.continued(kept, takes_over)?,
            None => match segment::last(&self.objects)? {
                None => Position::default(),
                Some(last) if takes_over => self.taken_over(last)?,
                Some(last) => return Err(self.foreign(last)),
            },
        };
        if position.number > 0 {
            self.check_conditions(&position)?;
        }
        let (number, found) = position::read_files(&self.outbox);
        self.kept = number;
        let is_current = number == position.number && number > 0;
        self.tree = is_current.then(|| tree_of(&found));
        let nodes = found.values().map(|found| found.node.blobs());
        let blobs: Result<Vec<Vec<ContentHash>>, BackupError> = nodes.collect();
        self.known.add(blobs?.into_iter().flatten());
        if found.is_empty() && position.number > 0 {
            self.known.ask(&self.objects)?;
        }
        self.found = found;
        Ok(position)
    }

    /// The position after a restart.
    fn continued(&self, kept: Position, takes_over: bool) -> Result<Position, BackupError> {
        let next = kept.number + 1;
        match (segment::get(&self.objects, next)?, &kept.pending) {
            (None, _) => Ok(Position { pending: None, ..kept }),
            (Some(there), Some(pending)) if ContentHash::of(&there).to_string() == *pending => {
                // The program ended before it could note that the segment had arrived. The contents of the segment are in no list here.
                let hash = pending.clone();
                Ok(Position { number: next, hash, pending: None, ..kept })
            }
            (Some(_), _) if takes_over => match segment::last(&self.objects)? {
                Some(last) => self.taken_over(last),
                None => Err(self.foreign(next)),
            },
            (Some(_), _) => Err(self.foreign(next)),
        }
    }

    /// The position after the last segment, which another machine has written.
    fn taken_over(&self, last: u64) -> Result<Position, BackupError> {
        let there = segment::get(&self.objects, last)?;
        let there = there.ok_or_else(|| self.foreign(last))?;
        Segment::decode(&there, last)?;
        Ok(Position {
            number: last,
            hash: ContentHash::of(&there).to_string(),
            ..Position::default()
        })
    }

    /// Fails if the server replaces objects that exist: then two machines could write the same segment. Putting the last segment
    /// again changes nothing in either case.
    fn check_conditions(&self, position: &Position) -> Result<(), BackupError> {
        let there = segment::get(&self.objects, position.number)?;
        let there = there.filter(|there| ContentHash::of(there).to_string() == position.hash);
        let there = there.ok_or_else(|| {
            let name = segment::name(position.number);
            BackupError::damaged(format!(
                "{name} is missing or was changed: begin a backup at another address"
            ))
        })?;
        match self.objects.put_new(&segment::name(position.number), &there)? {
            Put::Exists => Ok(()),
            Put::Stored => Err(BackupError::new(
                BackupErrorKind::Refused,
                "the server ignores If-None-Match, so two machines could overwrite each other: use another server, or a newer version",
            )),
        }
    }

    /// Stores the contents that changes refer to. Those that the journal no longer has are left out.
    fn copy_contents(&self, changes: &[Entry]) -> Result<(), BackupError> {
        let mut seen = HashSet::new();
        let versions = changes.iter().flat_map(Entry::versions);
        for version in versions.filter(|version| seen.insert(version.hash)) {
            if self.known.has(&version.hash) || version.size > blobs::MAX_BYTES as u64 {
                continue;
            }
            let content = self.outbox.content(&version).map_err(BackupError::local)?;
            if let Some(content) = content {
                blobs::put(&self.objects, &self.known, &content)?;
            }
        }
        Ok(())
    }

    fn foreign(&self, number: u64) -> BackupError {
        BackupError::new(
            BackupErrorKind::Foreign,
            format!(
                "{} has segment {number}, which this machine has not written for this workspace: use another address, or continue it \
                 with `toolcrib backup restore --take-over`",
                self.objects.address()
            ),
        )
    }
}

fn tree_of(found: &FoundTree) -> Tree {
    found.iter().map(|(path, found)| (path.clone(), found.node.clone())).collect()
}
