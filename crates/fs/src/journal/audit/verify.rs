//! Checks an audit log from its first record to its last, and names the first record that is wrong.

use std::fmt;

use super::AuditEvent;
use super::chained_line::{self, ChainLink, NO_HASH};

/// What is wrong with an audit log. Records have the numbers 1, 2, 3 and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditBreak {
    /// A line is not a record: it was cut off or overwritten.
    NotARecord {
        /// The number of the record that should be there.
        record: u64,
    },
    /// A record does not have the hash that it names.
    Edited {
        /// Its number.
        record: u64,
    },
    /// A record is complete, but is not the one that the next record follows.
    Replaced {
        /// Its number.
        record: u64,
    },
    /// Records are not there.
    Missing {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// A record is in the wrong place.
    Moved {
        /// Its number.
        record: u64,
    },
    /// No record has the hash that was kept.
    UnknownHead,
}

impl fmt::Display for AuditBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditBreak::NotARecord { record } => {
                write!(f, "record {record} was cut off or overwritten")
            }
            AuditBreak::Edited { record } => write!(f, "record {record} was edited"),
            AuditBreak::Replaced { record } => {
                write!(f, "record {record} was replaced: record {} follows another one", record + 1)
            }
            AuditBreak::Missing { first, last } if first == last => {
                write!(f, "record {first} was deleted")
            }
            AuditBreak::Missing { first, last } => {
                write!(f, "records {first} to {last} were deleted")
            }
            AuditBreak::Moved { record } => write!(f, "record {record} was moved or repeated"),
            AuditBreak::UnknownHead => {
                f.write_str("no record has the hash that you kept: the end was cut off, or the whole log was rewritten")
            }
        }
    }
}

/// The result of checking an audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// The number of records up to the first wrong one.
    pub records: u64,
    /// The number of the first record. More than 1 if the beginning was archived, up to the hash that was kept, or
    /// removed because the log was over its limit.
    pub first: u64,
    /// The hash of the last record. Empty if there is none.
    pub head: String,
    /// The number of the record with the hash that was kept, or of the one before the first.
    pub kept_at: Option<u64>,
    /// Bytes after the last record, which a crash left. The next record reports them.
    pub torn_bytes: u64,
    /// The first wrong record.
    pub broken: Option<AuditBreak>,
}

/// Takes the lines of an audit log, and reports.
#[derive(Debug)]
pub struct AuditVerifier<'a> {
    kept: Option<&'a str>,
    report: AuditReport,
    expected: u64,
    /// The number and the hash of the record before the first, until a record says that it was removed.
    before_first: Option<(u64, String)>,
    /// The number of a missing record that a later line may turn out to be.
    sought: Option<u64>,
}

