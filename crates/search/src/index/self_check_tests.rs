//! Tests that the self-check detects a wrong index.

#![allow(clippy::disallowed_methods, reason = "tests lay out the files that are looked at")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use toolcrib_fs::{Root, RootMode, Workspace};

use super::segment::SegmentBuilder;
use super::*;
use crate::backtrack::InThisProcess;
use crate::content_class::ContentClass;
use crate::deadline::Deadline;
use crate::decoder::{ChunkDecoder, Decoded, Decoder};
use crate::pattern::PatternOptions;
use crate::walk::{Walk, walk};

struct AsIs;

impl Decoder for AsIs {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        Decoded::Text(bytes.into(), None)
    }

    fn pieces(&self, _beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        None
    }
}

#[test]
fn an_index_that_misses_a_match_is_turned_off() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("f"), "a word\n").unwrap();
    let root = Root::open(directory.path(), RootMode::ReadOnly).unwrap();
    let tree = BulkReader::around(&Workspace::new(vec![root]).unwrap().top());
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
    let start = Path::new("");
    let walked =
        walk(&Walk { tree: &tree, start, ignored: false, named: &[], own: &[], stop: &stop });
    let work = || BuildInput {
        directories: walked.directories.clone(),
        decoder: &AsIs,
        is_persistent: true,
    };
    let wanted =
        PatternOptions { pattern: "word", literal: true, ignore_case: false, multiline: false };
    let pattern = Pattern::new(wanted, &InThisProcess::shared(), &stop).unwrap();
    let stamp = tree.stamp(Path::new("f")).unwrap();

    for (indexed_text, is_right) in [("a word\n", true), ("nothing of it\n", false)] {
        let index = Arc::new(Index::new(IndexSettings::default(), None));
        let mut builder = SegmentBuilder::new(CHUNK_BYTES);
        builder.add(stamp, ContentClass::Plain, indexed_text.as_bytes());
        index.publish(|snapshot| snapshot.with([builder.finish(1)]));
        assert_eq!(
            self_check::find_missed_match(&index, &tree, &work(), &pattern).is_none(),
            is_right
        );
        index.check_later(&tree, work(), &pattern);
        let until = Instant::now() + Duration::from_secs(20);
        while !is_right && index.status().off.is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(index.status().off.is_none(), is_right);
        assert_eq!(index.query(&pattern, u64::MAX).is_some(), is_right);
        assert_eq!((index.take_alarm().is_none(), index.take_alarm()), (is_right, None));
    }
}
