//! Commands that run other commands.

use super::Word;

/// The command that a wrapper runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrapped {
    /// A command with these words. If `neutral`, the wrapper has no effect of its own.
    Command { words: Vec<Word>, assignments: Vec<(String, Word)>, neutral: bool },
    /// The script in this word.
    Script { text: Word, neutral: bool },
    /// The script on its standard input.
    Input,
    /// A command that is not known before it runs.
    Unknown,
}

/// How the arguments that `xargs` reads are displayed.
pub(super) const INPUT_PLACEHOLDER: &str = "(each line of its input)";

/// The command line syntax of a wrapper.
struct Wrapper {
    names: &'static [&'static str],
    /// Options with a value, which is the next word if it is not joined to the option.
    takes_value: &'static [&'static str],
    /// Options without a value that do not affect the analysis.
    switches: &'static [&'static str],
    /// The number of words between the options and the command.
    operands: usize,
    /// Whether `NAME=value` may precede the command.
    takes_assignments: bool,
    /// Whether the wrapper has no effect of its own.
    neutral: bool,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["env"],
        takes_value: &["-u", "--unset", "-C", "--chdir"],
        switches: &["-i", "--ignore-environment", "-"],
        operands: 0,
        takes_assignments: true,
        neutral: true,
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        takes_value: &["-k", "--kill-after", "-s", "--signal"],
        switches: &["--preserve-status", "--foreground", "-v", "--verbose"],
        operands: 1,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["nice"],
        takes_value: &["-n", "--adjustment"],
        switches: &[],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["ionice"],
        takes_value: &["-c", "--class", "-n", "--classdata"],
        switches: &["-t", "--ignore"],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["stdbuf"],
        takes_value: &["-i", "-o", "-e", "--input", "--output", "--error"],
        switches: &[],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["time"],
        takes_value: &[],
        switches: &["-p"],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    // `nohup` may write nohup.out, and the command outlives its call.
    Wrapper {
        names: &["nohup", "setsid"],
        takes_value: &[],
        switches: &["-w", "--wait", "-f", "--fork", "-c", "--ctty"],
        operands: 0,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["command", "builtin"],
        takes_value: &[],
        switches: &["-p"],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["exec"],
        takes_value: &["-a"],
        switches: &["-c", "-l"],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["sudo", "doas", "pkexec"],
        takes_value: &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D",
            "--chdir", "-R", "--chroot", "-T", "-U", "-r", "-t",
        ],
        switches: &[
            "-n",
            "--non-interactive",
            "-E",
            "--preserve-env",
            "-H",
            "--set-home",
            "-S",
            "--stdin",
            "-b",
            "--background",
            "-i",
            "--login",
            "-s",
            "--shell",
            "-k",
            "-P",
            "-A",
        ],
        operands: 0,
        takes_assignments: true,
        neutral: false,
    },
    Wrapper {
        names: &["chroot"],
        takes_value: &["--groups", "--userspec"],
        switches: &["--skip-chdir"],
        operands: 1,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["busybox", "toybox", "unshare", "catchsegv", "caffeinate", "systemd-inhibit"],
        takes_value: &[],
        switches: &["-r", "-n", "-m", "-p", "-U", "-f"],
        operands: 0,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["strace", "ltrace"],
        takes_value: &["-e", "-o", "-p", "-s", "-a", "-E", "-u", "-P"],
        switches: &["-f", "-ff", "-c", "-t", "-tt", "-T", "-v", "-y"],
        operands: 0,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["taskset", "chrt"],
        takes_value: &[],
        switches: &["-f", "-r", "-b", "-o"],
        operands: 1,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["xargs"],
        takes_value: &[
            "-I",
            "-n",
            "--max-args",
            "-P",
            "--max-procs",
            "-d",
            "--delimiter",
            "-L",
            "--max-lines",
            "-s",
            "--max-chars",
            "-a",
            "--arg-file",
            "-E",
            "--replace",
        ],
        switches: &["-0", "--null", "-r", "--no-run-if-empty", "-t", "--verbose", "-x", "--exit"],
        operands: 0,
        takes_assignments: false,
        neutral: true,
    },
    Wrapper {
        names: &["watch"],
        takes_value: &["-n", "--interval"],
        switches: &["-d", "-t", "-g", "-e", "-x", "-c"],
        operands: 0,
        takes_assignments: false,
        neutral: false,
    },
    Wrapper {
        names: &["flock"],
        takes_value: &["-w", "--timeout", "-E"],
        switches: &["-n", "-x", "-s", "-u", "-o"],
        operands: 1,
        takes_assignments: false,
        neutral: false,
    },
];

