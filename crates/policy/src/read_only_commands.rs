//! Recognizes read-only commands by their names and arguments.
//!
//! They run without approval even if every other command is asked about. A name is never enough:
//! `sort -o`, `find -delete`, `git diff --output`, `sed w` write. Programs whose purpose is to run other
//! programs (interpreters, build tools) are not included.

mod awk;
mod git;
mod sed;
mod table;

use crate::command::{Command, Word};
use table::{Operands, ReadOnlyProgram, VERSION_ONLY};

/// The files that a read-only command reads. `None` if the command may do more than read.
pub(crate) fn files_if_read_only(command: &Command) -> Option<Vec<Word>> {
    let name = command.name()?;
    let arguments = &command.words[1..];
    let known: Vec<Option<&str>> = arguments.iter().map(Word::known).collect();
    if known.as_slice() == [Some("--version")] && VERSION_ONLY.contains(&name) {
        return Some(Vec::new());
    }
    match name {
        "git" => git::reads(arguments),
        "sed" => sed::reads(arguments),
        "awk" | "gawk" | "mawk" => awk::reads(arguments),
        "find" => find_start_paths(arguments),
        "docker" => is_listing(&known).then(Vec::new),
        "[" | "test" => is_test(&known).then(Vec::new),
        "[[" => is_double_test(&known).then(Vec::new),
        "command" => matches!(known.first(), Some(Some("-v" | "-V"))).then(Vec::new),
        "printf" => known.first()?.filter(|format| !format.starts_with('-')).map(|_| Vec::new()),
        "read" => is_plain_read(&known).then(Vec::new),
        "export" => is_plain_export(&known).then(Vec::new),
        "set" => is_plain_set(&known).then(Vec::new),
        "date" => known.iter().all(|word| word.is_some_and(shows_date)).then(Vec::new),
        "uniq" => {
            let reader = table::find("uniq")?;
            // `uniq` writes its second file.
            let is_one = |word: &Word| !word.glob && !word.splits;
            reader.reads(arguments).filter(|files| files.len() <= 1 && files.iter().all(is_one))
        }
        "cd" => match arguments {
            [one] if !can_be_option(one) => Some(vec![one.clone()]),
            _ => None,
        },
        _ => table::find(name)?.reads(arguments),
    }
}

/// Whether a variable in a command's environment cannot change which programs run.
pub(crate) fn is_neutral_in_environment(name: &str) -> bool {
    const NEUTRAL: &[&str] = &[
        "CI",
        "COLUMNS",
        "CARGO_TERM_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "DEBUG",
        "FORCE_COLOR",
        "GIT_OPTIONAL_LOCKS",
        "LANG",
        "LINES",
        "NODE_ENV",
        "NO_COLOR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "RUST_TEST_THREADS",
        "TERM",
        "TZ",
    ];
    NEUTRAL.contains(&name) || name.starts_with("LC_")
}

/// Whether a variable may be set in the shell. If the variable is already exported, this changes the
/// environment too. The lower-case names to exclude are those of npm, yarn, pnpm and proxies.
pub(crate) fn is_neutral_in_shell(name: &str) -> bool {
    let is_own = name.len() == 1
        || !name.chars().any(|letter| letter.is_ascii_uppercase())
            && !["_", "npm", "yarn", "pnpm"].iter().any(|start| name.starts_with(start))
            && !name.ends_with("_proxy");
    is_own || is_neutral_in_environment(name)
}

