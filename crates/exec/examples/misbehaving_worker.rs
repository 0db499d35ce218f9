//! A worker that tries things that a decoder should not do. The tests check the results.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a program that tries everything"
)]

use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use toolcrib_exec::{Worker, WorkerLimits, confine};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let own_path = std::env::current_exe();
    if mode != "start-a-worker"
        && let Err(error) = confine()
    {
        eprintln!("{error}");
    }
    match mode.as_str() {
        "echo" => echo(),
        "try-everything" => try_everything(),
        "eat-memory" => eat_memory(),
        "spin" => spin(),
        "overflow-the-stack" => println!("{}", overflow(0)),
        "panic" => panic!("this file is odd"),
        "start-a-worker" => {
            let limits = WorkerLimits {
                memory_bytes: 1 << 30,
                cpu_seconds: 10,
                wall: Duration::from_secs(60),
                output_bytes: 0,
            };
            let (program, arguments) = (own_path.unwrap_or_default(), vec!["spin".into()]);
            let answer = Worker { program, arguments, limits }.run(&[], &|| false);
            println!("{answer:?}");
        }
        other => {
            eprintln!("unknown mode `{other}`");
            std::process::exit(3);
        }
    }
}

fn echo() {
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut bytes) {
        eprintln!("{error}");
        std::process::exit(4);
    }
    if let Err(error) = std::io::stdout().write_all(&bytes) {
        eprintln!("{error}");
    }
}

/// Prints one line per attempt: its name, and whether it was possible.
fn try_everything() {
    let tried: [(&str, bool); 7] = [
        ("read a file", std::fs::read("/etc/passwd").is_ok()),
        ("list a directory", std::fs::read_dir("/").is_ok()),
        ("write a file", std::fs::write("/tmp/toolcrib-confined", "x").is_ok()),
        ("look at a file", std::fs::metadata("/etc/passwd").is_ok()),
        ("make a socket", std::net::UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("start a program", Command::new("/bin/true").status().is_ok()),
        ("start a thread", std::thread::Builder::new().spawn(|| {}).is_ok()),
    ];
    for (what, possible) in tried {
        println!("{what}: {}", if possible { "possible" } else { "refused" });
    }
}

fn eat_memory() {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![1; 16 << 20]);
    }
}

fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 100]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + frame[7] }
}