/// Options that run the command in another directory or root, or with arguments from a file.
const RELOCATING_OPTIONS: &[&str] =
    &["-C", "-D", "--chdir", "-R", "--chroot", "-a", "--arg-file", "--argv0", "--block-signal"];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"];

/// The command that a wrapper runs. `None` if the program is not a wrapper.
pub(super) fn wrapped_command(program: &str, arguments: &[Word]) -> Option<Wrapped> {
    if SHELLS.contains(&program) {
        return shell(arguments);
    }
    match program {
        "eval" => return Some(eval(arguments)),
        "su" | "runuser" | "script" => return script_option(arguments),
        "find" | "fd" | "fdfind" => return find_exec_command(program, arguments),
        "source" | "." | "trap" | "parallel" | "coproc" => return Some(Wrapped::Unknown),
        // It looks up a name and runs nothing.
        "command"
            if arguments.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))) =>
        {
            return None;
        }
        _ if program.starts_with("ld-linux") => return Some(command_of(arguments, false)),
        _ => {}
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&program))?;
    let inner = wrapper.read(program, arguments);
    Some(match inner {
        Wrapped::Command { words, assignments, neutral } if program == "xargs" => {
            Wrapped::Command { words: with_input_word(words, arguments), assignments, neutral }
        }
        // `watch` passes its arguments to a shell.
        Wrapped::Command { words, .. } if program == "watch" => script_of(&words, false),
        other => other,
    })
}

impl Wrapper {
    fn read(&self, program: &str, arguments: &[Word]) -> Wrapped {
        let mut rest = arguments;
        let mut neutral = self.neutral;
        while let Some((word, after)) = rest.split_first() {
            let Some(text) = word.known() else {
                // An unknown word matters only if it could be an option.
                if could_be_option(word) {
                    return Wrapped::Unknown;
                }
                break;
            };
            let (option, value) = text.split_once('=').unwrap_or((text, ""));
            neutral &= !RELOCATING_OPTIONS.contains(&option);
            if text == "--" {
                rest = after;
                break;
            } else if !text.starts_with('-') && text != "-" {
                break;
            } else if program == "env" && matches!(option, "-S" | "--split-string") {
                return split_string(option, text, after);
            } else if self.takes_value.contains(&text) {
                neutral &= !RELOCATING_OPTIONS.contains(&text);
                rest = after.get(1..).unwrap_or_default();
            } else if self.takes_value.contains(&option) && !value.is_empty()
                || self.switches.contains(&text)
                || self.takes_value.iter().any(|short| has_joined_value(short, text))
                || self.are_switches(text)
                || program == "nice" && text[1..].parse::<i32>().is_ok()
            {
                rest = after;
            } else {
                neutral = false;
                rest = after;
            }
        }
        let mut assignments = Vec::new();
        if self.takes_assignments {
            while let Some((word, after)) = rest.split_first() {
                let Some((name, value)) = word.known().and_then(|text| text.split_once('=')) else {
                    break;
                };
                assignments.push((name.to_owned(), Word::of(value)));
                rest = after;
            }
        }
        let words = rest.get(self.operands..).unwrap_or_default().to_vec();
        Wrapped::Command { words, assignments, neutral }
    }

    /// `-nE` for `-n -E`.
    fn are_switches(&self, text: &str) -> bool {
        let letters = text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty()
            && letters.chars().all(|letter| self.switches.contains(&format!("-{letter}").as_str()))
    }
}

/// `-n10`: a short option with its value joined.
fn has_joined_value(short: &str, text: &str) -> bool {
    short.len() == 2 && text.len() > 2 && text.starts_with(short)
}

fn could_be_option(word: &Word) -> bool {
    word.splits
        || match word.values.as_slice() {
            [] => word.prefix.is_empty() || word.prefix.starts_with('-'),
            values => values.iter().any(|value| {
                value.starts_with('-') || word.glob && value.starts_with(['*', '?', '['])
            }),
        }
}

fn command_of(words: &[Word], neutral: bool) -> Wrapped {
    Wrapped::Command { words: words.to_vec(), assignments: Vec::new(), neutral }
}

/// The words joined by spaces, as a script.
fn script_of(words: &[Word], neutral: bool) -> Wrapped {
    let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    match known {
        Some(texts) => Wrapped::Script { text: Word::of(&texts.join(" ")), neutral },
        None => Wrapped::Unknown,
    }
}