impl ReadOnlyProgram {
    fn reads(&self, arguments: &[Word]) -> Option<Vec<Word>> {
        let known = arguments.iter().filter(|word| word.known().is_some());
        if may_have_option(arguments.iter(), self.writing_options)
            || may_have_option(known, self.listing_options)
        {
            return None;
        }
        let mut files = Vec::new();
        // Files that options name.
        let mut named = Vec::new();
        let mut has_pattern = false;
        let mut rest = arguments.iter();
        let mut only_operands = false;
        while let Some(word) = rest.next() {
            match word.known() {
                Some("--") if !only_operands => only_operands = true,
                Some(text) if !only_operands && text.len() > 1 && text.starts_with('-') => {
                    let option = text.split('=').next().unwrap_or(text);
                    named.extend(path_in_option(text).map(Word::of));
                    has_pattern |= self.pattern_options.contains(&option)
                        || self
                            .pattern_options
                            .iter()
                            .any(|short| short.len() == 2 && text.starts_with(short));
                    if self.options_with_value.contains(&text) {
                        let value = rest.next().filter(|_| !VALUES_OF_TEXT.contains(&text));
                        named.extend(value.filter(|value| may_be_outside(value)).cloned());
                    } else if self.options_with_name_and_value.contains(&text) {
                        rest.next();
                        let value = rest.next().filter(|_| !VALUES_OF_TEXT.contains(&text));
                        named.extend(value.filter(|value| may_be_outside(value)).cloned());
                    }
                }
                Some(text) => {
                    let listed = text.strip_prefix('@').filter(|path| leads_outside(path));
                    named.extend(listed.map(Word::of));
                    files.push(word.clone());
                }
                None => files.push(word.clone()),
            }
        }
        match self.operands {
            Operands::Files => {}
            Operands::TextThenFiles if has_pattern || files.is_empty() => {}
            Operands::TextThenFiles => {
                files.remove(0);
            }
            Operands::Text => files.clear(),
        }
        files.append(&mut named);
        Some(files)
    }
}

/// Options whose value is a pattern, a file name pattern or a text.
const VALUES_OF_TEXT: &[&str] = &[
    "-e",
    "--regexp",
    "-g",
    "--glob",
    "--iglob",
    "--include",
    "--exclude",
    "--exclude-dir",
    "-r",
    "--replace",
    "--arg",
    "--argjson",
];

/// A path that may be outside the working directory in an option with its value, such as `--file=/etc/passwd` or `-f/etc/passwd`.
/// Values that are no paths are among them.
fn path_in_option(text: &str) -> Option<&str> {
    if text.starts_with("--") {
        let (option, value) = text.split_once('=')?;
        let value = value.strip_prefix('@').unwrap_or(value);
        return (!VALUES_OF_TEXT.contains(&option) && leads_outside(value)).then_some(value);
    }
    if VALUES_OF_TEXT.iter().any(|short| short.len() == 2 && text.starts_with(short)) {
        return None;
    }
    let starts = ["/", "~", ".."].iter().filter_map(|start| text.find(start));
    let value = &text[starts.min()?..];
    leads_outside(value).then_some(value)
}

/// Whether a path may lead out of the working directory. A slash alone is a separator more often than a path.
fn leads_outside(path: &str) -> bool {
    path.len() > 1
        && (path.starts_with(['/', '~']) || path.split('/').any(|component| component == ".."))
}

/// The same for a word, which may be unknown.
fn may_be_outside(word: &Word) -> bool {
    word.known().is_none_or(leads_outside)
}

/// Whether the arguments contain one of these options, or an unknown word could be one. Recognizes
/// joined values, abbreviated long options and combined short options.
fn may_have_option<'a>(mut arguments: impl Iterator<Item = &'a Word>, options: &[&str]) -> bool {
    let is_one = |text: &str| {
        let given = text.split('=').next().unwrap_or(text);
        options.iter().any(|option| match (option.strip_prefix("--"), given.strip_prefix("--")) {
            (Some(long), Some(given)) => !given.is_empty() && long.starts_with(given),
            (None, None) if option.len() == 2 => {
                text.starts_with('-') && text.contains(&option[1..])
            }
            (None, None) => option == &given,
            _ => false,
        })
    };
    if options.is_empty() {
        return false;
    }
    arguments.any(|word| match word.known() {
        Some(text) => text.starts_with('-') && is_one(text),
        None => can_be_option(word),
    })
}

/// Whether a word with an unknown value may be an option.
fn can_be_option(word: &Word) -> bool {
    if word.splits {
        return true;
    }
    match word.values.as_slice() {
        [] => word.prefix.is_empty() || word.prefix.starts_with('-'),
        values => values
            .iter()
            .any(|value| value.starts_with('-') || word.glob && value.starts_with(['*', '?', '['])),
    }
}

/// The start paths of a `find` without actions. `None` if it has one.
fn find_start_paths(arguments: &[Word]) -> Option<Vec<Word>> {
    const ACTIONS: &[&str] = &[
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-delete",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
        "-files0-from",
    ];
    // The next word is always a value.
    const TESTS: &[&str] = &[
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-newer",
        "-mtime",
        "-mmin",
        "-size",
        "-type",
        "-maxdepth",
        "-mindepth",
        "-perm",
        "-user",
        "-group",
    ];
    let is_start = |word: &&Word| !word.shown().starts_with(['-', '(', '!', ')']);
    let starts: Vec<Word> = arguments.iter().take_while(is_start).cloned().collect();
    let mut before = "";
    for word in arguments {
        match word.known() {
            Some(text) if ACTIONS.contains(&text) => return None,
            Some(text) => before = text,
            None if !word.splits && !word.glob && TESTS.contains(&before) => before = "",
            None if can_be_option(word) => return None,
            None => before = "",
        }
    }
    Some(starts)
}

