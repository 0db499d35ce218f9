//! Measures the cost of a safe replacement: a [`Change`] of an 8 KiB file, with and without a journal,
//! against the plain sequence (temporary file, fsync, rename), in one run.
//!
//! `cargo run --release -p toolcrib-fs --example measure_replace`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the other side of the comparison uses plain calls"
)]

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use toolcrib_fs::{About, Caps, Change, ChangeRecorder, Journal, Root, RootMode, Step, Workspace};

const ROUNDS: usize = 400;

fn main() {
    let tree = tempfile::tempdir_in(".").unwrap();
    std::fs::create_dir(tree.path().join("ws")).unwrap();
    let versions = [vec![b'a'; 8192], vec![b'b'; 8192]];
    for name in ["plain", "ours", "kept"] {
        std::fs::write(tree.path().join("ws").join(name), &versions[0]).unwrap();
    }
    let root = Root::open(tree.path().join("ws"), RootMode::ReadWrite).unwrap();
    let workspace = Workspace::new(vec![root]).unwrap();
    let journal = Journal::open(tree.path().join("state"), Caps::default()).unwrap();

    let plain = |now: &[u8]| {
        let temporary = tree.path().join("ws/temporary");
        let mut file = std::fs::File::create(&temporary).unwrap();
        file.write_all(now).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(&temporary, tree.path().join("ws/plain")).unwrap();
    };
    let change = |name: &str, was: &[u8], now: &[u8], journal: Option<&Journal>| {
        let place = workspace.resolve(&workspace.top(), Path::new(name)).unwrap();
        let change = Change::new(vec![Step::replace(place, was.to_vec(), now.to_vec())]);
        let locks = change.lock().unwrap();
        let recorder = journal.map(|journal| ChangeRecorder { journal, about: About::default() });
        change.commit(&locks, recorder).unwrap();
    };
    // Interleaved, so that a slow moment of the machine affects all of them.
    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let (was, now) = (&versions[round % 2], &versions[(round + 1) % 2]);
        times[0].push(milliseconds(|| plain(now)));
        times[1].push(milliseconds(|| change("ours", was, now, None)));
        times[2].push(milliseconds(|| change("kept", was, now, Some(&journal))));
    }
    let [plain, ours, kept] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    println!("| 8 KiB replaced | ms | to plain |");
    println!("|---|--:|--:|");
    println!("| temporary file, fsync, rename | {plain:.3} | 1.00× |");
    println!("| a change, no journal | {ours:.3} | {:.2}× |", ours / plain);
    println!(
        "| a change with its journal | {kept:.3} | {:.2}×, {:.2} ms more |",
        kept / plain,
        kept - ours
    );
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}