impl<'a> AuditVerifier<'a> {
    /// With the hash that was kept elsewhere, if any.
    pub fn new(kept: Option<&'a str>) -> AuditVerifier<'a> {
        let report = AuditReport { head: NO_HASH.to_owned(), ..AuditReport::default() };
        AuditVerifier { kept, report, expected: 1, before_first: None, sought: None }
    }

    /// The next line, without its newline.
    pub fn line(&mut self, line: &[u8]) {
        let checked = chained_line::check(line);
        if matches!(checked, Some((_, true))) {
            self.note_removal(line);
        }
        if self.report.broken.is_some() {
            let found = checked.filter(|(_, is_right)| *is_right).map(|(link, _)| link.seq);
            if self.sought.is_some() && found == self.sought {
                self.report.broken = found.map(|record| AuditBreak::Moved { record });
                self.sought = None;
            }
            return;
        }
        let record = self.expected;
        match checked {
            None => self.broken(AuditBreak::NotARecord { record }),
            Some((_, false)) => self.broken(AuditBreak::Edited { record }),
            Some((link, true)) => self.link(link),
        }
    }

    fn link(&mut self, link: ChainLink) {
        let is_first = self.report.records == 0;
        if is_first && link.seq > 1 {
            if self.kept == Some(link.prev.as_str()) {
                // The records before it were archived.
                self.report.kept_at = Some(link.seq - 1);
            } else {
                self.before_first = Some((link.seq - 1, link.prev.clone()));
            }
            self.expected = link.seq;
            self.report.head.clone_from(&link.prev);
        }
        if link.seq > self.expected {
            self.sought = Some(self.expected);
            let (first, last) = (self.expected, link.seq - 1);
            return self.broken(AuditBreak::Missing { first, last });
        }
        if link.seq < self.expected {
            return self.broken(AuditBreak::Moved { record: link.seq });
        }
        if link.prev != self.report.head {
            return self.broken(match self.expected {
                1 => AuditBreak::Edited { record: 1 },
                next => AuditBreak::Replaced { record: next - 1 },
            });
        }
        if is_first {
            self.report.first = link.seq;
        }
        if self.kept == Some(link.hash.as_str()) {
            self.report.kept_at = Some(link.seq);
        }
        self.report.records += 1;
        self.expected = link.seq.saturating_add(1);
        self.report.head = link.hash;
    }

    /// A record about the removal of the oldest records may be the reason why the log begins where it does.
    fn note_removal(&mut self, line: &[u8]) {
        if self.before_first.is_none() && self.kept.is_none() {
            return;
        }
        let Ok(AuditEvent::OldestRemoved { last, last_hash, .. }) = serde_json::from_slice(line)
        else {
            return;
        };
        if self.report.broken.is_none() && self.kept == Some(last_hash.as_str()) {
            self.report.kept_at = Some(last);
        }
        self.before_first.take_if(|(number, hash)| *number == last && *hash == last_hash);
    }

    /// A line that is too long for a record, or has no end.
    pub fn long_line(&mut self) {
        if self.report.broken.is_none() {
            self.broken(AuditBreak::NotARecord { record: self.expected });
        }
    }

    fn broken(&mut self, how: AuditBreak) {
        self.report.broken = Some(how);
    }

    /// The result. `torn_bytes` are the bytes after the last line.
    pub fn finish(self, torn_bytes: u64) -> AuditReport {
        let mut report = AuditReport { torn_bytes, ..self.report };
        if let Some((last, _)) = self.before_first {
            (report.records, report.first) = (0, 0);
            let is_moved =
                matches!(report.broken, Some(AuditBreak::Moved { record }) if record <= last);
            if !is_moved {
                report.broken = Some(AuditBreak::Missing { first: 1, last });
            }
        }
        if report.records == 0 {
            report.head.clear();
        }
        if report.broken.is_none() && self.kept.is_some() && report.kept_at.is_none() {
            report.broken = Some(AuditBreak::UnknownHead);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(count: u64) -> Vec<String> {
        let mut prev = NO_HASH.to_owned();
        let make = |seq| {
            let (line, hash) = chained_line::make(&prev, seq, &format!("{{\"n\":\"{seq}\"}}"));
            prev = hash;
            line
        };
        (1..=count).map(make).collect()
    }

    fn verify(lines: &[impl AsRef<[u8]>], kept: Option<&str>) -> AuditReport {
        let mut verifier = AuditVerifier::new(kept);
        lines.iter().for_each(|line| verifier.line(line.as_ref()));
        verifier.finish(0)
    }

    fn broken(lines: &[impl AsRef<[u8]>]) -> Option<AuditBreak> {
        verify(lines, None).broken
    }

    fn hash(line: &str) -> &str {
        &line[9..73]
    }

    #[test]
    fn an_unbroken_log_has_a_head() {
        let all = lines(5);
        let report = verify(&all, None);
        assert_eq!((report.records, report.first, &report.broken), (5, 1, &None));
        assert_eq!(report.head, hash(&all[4]));
        let nothing: [&str; 0] = [];
        assert_eq!(verify(&nothing, None), AuditReport::default());
    }

    #[test]
    fn the_first_wrong_record_is_named() {
        let all = lines(6);
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut changed = all.clone();
            change(&mut changed);
            broken(&changed)
        };
        let edited =
            |lines: &mut Vec<String>| lines[2] = lines[2].replace("\"n\":\"3\"", "\"n\":\"4\"");
        assert_eq!(with(&edited), Some(AuditBreak::Edited { record: 3 }));
        let cut = |lines: &mut Vec<String>| lines[2].truncate(90);
        assert_eq!(with(&cut), Some(AuditBreak::NotARecord { record: 3 }));
        let deleted = |lines: &mut Vec<String>| drop(lines.drain(2..4));
        assert_eq!(with(&deleted), Some(AuditBreak::Missing { first: 3, last: 4 }));
        let beginning = |lines: &mut Vec<String>| drop(lines.remove(0));
        assert_eq!(with(&beginning), Some(AuditBreak::Missing { first: 1, last: 1 }));
        let swapped = |lines: &mut Vec<String>| lines.swap(2, 3);
        assert_eq!(with(&swapped), Some(AuditBreak::Moved { record: 3 }));
        let repeated = |lines: &mut Vec<String>| lines.insert(3, lines[1].clone());
        assert_eq!(with(&repeated), Some(AuditBreak::Moved { record: 2 }));
        // With a right hash of its own.
        let replaced = |lines: &mut Vec<String>| {
            let before = hash(&lines[1]).to_owned();
            lines[2] = chained_line::make(&before, 3, "{\"n\":\"forged\"}").0;
        };
        assert_eq!(with(&replaced), Some(AuditBreak::Replaced { record: 3 }));
        let renumbered = |lines: &mut Vec<String>| {
            lines.drain(2..3);
            let before = hash(&lines[1]).to_owned();
            lines[2] = chained_line::make(&before, 3, "{\"n\":\"4\"}").0;
        };
        assert_eq!(with(&renumbered), Some(AuditBreak::Missing { first: 4, last: 4 }));
    }

    /// A cut end or a rewritten log is a right log. Only a hash that was kept elsewhere shows it.
    #[test]
    fn a_kept_hash_shows_a_cut_end_and_a_rewritten_log() {
        let all = lines(5);
        let kept = Some(hash(&all[3]));
        assert_eq!(verify(&all, kept).kept_at, Some(4));
        assert_eq!(broken(&all[..3]), None);
        assert_eq!(verify(&all[..3], kept).broken, Some(AuditBreak::UnknownHead));
        let (rewritten, _) = chained_line::make(NO_HASH, 1, "{\"n\":\"new\"}");
        assert_eq!(broken(&[&rewritten]), None);
        assert_eq!(verify(&[&rewritten], kept).broken, Some(AuditBreak::UnknownHead));
        // Archived up to the kept hash.
        let report = verify(&all[4..], kept);
        assert_eq!((report.first, report.kept_at, report.broken), (5, Some(4), None));
        assert!(verify(&all[3..], Some(NO_HASH)).broken.is_some());
    }

    proptest! {
        /// Any bytes have an answer, and no change of a log is taken for it, except at its end.
        #[test]
        fn any_changed_log_is_noticed(
            count in 2_u64..8,
            line in 0_usize..8,
            change in 0_usize..4,
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut all: Vec<Vec<u8>> = lines(count).into_iter().map(String::into_bytes).collect();
            let original = all.clone();
            let at = line % (all.len() - 1);
            match change {
                0 => all[at] = bytes,
                1 => drop(all.remove(at)),
                2 => all.insert(at, bytes),
                _ => all.swap(at, at + 1),
            }
            prop_assert!(broken(&all).is_some() || all == original);
        }
    }
}
