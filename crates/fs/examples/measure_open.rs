//! Measures the cost of confinement: opening a file through a [`Workspace`] against a bare `openat2`, in one
//! run.
//!
//! `cargo run --release -p toolcrib-fs --example measure_open`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]
#![allow(clippy::disallowed_methods, reason = "the other side of the comparison is the bare call")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use toolcrib_fs::{ReadFile, Root, RootMode, Workspace};

const ROUNDS: usize = 20_000;
const BATCHES: usize = 15;

fn main() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("src/deep/er")).unwrap();
    let relative = Path::new("src/deep/er/file.rs");
    std::fs::write(tree.path().join(relative), "fn main() {}\n").unwrap();
    let root = rustix::fs::open(
        tree.path(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let workspace =
        Workspace::new(vec![Root::open(tree.path(), RootMode::ReadOnly).unwrap()]).unwrap();
    let top = workspace.top();
    let place = workspace.resolve(&top, relative).unwrap();

    let bare = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        black_box(rustix::fs::openat2(&root, relative, flags, Mode::empty(), resolve).unwrap());
    };
    let open = || {
        black_box(ReadFile::open(&place).unwrap());
    };
    let both = || {
        let place = workspace.resolve(&top, relative).unwrap();
        black_box(ReadFile::open(&place).unwrap());
    };
    // Interleaved, so that a slow moment of the machine affects all of them.
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..BATCHES {
        times[0].push(nanoseconds(&bare));
        times[1].push(nanoseconds(&open));
        times[2].push(nanoseconds(&both));
    }
    let [bare, open, both] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[BATCHES / 2]
    });
    println!("| confined open | ns | to a bare openat2 |");
    println!("|---|--:|--:|");
    println!("| openat2, bare | {bare:.0} | 1.00× |");
    println!("| a place, opened | {open:.0} | {:.2}× |", open / bare);
    println!("| a path, resolved and opened | {both:.0} | {:.2}× |", both / bare);
}

fn nanoseconds(work: &impl Fn()) -> f64 {
    let began = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    began.elapsed().as_nanos() as f64 / ROUNDS as f64
}
