//! The table: what each program takes, and which of its options do more than read.

/// A program that only reads, unless it is told otherwise.
pub(super) struct Reader {
    names: &'static [&'static str],
    pub(super) operands: Operands,
    /// Options with which it writes or runs something. If there are any, arguments that are not known
    /// must not be able to be one of them.
    pub(super) never: &'static [&'static str],
    /// Options whose value is the next word.
    pub(super) values: &'static [&'static str],
    /// Options that give what else the first operand would.
    pub(super) gives_text: &'static [&'static str],
}

/// What the operands of a program are.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    Files,
    /// No files.
    Text,
    /// A pattern, then files.
    TextThenFiles,
}

use Operands::{Files, Text, TextThenFiles};

/// Programs that say their version when they are asked only for it.
///
/// Not those of which a file in the working directory chooses the version, and so the program:
/// `rust-toolchain.toml` (cargo, rustc), `packageManager` and `.yarnrc.yml` (yarn, pnpm, npm), `go.mod`
/// (go), `.tool-versions` and the like (node, python, ruby, java, deno and others).
pub(super) const VERSIONED: &[&str] =
    &["bash", "clang", "cmake", "curl", "docker", "gcc", "g++", "git", "jq", "make", "rg"];

/// The row of a program.
pub(super) fn find(name: &str) -> Option<&'static Reader> {
    TABLE.iter().find(|reader| reader.names.contains(&name))
}

const fn row(names: &'static [&'static str], operands: Operands) -> Reader {
    Reader { names, operands, never: &[], values: &[], gives_text: &[] }
}

const TABLE: &[Reader] = &[
    row(&["echo", "true", "false", ":", "pwd", "sleep", "seq", "basename", "dirname"], Text),
    row(&["exit", "return", "break", "continue", "shift"], Text),
    row(&["which", "type", "whoami", "id", "groups", "uname", "arch", "nproc", "uptime"], Text),
    row(&["ps", "free", "lscpu", "lsblk", "tty", "locale", "tr"], Text),
    row(&["cat", "tac", "nl", "rev", "od", "hexdump", "strings", "cmp", "comm", "paste"], Files),
    row(&["df", "realpath", "readlink", "expand", "unexpand", "fold", "fmt", "pr"], Files),
    row(
        &["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha512sum", "b2sum", "cksum", "sum"],
        Files,
    ),
    Reader { values: &["-n", "-c", "--lines", "--bytes"], ..row(&["head", "tail"], Files) },
    Reader { values: &["-I", "-w", "--ignore"], ..row(&["ls", "dir", "vdir"], Files) },
    row(&["du", "wc"], Files),
    Reader { values: &["-c", "-f", "--format", "--printf"], ..row(&["stat"], Files) },
    Reader { values: &["-d", "-f", "-c", "-b"], ..row(&["cut"], Files) },
    Reader { values: &["-j", "-t", "-1", "-2", "-o", "-e", "-v", "-a"], ..row(&["join"], Files) },
    Reader { values: &["-s", "-t", "-c", "-o"], ..row(&["column"], Files) },
    // They set a variable, or run a command.
    Reader { never: &["-p"], ..row(&["wait"], Text) },
    Reader { never: &["-x"], ..row(&["jobs"], Text) },
    Reader {
        never: &[
            "-C",
            "--compile",
            "-z",
            "-Z",
            "--uncompress",
            "--uncompress-noreport",
            "-f",
            "--files-from",
            "-p",
            "--preserve-date",
        ],
        values: &["-F"],
        ..row(&["file"], Files)
    },
    Reader { values: &["-f", "-s", "-w"], ..row(&["uniq"], Files) },
    Reader {
        never: &["-l", "--paginate"],
        values: &["-U", "--unified", "-x", "--exclude", "-I", "-L", "--label"],
        ..row(&["diff"], Files)
    },
    Reader {
        never: &[
            "-o",
            "--output",
            "--compress-program",
            "-T",
            "--temporary-directory",
            "--files0-from",
        ],
        values: &["-k", "--key", "-t", "--field-separator", "-S"],
        ..row(&["sort"], Files)
    },
    Reader {
        never: &["-o", "-R"],
        values: &["-L", "-I", "-P", "--filelimit"],
        ..row(&["tree"], Files)
    },
    Reader {
        values: &[
            "-A",
            "-B",
            "-C",
            "-m",
            "-e",
            "-f",
            "-d",
            "-D",
            "--include",
            "--exclude",
            "--exclude-dir",
            "--regexp",
            "--file",
            "--max-count",
            "--after-context",
            "--before-context",
            "--context",
        ],
        gives_text: &["-e", "-f", "--regexp", "--file"],
        ..row(&["grep", "egrep", "fgrep"], TextThenFiles)
    },
    Reader {
        never: &["--pre", "--pre-glob", "--hostname-bin", "-z", "--search-zip"],
        values: &[
            "-A",
            "-B",
            "-C",
            "-m",
            "-e",
            "-f",
            "-g",
            "-t",
            "-T",
            "-j",
            "-M",
            "-r",
            "-d",
            "--glob",
            "--iglob",
            "--type",
            "--type-not",
            "--max-count",
            "--max-depth",
            "--regexp",
            "--file",
            "--sort",
            "--sortr",
            "--color",
            "--context",
            "--replace",
            "--max-columns",
        ],
        gives_text: &["-e", "-f", "--regexp", "--file", "--files", "--type-list"],
        ..row(&["rg"], TextThenFiles)
    },
    Reader {
        never: &["-x", "-X", "--exec", "--exec-batch", "-l", "--list-details"],
        values: &[
            "-e",
            "-t",
            "-d",
            "-E",
            "-S",
            "-j",
            "--extension",
            "--type",
            "--max-depth",
            "--exclude",
        ],
        ..row(&["fd", "fdfind"], TextThenFiles)
    },
    Reader {
        values: &[
            "--arg",
            "--argjson",
            "--indent",
            "-f",
            "--from-file",
            "--slurpfile",
            "--rawfile",
        ],
        gives_text: &["-f", "--from-file"],
        ..row(&["jq"], TextThenFiles)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stands_in_the_table_once() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|reader| reader.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn options_are_written_as_they_are_given() {
        for reader in TABLE {
            let options = reader.never.iter().chain(reader.values).chain(reader.gives_text);
            assert!(options.clone().all(|option| option.starts_with('-')), "{:?}", reader.names);
        }
    }
}
