//! Pages that show the exact input and output of the program.
//!
//! A page of `cases/` has `run` blocks (the input of `toolcrib run`, with escapes) and `command` blocks (a command
//! line). Each is followed by an `output` block, with the exit code if it is not 0. `$TOP` is the directory.

use std::path::Path;

use toolcrib_testkit::{Document, Segment, unescape};

use crate::{text, toolcrib};

#[test]
fn every_page_shows_the_real_output() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let mut pages = 0;
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let page = std::fs::read_to_string(&path).unwrap();
        let real = play(Document::parse(&page).unwrap()).render();
        if update {
            std::fs::write(&path, &real).unwrap();
        } else {
            assert_eq!(page, real, "{} (UPDATE=1 writes what really happens)", path.display());
        }
        pages += 1;
    }
    assert!(pages > 0);
}

/// The page with the real output in its `output` blocks.
fn play(page: Document) -> Document {
    let workspace = tempfile::tempdir().unwrap();
    let mut real = Vec::new();
    for segment in page.segments {
        let Segment::Block { info, body, .. } = &segment else {
            real.push(segment);
            continue;
        };
        let output = match info.split_once(' ').unwrap_or((info.as_str(), "")) {
            ("file", path) => {
                std::fs::write(workspace.path().join(path), body).unwrap();
                None
            }
            ("run", flags) => {
                let mut words = vec!["run"];
                words.extend(flags.split_whitespace());
                let input = unescape(&body.replace('\n', "")).unwrap();
                Some(toolcrib(workspace.path(), &words, &input))
            }
            ("command", "") => {
                let words = words(body);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                Some(toolcrib(workspace.path(), &words[1..], b""))
            }
            ("output", _) => continue,
            _ => panic!("no such block: {info}"),
        };
        real.push(segment);
        if let Some(output) = output {
            let code = output.status.code().unwrap();
            let info = if code == 0 { "output".to_owned() } else { format!("output exit={code}") };
            let body = format!("{}{}", text(&output.stdout), text(&output.stderr));
            let body = body.replace(workspace.path().to_str().unwrap(), "$TOP");
            real.push(Segment::Block { fence: "```".to_owned(), info, body });
        }
    }
    Document { segments: real }
}

/// The words of a command line. Single quotes protect whitespace.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (number, part) in line.trim_end().split('\'').enumerate() {
        if number % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        for letter in part.chars() {
            if letter.is_whitespace() {
                words.push(String::new());
            } else {
                words.last_mut().unwrap().push(letter);
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
