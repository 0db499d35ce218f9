//! awk, if its program cannot write, run a program or open another file.

use crate::command::Word;

/// Text that has side effects. It counts in strings and patterns too, because versions of awk disagree on
/// where those end. A program could name other files in `ARGV`.
const SIDE_EFFECTS: &[&str] = &[
    ">",
    "|",
    "@",
    "ARGC",
    "ARGV",
    "SYMTAB",
    "bindtextdomain",
    "close",
    "fflush",
    "getline",
    "system",
    // A line continuation could split a word.
    "\\\n",
    "\\\r",
];

/// The files that awk reads. `None` if it may do more than read.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut rest = arguments;
    loop {
        let (word, after) = rest.split_first()?;
        match word.known()? {
            "-F" | "-v" => {
                let (value, after) = after.split_first()?;
                if value.splits || value.glob {
                    return None;
                }
                rest = after;
            }
            text if text.starts_with("-F") => rest = after,
            "--" => rest = after,
            text if text.starts_with('-') => return None,
            program => {
                let files = after.iter();
                return (!has_side_effects(program) && !files.clone().any(super::can_be_option))
                    .then(|| files.cloned().collect());
            }
        }
    }
}

fn has_side_effects(program: &str) -> bool {
    // These are a comparison and an operator, not redirections.
    let program = program.replace(">=", " ").replace("||", " ");
    SIDE_EFFECTS.iter().any(|part| program.contains(part))
}

#[cfg(test)]
mod tests {
    use super::has_side_effects;

    #[test]
    fn recognizes_programs_without_side_effects() {
        for program in ["{print $1}", "NR>=2 && NR<=4 || /x/", "{ s += $2 } END { print s }"] {
            assert!(!has_side_effects(program), "{program}");
        }
        for program in [
            "{print>\"x\"}",
            "{print>>\"x\"}",
            "{print >>=\"x\"}",
            "{print|\"sh\"}",
            "{print|||\"sh\"}",
            "{print|>=|\"sh\"}",
            "\"id\"|getline",
            "BEGIN{system(\"id\")}",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}",
            "BEGIN{sys\\\ntem(\"id\")}",
            "@load \"filefuncs\"",
        ] {
            assert!(has_side_effects(program), "{program}");
        }
    }
}
