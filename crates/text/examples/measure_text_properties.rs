//! Measures [`TextProperties`] and the [`Encoding`] detection on mixed text, compared with copying and with UTF-8
//! validation, in one run. The argument is the size in MB.
//!
//! `cargo run --release -p toolcrib-text --example measure_text_properties -- 100`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement for people: it reads its argument and prints"
)]

use std::hint::black_box;
use std::time::Instant;

use toolcrib_text::{Encoding, TextProperties};

const ROUNDS: usize = 9;

/// Source code, prose with accents, and characters of three and four bytes.
const MIXED: &[&str] = &[
    "fn main() {\n\tlet answer = compute(42, \"an argument\");\n\tprintln!(\"{answer}\");\n}\n",
    "Où est la bibliothèque ? Les élèves étaient très fatigués, même à Noël.\r\n",
    "// 计算两个数的和,然后返回结果。\n// 二つの数の合計を計算して、結果を返します。\n",
    "A plain line of English, as most lines in most repositories are, with nothing odd in it.\n",
    "- done 🎉 and shipped 🚀\n",
];

fn main() {
    let megabytes: Option<usize> = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let bytes = megabytes.unwrap_or(100) * 1_000_000;
    let text: Vec<u8> =
        MIXED.iter().flat_map(|part| part.bytes()).collect::<Vec<_>>().repeat(1_000);
    let text = text.repeat(bytes.div_ceil(text.len()));
    let mut copy = vec![0; text.len()];
    // Interleaved, so that a slow moment of the machine affects all of them.
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        times[0].push(milliseconds(|| black_box(&mut copy).copy_from_slice(black_box(&text))));
        times[1].push(milliseconds(|| assert!(std::str::from_utf8(black_box(&text)).is_ok())));
        times[2].push(milliseconds(|| {
            assert_eq!(TextProperties::of(black_box(&text)).invalid_utf8, 0);
        }));
        times[3].push(milliseconds(|| assert!(Encoding::of(black_box(&text)).is_utf8())));
        times[4].push(milliseconds(|| {
            let encoding = Encoding::of(black_box(&text));
            assert!(encoding.decode(&text).is_some());
            assert_eq!(TextProperties::of(black_box(&text)).invalid_utf8, 0);
        }));
    }
    let times = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    let names =
        ["memcpy", "str::from_utf8", "TextProperties::of", "Encoding::of", "both, and decode"];
    println!(
        "| {} MB of mixed text | ms | GB/s | to memcpy | to from_utf8 |",
        text.len() / 1_000_000
    );
    println!("|---|--:|--:|--:|--:|");
    for (name, ms) in names.into_iter().zip(times) {
        let speed = text.len() as f64 / ms / 1e6;
        let [copied, checked] = [ms / times[0], ms / times[1]];
        println!("| {name} | {ms:.1} | {speed:.2} | {copied:.2}× | {checked:.2}× |");
    }
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}
