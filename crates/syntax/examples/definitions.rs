//! Prints the definitions of files, for comparisons with other programs: `cargo run --example definitions FILE…`.
//! Without arguments, the names of the files are read from standard input.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program for measurements: it reads any file, and prints"
)]

use std::time::{Duration, Instant};

use toolcrib_syntax::{Language, Syntax};

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        files = std::io::stdin().lines().map_while(Result::ok).collect();
    }
    for file in files {
        let Ok(text) = std::fs::read(&file) else { continue };
        let name = file.rsplit('/').next().unwrap_or(&file);
        let Some(language) = Language::of_file(name, &text) else { continue };
        let began = Instant::now();
        let is_over = || began.elapsed() > Duration::from_secs(10);
        let outline = match Syntax::parse(language, &text, &is_over) {
            Ok(syntax) => syntax.outline_until(&is_over),
            Err(error) => {
                println!("{file}\t!{error:?}");
                continue;
            }
        };
        if outline.has_errors {
            println!("{file}\t!errors");
        }
        for one in &outline.definitions {
            let path = outline.path(one);
            println!(
                "{file}\t{}\t{}\t{:?}\t{}\t{}\t{}\t{}\t{path}\t{}",
                one.name,
                one.word,
                one.class,
                one.name_line,
                one.doc_line,
                one.first_line,
                one.last_line,
                one.signature
            );
        }
    }
}
