//! The patch parser: any text is a patch or is refused with a reason, and a patch has files and changes.

use toolcrib_text::{FileAction, Patch, Sign};

pub(crate) fn patch(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let patch = match Patch::parse(&text) {
        Ok(patch) => patch,
        Err(error) => {
            assert!(!error.what.is_empty(), "a refusal has a reason");
            assert!(error.line <= text.lines().count(), "the line is one of the patch: {error:?}");
            return format!("refused: {:?}", error.kind);
        }
    };
    assert!(!patch.files.is_empty(), "a patch names a file");
    for file in &patch.files {
        let moved = matches!(file.action, FileAction::Move | FileAction::Copy);
        assert_eq!(file.from.is_some(), moved, "a moved or copied file has a source");
        for hunk in &file.hunks {
            let changes = hunk.lines.iter().any(|line| line.sign != Sign::Keep);
            assert!(changes, "a hunk changes something");
            assert!(
                hunk.lines.iter().all(|line| !line.text.contains('\n')),
                "a line has no newline"
            );
        }
        let added = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|l| l.sign == Sign::Add);
        let longest: usize = added.map(|line| line.text.len() + 1).sum();
        assert!(file.added_text().len() <= longest, "a new file has the lines that are added");
    }
    format!("{:?}", patch.files[0].action)
}
