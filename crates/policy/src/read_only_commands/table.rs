//! The table of read-only programs: their operands, and their options that do more than read.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A program that only reads unless an option makes it do more.
pub(super) struct ReadOnlyProgram {
    names: &'static [&'static str],
    pub(super) operands: Operands,
    /// Options that make it write or run something. If there are any, no unknown argument may be one of
    /// them.
    pub(super) writing_options: &'static [&'static str],
    /// Options that name a file with the names of the files to read.
    pub(super) listing_options: &'static [&'static str],
    /// Options that take the next word as their value.
    pub(super) options_with_value: &'static [&'static str],
    /// Options that take the next word as a name and the one after it as a value.
    pub(super) options_with_name_and_value: &'static [&'static str],
    /// Options that give the pattern, which otherwise is the first operand.
    pub(super) pattern_options: &'static [&'static str],
}

/// The meaning of a program's operands.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    Files,
    /// No files.
    Text,
    /// A pattern, then files.
    TextThenFiles,
}

use Operands::{Files, Text, TextThenFiles};

/// Programs that only print their version for `--version`.
///
/// Excluded are programs whose version is selected by a file in the working directory:
/// `rust-toolchain.toml` (cargo, rustc), `packageManager` and `.yarnrc.yml` (yarn, pnpm, npm), `go.mod`
/// (go), `.tool-versions` and the like (node, python, ruby, java, deno and others).
pub(super) const VERSION_ONLY: &[&str] =
    &["bash", "clang", "cmake", "curl", "docker", "gcc", "g++", "git", "jq", "make", "rg"];

/// Finds a program by name.
pub(super) fn find(name: &str) -> Option<&'static ReadOnlyProgram> {
    static BY_NAME: LazyLock<HashMap<&str, &ReadOnlyProgram>> = LazyLock::new(|| {
        let names = |program: &'static ReadOnlyProgram| {
            program.names.iter().map(move |name| (*name, program))
        };
        TABLE.iter().flat_map(names).collect()
    });
    BY_NAME.get(name).copied()
}

const fn row(names: &'static [&'static str], operands: Operands) -> ReadOnlyProgram {
    ReadOnlyProgram {
        names,
        operands,
        writing_options: &[],
        listing_options: &[],
        options_with_value: &[],
        options_with_name_and_value: &[],
        pattern_options: &[],
    }
}

const TABLE: &[ReadOnlyProgram] = &[
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
    ReadOnlyProgram {
        options_with_value: &["-n", "-c", "--lines", "--bytes"],
        ..row(&["head", "tail"], Files)
    },
    ReadOnlyProgram {
        options_with_value: &["-I", "-w", "--ignore"],
        ..row(&["ls", "dir", "vdir"], Files)
    },
    ReadOnlyProgram { listing_options: &["--files0-from"], ..row(&["du", "wc"], Files) },
    ReadOnlyProgram {
        options_with_value: &["-c", "-f", "--format", "--printf"],
        ..row(&["stat"], Files)
    },
    ReadOnlyProgram { options_with_value: &["-d", "-f", "-c", "-b"], ..row(&["cut"], Files) },
    ReadOnlyProgram {
        options_with_value: &["-j", "-t", "-1", "-2", "-o", "-e", "-v", "-a"],
        ..row(&["join"], Files)
    },
    ReadOnlyProgram { options_with_value: &["-s", "-t", "-c", "-o"], ..row(&["column"], Files) },
    // These options set a variable or run a command.
    ReadOnlyProgram { writing_options: &["-p"], ..row(&["wait"], Text) },
    ReadOnlyProgram { writing_options: &["-x"], ..row(&["jobs"], Text) },
    ReadOnlyProgram {
        writing_options: &[
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
        options_with_value: &["-F"],
        ..row(&["file"], Files)
    },
    ReadOnlyProgram { options_with_value: &["-f", "-s", "-w"], ..row(&["uniq"], Files) },
    ReadOnlyProgram {
        writing_options: &["-l", "--paginate"],
        options_with_value: &["-U", "--unified", "-x", "--exclude", "-I", "-L", "--label"],
        ..row(&["diff"], Files)
    },
    ReadOnlyProgram {
        writing_options: &[
            "-o",
            "--output",
            "--compress-program",
            "-T",
            "--temporary-directory",
            "--files0-from",
        ],
        options_with_value: &["-k", "--key", "-t", "--field-separator", "-S"],
        ..row(&["sort"], Files)
    },
    ReadOnlyProgram {
        writing_options: &["-o", "-R"],
        options_with_value: &["-L", "-I", "-P", "--filelimit"],
        ..row(&["tree"], Files)
    },
    ReadOnlyProgram {
        options_with_value: &[
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
        pattern_options: &["-e", "-f", "--regexp", "--file"],
        ..row(&["grep", "egrep", "fgrep"], TextThenFiles)
    },
    ReadOnlyProgram {
        writing_options: &["--pre", "--pre-glob", "--hostname-bin", "-z", "--search-zip"],
        options_with_value: &[
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
        pattern_options: &["-e", "-f", "--regexp", "--file", "--files", "--type-list"],
        ..row(&["rg"], TextThenFiles)
    },
    ReadOnlyProgram {
        writing_options: &["-x", "-X", "--exec", "--exec-batch", "-l", "--list-details"],
        options_with_value: &[
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
    ReadOnlyProgram {
        options_with_value: &["--indent", "-f", "--from-file", "-L"],
        options_with_name_and_value: &["--arg", "--argjson", "--slurpfile", "--rawfile"],
        pattern_options: &["-f", "--from-file"],
        ..row(&["jq"], TextThenFiles)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_are_unique() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|reader| reader.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn options_begin_with_a_dash() {
        for reader in TABLE {
            let options = reader
                .writing_options
                .iter()
                .chain(reader.options_with_value)
                .chain(reader.pattern_options);
            assert!(options.clone().all(|option| option.starts_with('-')), "{:?}", reader.names);
        }
    }
}
