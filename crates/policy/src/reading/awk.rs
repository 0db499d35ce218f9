//! awk, if its program has nothing that writes or runs: `>`, `|`, `system`, `getline`.

use crate::command::Word;

/// What a program must not hold to be sure that it only prints.
const ACTING: &[&str] = &[">", "|", "system", "getline", "@", "close", "fflush"];

/// The files that awk reads.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut rest = arguments;
    loop {
        let (word, behind) = rest.split_first()?;
        match word.known()? {
            "-F" | "-v" => rest = behind.get(1..)?,
            text if text.starts_with("-F") => rest = behind,
            "--" => rest = behind,
            text if text.starts_with('-') => return None,
            program => {
                let acts = ACTING.iter().any(|part| program.contains(part));
                let files = behind.iter();
                return (!acts && !files.clone().any(super::can_be_option))
                    .then(|| files.cloned().collect());
            }
        }
    }
}
