//! awk, if no part of its program can write, run a program, or open another file.

use crate::command::Word;

/// Parts of a program that acts, wherever they stand: in strings and patterns too, because versions of
/// awk disagree on where those end. A program could name other files in `ARGV`.
const ACTING: &[&str] = &[
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
    // A word could go on behind it.
    "\\\n",
    "\\\r",
];

/// The files that awk reads.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut rest = arguments;
    loop {
        let (word, behind) = rest.split_first()?;
        match word.known()? {
            "-F" | "-v" => {
                let (value, behind) = behind.split_first()?;
                if value.splits || value.glob {
                    return None;
                }
                rest = behind;
            }
            text if text.starts_with("-F") => rest = behind,
            "--" => rest = behind,
            text if text.starts_with('-') => return None,
            program => {
                let files = behind.iter();
                return (!acts(program) && !files.clone().any(super::can_be_option))
                    .then(|| files.cloned().collect());
            }
        }
    }
}

fn acts(program: &str) -> bool {
    // Comparisons, not redirections.
    let program = program.replace(">=", " ").replace("||", " ");
    ACTING.iter().any(|part| program.contains(part))
}

#[cfg(test)]
mod tests {
    use super::acts;

    #[test]
    fn programs_that_only_print_do_not_act() {
        for program in ["{print $1}", "NR>=2 && NR<=4 || /x/", "{ s += $2 } END { print s }"] {
            assert!(!acts(program), "{program}");
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
            assert!(acts(program), "{program}");
        }
    }
}