fn eval(arguments: &[Word]) -> Wrapped {
    match arguments.first().and_then(Word::known) {
        Some("--") => script_of(&arguments[1..], true),
        _ => script_of(arguments, true),
    }
}

/// `sh -c TEXT`, `bash -lc TEXT`, `bash FILE`, `… | sh`.
fn shell(arguments: &[Word]) -> Option<Wrapped> {
    let mut rest = arguments.iter();
    let mut neutral = true;
    let mut takes_text = false;
    while let Some(word) = rest.next() {
        let Some(text) = word.known() else {
            return (takes_text || could_be_option(word)).then_some(Wrapped::Unknown);
        };
        let Some(letters) = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty())
        else {
            // A script file is an ordinary command.
            return takes_text.then(|| Wrapped::Script { text: word.clone(), neutral });
        };
        if let Some(long) = letters.strip_prefix('-') {
            neutral &= matches!(long, "noprofile" | "norc" | "login" | "posix");
            if matches!(long, "rcfile" | "init-file") {
                rest.next();
            }
            continue;
        }
        takes_text |= letters.contains('c');
        neutral &= letters.chars().all(|letter| "celuxo".contains(letter));
        if letters.ends_with('o') {
            rest.next();
        }
    }
    Some(if takes_text { Wrapped::Unknown } else { Wrapped::Input })
}

/// `su USER -c TEXT`.
fn script_option(arguments: &[Word]) -> Option<Wrapped> {
    let is_option = |word: &Word| matches!(word.known(), Some("-c" | "--command" | "-qc"));
    let at = arguments.iter().position(is_option)?;
    let text = arguments.get(at + 1)?.clone();
    Some(Wrapped::Script { text, neutral: false })
}

/// `env -S 'ls -l' …`
fn split_string(option: &str, text: &str, after: &[Word]) -> Wrapped {
    let joined_value = text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
    match (joined_value, after) {
        (Some(value), _) => Wrapped::Script { text: Word::of(value), neutral: false },
        (None, [first, ..]) => Wrapped::Script { text: first.clone(), neutral: false },
        _ => Wrapped::Unknown,
    }
}

/// The command of `xargs`, with a placeholder for its input at the end or where `-I` puts it.
fn with_input_word(mut words: Vec<Word>, arguments: &[Word]) -> Vec<Word> {
    if words.is_empty() {
        words.push(Word::of("echo"));
    }
    let options = &arguments[..arguments.len().saturating_sub(words.len())];
    let named = options.iter().enumerate().find_map(|(at, word)| match word.known()? {
        "-I" => options.get(at + 1)?.known().map(str::to_owned),
        text if text.starts_with("-I") => Some(text[2..].to_owned()),
        text if text.starts_with("--replace") => Some("{}".to_owned()),
        _ => None,
    });
    let source = INPUT_PLACEHOLDER.to_owned();
    match named.filter(|placeholder| !placeholder.is_empty()) {
        Some(placeholder) => replace_placeholder(&words, &placeholder),
        None => {
            words.push(Word { source, splits: true, ..Word::default() });
            words
        }
    }
}

/// Words in which the placeholder stands for an unknown value.
fn replace_placeholder(words: &[Word], placeholder: &str) -> Vec<Word> {
    let filled = |word: &Word| match word.known().and_then(|text| text.split_once(placeholder)) {
        Some((prefix, _)) => {
            Word { source: word.source.clone(), prefix: prefix.to_owned(), ..Word::default() }
        }
        None => word.clone(),
    };
    words.iter().map(filled).collect()
}

/// `find … -exec COMMAND {} \;`
fn find_exec_command(program: &str, arguments: &[Word]) -> Option<Wrapped> {
    let starts: &[&str] = match program {
        "find" => &["-exec", "-execdir", "-ok", "-okdir"],
        _ => &["-x", "-X", "--exec", "--exec-batch"],
    };
    let is_start = |word: &Word| word.known().is_some_and(|text| starts.contains(&text));
    let at = arguments.iter().position(is_start)?;
    let is_end = |word: &Word| matches!(word.known(), Some(";" | "+"));
    let rest = &arguments[at + 1..];
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    if rest.get(end + 1..).is_some_and(|after| after.iter().any(is_start)) {
        return Some(Wrapped::Unknown);
    }
    let words = replace_placeholder(&rest[..end], "{}");
    Some(Wrapped::Command { words, assignments: Vec::new(), neutral: false })
}
