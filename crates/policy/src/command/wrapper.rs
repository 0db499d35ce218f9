//! Commands that run other commands: what they would run.

use super::Word;

/// What a wrapper runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inner {
    /// A command of these words; it adds nothing of its own if `neutral`.
    Command { words: Vec<Word>, assignments: Vec<(String, Word)>, neutral: bool },
    /// A script in this word.
    Script { text: Word, neutral: bool },
    /// What comes in on its input.
    Input,
    /// It runs something that cannot be told.
    Unclear,
}

/// How the words are shown that `xargs` reads.
pub(super) const INPUT: &str = "(each line of its input)";

/// How the words of a wrapper are read.
struct Wrapper {
    names: &'static [&'static str],
    /// Options with a value of their own, as the next word if they stand alone.
    takes_value: &'static [&'static str],
    /// Options that take no value and change nothing that matters.
    switches: &'static [&'static str],
    /// Words between the options and the command.
    operands: usize,
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
    /// Whether it adds nothing to what the command does.
    neutral: bool,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["env"],
        takes_value: &["-u", "--unset", "-C", "--chdir"],
        switches: &["-i", "--ignore-environment", "-"],
        operands: 0,
        assigns: true,
        neutral: true,
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        takes_value: &["-k", "--kill-after", "-s", "--signal"],
        switches: &["--preserve-status", "--foreground", "-v", "--verbose"],
        operands: 1,
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["nice"],
        takes_value: &["-n", "--adjustment"],
        switches: &[],
        operands: 0,
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["ionice"],
        takes_value: &["-c", "--class", "-n", "--classdata"],
        switches: &["-t", "--ignore"],
        operands: 0,
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["stdbuf"],
        takes_value: &["-i", "-o", "-e", "--input", "--output", "--error"],
        switches: &[],
        operands: 0,
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["time"],
        takes_value: &[],
        switches: &["-p"],
        operands: 0,
        assigns: false,
        neutral: true,
    },
    // `nohup` may write nohup.out, and the command outlives its call.
    Wrapper {
        names: &["nohup", "setsid"],
        takes_value: &[],
        switches: &["-w", "--wait", "-f", "--fork", "-c", "--ctty"],
        operands: 0,
        assigns: false,
        neutral: false,
    },
    Wrapper {
        names: &["command", "builtin"],
        takes_value: &[],
        switches: &["-p"],
        operands: 0,
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["exec"],
        takes_value: &["-a"],
        switches: &["-c", "-l"],
        operands: 0,
        assigns: false,
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
        assigns: true,
        neutral: false,
    },
    Wrapper {
        names: &["chroot"],
        takes_value: &["--groups", "--userspec"],
        switches: &["--skip-chdir"],
        operands: 1,
        assigns: false,
        neutral: false,
    },
    Wrapper {
        names: &["busybox", "toybox", "unshare", "catchsegv", "caffeinate", "systemd-inhibit"],
        takes_value: &[],
        switches: &["-r", "-n", "-m", "-p", "-U", "-f"],
        operands: 0,
        assigns: false,
        neutral: false,
    },
    Wrapper {
        names: &["strace", "ltrace"],
        takes_value: &["-e", "-o", "-p", "-s", "-a", "-E", "-u", "-P"],
        switches: &["-f", "-ff", "-c", "-t", "-tt", "-T", "-v", "-y"],
        operands: 0,
        assigns: false,
        neutral: false,
    },
    Wrapper {
        names: &["taskset", "chrt"],
        takes_value: &[],
        switches: &["-f", "-r", "-b", "-o"],
        operands: 1,
        assigns: false,
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
        assigns: false,
        neutral: true,
    },
    Wrapper {
        names: &["watch"],
        takes_value: &["-n", "--interval"],
        switches: &["-d", "-t", "-g", "-e", "-x", "-c"],
        operands: 0,
        assigns: false,
        neutral: false,
    },
    Wrapper {
        names: &["flock"],
        takes_value: &["-w", "--timeout", "-E"],
        switches: &["-n", "-x", "-s", "-u", "-o"],
        operands: 1,
        assigns: false,
        neutral: false,
    },
];

/// Options that run the command elsewhere, or on a file's words.
const MOVING: &[&str] =
    &["-C", "-D", "--chdir", "-R", "--chroot", "-a", "--arg-file", "--argv0", "--block-signal"];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"];

/// What a command runs besides itself; nothing, if it is an ordinary one.
pub(super) fn look_through(program: &str, arguments: &[Word]) -> Option<Inner> {
    if SHELLS.contains(&program) {
        return shell(arguments);
    }
    match program {
        "eval" => return Some(eval(arguments)),
        "su" | "runuser" | "script" => return script_option(arguments),
        "find" | "fd" | "fdfind" => return executed_by_find(program, arguments),
        "source" | "." | "trap" | "parallel" | "coproc" => return Some(Inner::Unclear),
        // Looks a name up and runs nothing.
        "command"
            if arguments.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))) =>
        {
            return None;
        }
        _ if program.starts_with("ld-linux") => return Some(rest_of(arguments, false)),
        _ => {}
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&program))?;
    let inner = wrapper.read(program, arguments);
    Some(match inner {
        Inner::Command { words, assignments, neutral } if program == "xargs" => {
            Inner::Command { words: with_input(words, arguments), assignments, neutral }
        }
        // They give what they get to a shell.
        Inner::Command { words, .. } if program == "watch" => joined(&words, false),
        other => other,
    })
}

