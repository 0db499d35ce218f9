//! Several sessions in parallel, each changing its own files and searching immediately, while the index is
//! built. Each session must see its own changes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;

use toolcrib_search::{ListingCaches, PatternOptions};

use crate::indexed::{ALWAYS, PartialDecoder, search, wait_until_not_racy};
use crate::model;
use crate::random::Random;
use crate::tree::TestTree;

const SESSIONS: usize = 4;

#[test]
fn each_session_sees_its_own_changes_immediately() {
    let (tree_dir, caches) = (TestTree::new(), ListingCaches::new(ALWAYS, None));
    for session in 0..SESSIONS {
        fs::create_dir_all(tree_dir.path().join(format!("s{session}/a/deep"))).unwrap();
        fs::write(tree_dir.path().join(format!("s{session}/a/deep/f")), word(session, 0)).unwrap();
    }
    wait_until_not_racy();
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (tree_dir, caches) = (&tree_dir, &caches);
            scope.spawn(move || run(tree_dir, caches, session, model::steps() / 20));
        }
    });
}

/// All words have the same length.
fn word(session: usize, round: usize) -> String {
    format!("word{session}x{round:06}y\n")
}

fn run(tree_dir: &TestTree, caches: &ListingCaches, session: usize, rounds: usize) {
    let top = tree_dir.path().join(format!("s{session}"));
    let mut random = Random::new(session as u64);
    let mut at = "a";
    for round in 1..=rounds {
        at = change(&top, at, &word(session, round), &mut random);
        for (round, expected) in [(round, 1), (round - 1, 0)] {
            let text = word(session, round);
            let pattern = text.trim_end();
            let options =
                PatternOptions { pattern, literal: true, ignore_case: false, multiline: false };
            let found = search(tree_dir, options, Some(caches)).unwrap().found;
            assert_eq!(found.len(), expected, "session {session}, round {round}: {found:?}");
        }
        if session == 0 && round % 20 == 0 {
            tree_dir.with_listing(Some(caches), |listing| {
                caches.build_index(&tree_dir.tree, listing, &PartialDecoder);
            });
        }
    }
}

/// Replaces the text of a file. Returns the name of its directory afterwards.
fn change<'a>(top: &Path, at: &'a str, text: &str, random: &mut Random) -> &'a str {
    let file = top.join(at).join("deep/f");
    match random.below(3) {
        0 => {
            let modified = fs::metadata(&file).unwrap().modified().unwrap();
            let mut open = fs::File::options().write(true).open(&file).unwrap();
            open.write_all(text.as_bytes()).unwrap();
            open.set_modified(modified).unwrap();
        }
        1 => {
            fs::write(top.join("new"), text).unwrap();
            fs::rename(top.join("new"), &file).unwrap();
        }
        _ => {
            let other = if at == "a" { "b" } else { "a" };
            fs::rename(top.join(at), top.join(other)).unwrap();
            fs::write(top.join(other).join("deep/f"), text).unwrap();
            return other;
        }
    }
    at
}