/// `docker ps` and other listings of the daemon. Not `docker compose`: its file in the working directory
/// can make it fetch others.
fn is_listing(known: &[Option<&str>]) -> bool {
    const OPTIONS: &[&str] = &[
        "-a",
        "--all",
        "-l",
        "--latest",
        "-q",
        "--quiet",
        "-aq",
        "-qa",
        "-s",
        "--size",
        "--no-trunc",
    ];
    let [Some("ps" | "images" | "version" | "info"), rest @ ..] = known else { return false };
    rest.iter().all(|word| {
        word.is_some_and(|text| {
            let has_value = text.starts_with("--format=") || text.starts_with("--filter=");
            OPTIONS.contains(&text) || has_value
        })
    })
}

/// `set -euo pipefail`, `set -- a b`. Other options export each variable (`-a`), or treat arguments of
/// later commands as assignments (`-k`).
fn is_plain_set(known: &[Option<&str>]) -> bool {
    const NAMES: &[&str] =
        &["errexit", "errtrace", "noclobber", "noglob", "nounset", "pipefail", "verbose", "xtrace"];
    let mut words = known.iter();
    while let Some(word) = words.next() {
        let Some(text) = word else { return false };
        if *text == "--" {
            return true;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { return false };
        if letters.is_empty() || !letters.chars().all(|letter| "efuvxECo".contains(letter)) {
            return false;
        }
        for _ in letters.matches('o') {
            if !words.next().is_some_and(|name| name.is_some_and(|name| NAMES.contains(&name))) {
                return false;
            }
        }
    }
    true
}

/// Whether an argument of `date` neither sets the clock nor reads dates from a file.
fn shows_date(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &["+", "-I", "-d", "--date=", "--iso-8601", "--rfc-3339="];
    matches!(text, "-u" | "--utc" | "-R" | "--rfc-email")
        || BEGINNINGS.iter().any(|start| text.starts_with(start))
}

/// `[ … ]`, unless it tests a variable by name: a subscript in that name can contain commands.
fn is_test(known: &[Option<&str>]) -> bool {
    let looks_up = known.iter().any(|word| matches!(word, Some("-v" | "-R")));
    let rest = match known {
        [Some("!"), rest @ ..] => rest,
        rest => rest,
    };
    // The operator must be known.
    let plain = match rest {
        [Some(_), ..] | [] => true,
        [None, Some(second), ..] => *second == "]" || second.starts_with(['-', '=', '!', '<', '>']),
        [None] => true,
        [None, None, ..] => false,
    };
    plain && !looks_up
}

/// `[[ … ]]`, unless it does arithmetic with unknown values.
fn is_double_test(known: &[Option<&str>]) -> bool {
    const CALCULATING: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let is_number = |word: Option<&Option<&str>>| matches!(word, Some(Some(text)) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    known.iter().enumerate().all(|(at, word)| match word {
        Some("-v" | "-R") => false,
        Some(text) if CALCULATING.contains(text) => {
            is_number(at.checked_sub(1).and_then(|before| known.get(before)))
                && is_number(known.get(at + 1))
        }
        _ => true,
    })
}

fn is_plain_read(known: &[Option<&str>]) -> bool {
    known.iter().all(|word| {
        word.is_some_and(|text| {
            matches!(text, "-r" | "-d" | "" | "-n" | "1" | "-s") || is_neutral_name(text)
        })
    })
}

fn is_plain_export(known: &[Option<&str>]) -> bool {
    !known.is_empty()
        && known.iter().all(|word| {
            let name = word.and_then(|text| text.split_once('=')).map(|(name, _)| name);
            name.is_some_and(|name| is_variable_name(name) && is_neutral_in_environment(name))
        })
}

fn is_neutral_name(text: &str) -> bool {
    is_variable_name(text) && is_neutral_in_shell(text)
}

fn is_variable_name(text: &str) -> bool {
    !text.is_empty()
        && !text.as_bytes()[0].is_ascii_digit()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