impl Wrapper {
    fn read(&self, program: &str, arguments: &[Word]) -> Inner {
        let mut rest = arguments;
        let mut neutral = self.neutral;
        while let Some((word, behind)) = rest.split_first() {
            let Some(text) = word.known() else {
                // Only an option could be hidden in it, and that only if it can begin like one.
                if could_be_option(word) {
                    return Inner::Unclear;
                }
                break;
            };
            let (option, value) = text.split_once('=').unwrap_or((text, ""));
            neutral &= !MOVING.contains(&option);
            if text == "--" {
                rest = behind;
                break;
            } else if !text.starts_with('-') && text != "-" {
                break;
            } else if program == "env" && matches!(option, "-S" | "--split-string") {
                return split_string(option, text, behind);
            } else if self.takes_value.contains(&text) {
                neutral &= !MOVING.contains(&text);
                rest = behind.get(1..).unwrap_or_default();
            } else if self.takes_value.contains(&option) && !value.is_empty()
                || self.switches.contains(&text)
                || self.takes_value.iter().any(|short| is_joined(short, text))
                || self.are_switches(text)
                || program == "nice" && text[1..].parse::<i32>().is_ok()
            {
                rest = behind;
            } else {
                neutral = false;
                rest = behind;
            }
        }
        let mut assignments = Vec::new();
        if self.assigns {
            while let Some((word, behind)) = rest.split_first() {
                let Some((name, value)) = word.known().and_then(|text| text.split_once('=')) else {
                    break;
                };
                assignments.push((name.to_owned(), Word::of(value)));
                rest = behind;
            }
        }
        let words = rest.get(self.operands..).unwrap_or_default().to_vec();
        Inner::Command { words, assignments, neutral }
    }

    /// `-nE` for `-n -E`.
    fn are_switches(&self, text: &str) -> bool {
        let letters = text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty()
            && letters.chars().all(|letter| self.switches.contains(&format!("-{letter}").as_str()))
    }
}

/// `-n10`: an option of one letter with its value behind it.
fn is_joined(short: &str, text: &str) -> bool {
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

fn rest_of(words: &[Word], neutral: bool) -> Inner {
    Inner::Command { words: words.to_vec(), assignments: Vec::new(), neutral }
}

/// Words put together with blanks, as a script.
fn joined(words: &[Word], neutral: bool) -> Inner {
    let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    match known {
        Some(texts) => Inner::Script { text: Word::of(&texts.join(" ")), neutral },
        None => Inner::Unclear,
    }
}

fn eval(arguments: &[Word]) -> Inner {
    match arguments.first().and_then(Word::known) {
        Some("--") => joined(&arguments[1..], true),
        _ => joined(arguments, true),
    }
}

/// `sh -c TEXT`, `bash -lc TEXT`, `bash FILE`, `… | sh`.
fn shell(arguments: &[Word]) -> Option<Inner> {
    let mut rest = arguments.iter();
    let mut neutral = true;
    let mut takes_text = false;
    while let Some(word) = rest.next() {
        let Some(text) = word.known() else {
            return match takes_text {
                true => Some(Inner::Unclear),
                false if could_be_option(word) => Some(Inner::Unclear),
                false => None,
            };
        };
        let Some(letters) = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty())
        else {
            // A script in a file is a command like any other.
            return takes_text.then(|| Inner::Script { text: word.clone(), neutral });
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
    Some(if takes_text { Inner::Unclear } else { Inner::Input })
}

/// `su USER -c TEXT`.
fn script_option(arguments: &[Word]) -> Option<Inner> {
    let is_option = |word: &Word| matches!(word.known(), Some("-c" | "--command" | "-qc"));
    let at = arguments.iter().position(is_option)?;
    let text = arguments.get(at + 1)?.clone();
    Some(Inner::Script { text, neutral: false })
}

/// `env -S 'ls -l' …`
fn split_string(option: &str, text: &str, behind: &[Word]) -> Inner {
    let joined_value = text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
    match (joined_value, behind) {
        (Some(value), _) => Inner::Script { text: Word::of(value), neutral: false },
        (None, [first, ..]) => Inner::Script { text: first.clone(), neutral: false },
        _ => Inner::Unclear,
    }
}

/// The command of `xargs`, with what it reads at its end or in the place that `-I` names.
fn with_input(mut words: Vec<Word>, arguments: &[Word]) -> Vec<Word> {
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
    let source = INPUT.to_owned();
    match named.filter(|place| !place.is_empty()) {
        Some(place) => fill(&words, &place),
        None => {
            words.push(Word { source, splits: true, ..Word::default() });
            words
        }
    }
}

/// Words in which `place` stands for something that is not known.
fn fill(words: &[Word], place: &str) -> Vec<Word> {
    let filled = |word: &Word| match word.known().and_then(|text| text.split_once(place)) {
        Some((prefix, _)) => {
            Word { source: word.source.clone(), prefix: prefix.to_owned(), ..Word::default() }
        }
        None => word.clone(),
    };
    words.iter().map(filled).collect()
}

/// `find … -exec COMMAND {} \;`
fn executed_by_find(program: &str, arguments: &[Word]) -> Option<Inner> {
    let starts: &[&str] = match program {
        "find" => &["-exec", "-execdir", "-ok", "-okdir"],
        _ => &["-x", "-X", "--exec", "--exec-batch"],
    };
    let is_start = |word: &Word| word.known().is_some_and(|text| starts.contains(&text));
    let at = arguments.iter().position(is_start)?;
    let is_end = |word: &Word| matches!(word.known(), Some(";" | "+"));
    let rest = &arguments[at + 1..];
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    if rest.get(end + 1..).is_some_and(|behind| behind.iter().any(is_start)) {
        return Some(Inner::Unclear);
    }
    let words = fill(&rest[..end], "{}");
    Some(Inner::Command { words, assignments: Vec::new(), neutral: false })
}
