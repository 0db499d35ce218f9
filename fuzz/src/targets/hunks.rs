//! Placing hunks: all or none are applied, the number of lines changes by the amount they state, and applying
//! them again changes nothing.

use toolcrib_text::{FilePatch, Hunk, Patch, Sign};

use super::parts;

/// The parts are the patch and the file.
pub(crate) fn hunks(input: &[u8]) -> String {
    let [text, file] = parts(input);
    let text = String::from_utf8_lossy(text);
    let Ok(patch) = Patch::parse(&text) else { return "no patch".to_owned() };
    let mut reached = "no hunks".to_owned();
    for part in patch.files.iter().filter(|part| !part.hunks.is_empty()) {
        reached = place(part, file);
    }
    reached
}

fn place(part: &FilePatch<'_>, file: &[u8]) -> String {
    let applied = match Hunk::apply_all(&part.hunks, file) {
        Ok(applied) => applied,
        Err(misfit) => {
            assert!(misfit.hunk < part.hunks.len(), "a misfit is one of the hunks");
            let why = format!("{:?}", misfit.why);
            return why.split([' ', '{']).next().unwrap_or_default().to_owned();
        }
    };
    assert_eq!(applied.hunks.len(), part.hunks.len(), "each hunk has a result");
    let made = part.hunks.iter().zip(&applied.hunks).filter(|(_, fate)| !fate.already);
    let made: Vec<&Hunk<'_>> = made.map(|(hunk, _)| hunk).collect();
    if made.is_empty() {
        assert_eq!(applied.text, file, "hunks applied before change nothing");
        return "applied before".to_owned();
    }
    // An unended last line and a `\r` make the line count ambiguous.
    let unended = part.hunks.iter().any(|hunk| hunk.old_unended || hunk.new_unended);
    let has_cr = |bytes: &[u8]| bytes.contains(&b'\r');
    if !unended && file.ends_with(b"\n") && !has_cr(file) && !has_cr(&applied.text) {
        let count = |sign| {
            let lines = made.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.sign == sign).count()
        };
        let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
        let (was, now) = (lines(file), lines(&applied.text));
        assert_eq!(
            was + count(Sign::Add),
            now + count(Sign::Remove),
            "the line count changes as the hunks say"
        );
    }
    match applied.hunks.iter().find_map(|fate| fate.rung) {
        Some(rung) => format!("applied: {}", rung.name()),
        None => "applied".to_owned(),
    }
}
