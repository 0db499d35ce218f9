//! Commands that damage the system and are never intended.
//!
//! The check uses the parsed part of a command, even if other parts are unparsed. A command found here is
//! refused in every profile except `open`. Other commands are not necessarily harmless.

use std::cell::LazyCell;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::command::{Command, CommandAnalysis, RedirectedFile, ShellContext, Word};
use crate::name_pattern::name_matches;

/// A destructive part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// The destructive part of the command.
    pub what: String,
    /// Its effect.
    pub why: String,
    /// A harmless way to do something similar, as an imperative. Empty if there is none.
    pub instead: &'static str,
}

/// Advice for commands that delete, move or change the mode of system directories.
const NAME_PATHS: &str = "name the files or directories inside the workspace";

/// Advice for commands that overwrite devices.
const WRITE_FILE: &str = "write to a file inside the workspace";

/// Finds the first destructive part of a command. `None` if there is none.
pub fn find_danger(analysis: &CommandAnalysis, context: &ShellContext) -> Option<Danger> {
    if let Some(name) = analysis.fork_bombs.first() {
        let why = "it is a fork bomb".to_owned();
        return Some(Danger { what: format!("{name}()"), why, instead: "" });
    }
    let redirected = |write: &RedirectedFile| {
        let device = device_path(&write.word, write.directory.as_deref())?;
        Some(Danger {
            what: format!("> {device}"),
            why: format!("it overwrites the device {device}"),
            instead: WRITE_FILE,
        })
    };
    let acted = |command: &Command| {
        let (why, instead) = danger_of(command, context)?;
        Some(Danger { what: command.shown().join(" "), why, instead })
    };
    analysis.writes.iter().find_map(redirected).or_else(|| analysis.commands.iter().find_map(acted))
}

/// Essential system directories. Not /tmp, whose content is disposable.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
];

/// Devices that give access to disks or memory.
const DEVICES: &[&str] = &[
    "sd*", "hd*", "vd*", "xvd*", "nvme*", "mmcblk*", "disk*", "rdisk*", "mapper", "dm-*", "md*",
    "loop*", "ram*", "zram*", "sr*", "nbd*", "mem", "kmem", "port",
];

/// The effect of a destructive command, and what to do instead.
fn danger_of(command: &Command, context: &ShellContext) -> Option<(String, &'static str)> {
    let program = command.program()?;
    // Most programs do no damage, whatever their arguments are.
    let arguments = LazyCell::new(|| Arguments::of(command));
    let directory = command.directory.as_deref();
    let precious = |word: &&Word| essential_directory(word, directory, context);
    match program {
        "rm" if arguments.has('r', "recursive") || arguments.has('R', "recursive") => {
            if arguments.options.contains(&"--no-preserve-root") {
                return Some(("it deletes with --no-preserve-root".to_owned(), NAME_PATHS));
            }
            let place = arguments.operands.iter().find_map(precious)?;
            Some((format!("it deletes {place} recursively"), NAME_PATHS))
        }
        "chmod" | "chown" | "chgrp" if arguments.has('R', "recursive") => {
            // It is ordinary in the workspace.
            let system = ShellContext { roots: Vec::new(), ..context.clone() };
            let changed = arguments.operands.iter().skip(1);
            let place = changed
                .filter_map(|word| self::essential_directory(word, directory, &system))
                .next()?;
            Some((format!("it changes the permissions of {place} recursively"), NAME_PATHS))
        }
        "mv" => {
            let (_, sources) = arguments.operands.split_last()?;
            let place = sources.iter().find_map(precious)?;
            Some((format!("it moves {place} to another path"), NAME_PATHS))
        }
        "find" => deleted_by_find(command, &precious).map(|why| (why, NAME_PATHS)),
        _ if is_formatter(program) => {
            let asks =
                |word: &Word| matches!(word.known(), Some("--help" | "--version" | "-V" | "-h"));
            let does = !command.words[1..].is_empty() && !command.words[1..].iter().any(asks);
            let why = "it creates a file system and destroys the existing data";
            does.then(|| (why.to_owned(), ""))
        }
        _ => {
            let written = written_by(program, command, &arguments);
            let device = written.iter().find_map(|word| device_path(word, directory))?;
            Some((format!("it overwrites the device {device}"), WRITE_FILE))
        }
    }
}

/// The effect of `find / -delete` without a test that restricts the files.
fn deleted_by_find(
    command: &Command,
    precious: &dyn Fn(&&Word) -> Option<String>,
) -> Option<String> {
    let texts: Vec<&str> = command.words[1..].iter().map(Word::shown).collect();
    let runs = |text: &&str| matches!(*text, "-exec" | "-execdir" | "-ok" | "-okdir");
    let (tests, run) = texts.split_at(texts.iter().position(runs).unwrap_or(texts.len()));
    let deletes = tests.contains(&"-delete")
        || matches!(run.get(1), Some(&("rm" | "/bin/rm" | "unlink" | "shred")));
    let wide = ["-delete", "-depth", "-d", "-type", "-mindepth", "-maxdepth", "-xdev", "-mount"];
    if !deletes || tests.iter().any(|text| text.starts_with('-') && !wide.contains(text)) {
        return None;
    }
    let starts = command.words[1..].iter().take_while(|word| !word.shown().starts_with('-'));
    let place = starts.filter_map(|word| precious(&word)).next()?;
    Some(format!("it deletes {place} recursively"))
}

fn is_formatter(program: &str) -> bool {
    name_matches("mkfs*", program)
        || matches!(program, "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" | "newfs")
}

/// The files that a command writes, not counting redirections.
fn written_by<'a>(
    program: &str,
    command: &'a Command,
    arguments: &impl Deref<Target = Arguments<'a>>,
) -> Vec<Word> {
    match program {
        "dd" => {
            let target = |word: &Word| word.shown().strip_prefix("of=").map(Word::of);
            command.words.iter().filter_map(target).collect()
        }
        "tee" | "shred" | "truncate" | "sponge" | "badblocks" | "fallocate" => {
            arguments.operands.iter().map(|word| (*word).clone()).collect()
        }
        "cp" | "install" | "rsync" | "pv" => {
            arguments.operands.last().map(|word| (*word).clone()).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The essential directory that a word names: a system directory, a root, a home, or a parent of one.
fn essential_directory(
    word: &Word,
    directory: Option<&Path>,
    context: &ShellContext,
) -> Option<String> {
    let kept: Vec<&PathBuf> = context.roots.iter().chain(&context.home).collect();
    let is_precious = |path: &Path| {
        path == Path::new("/")
            || SYSTEM_DIRECTORIES.iter().any(|system| path == Path::new(system))
            || kept.iter().any(|kept| kept.starts_with(path))
    };
    for path in word.paths(directory)? {
        if is_precious(&path) {
            return Some(path.display().to_string());
        }
        let Some((parent, name)) = path.parent().zip(path.file_name()?.to_str()) else { continue };
        let takes_all = name.bytes().all(|byte| matches!(byte, b'*' | b'.' | b'?'));
        if !word.glob {
            continue;
        }
        // Everything in a system directory or the home; in the workspace, only a pattern that matches the root itself.
        let in_system = parent == Path::new("/")
            || SYSTEM_DIRECTORIES.iter().any(|one| parent == Path::new(one));
        let in_home = context.home.as_deref() == Some(parent);
        if takes_all && (in_system || in_home) {
            return Some(format!("everything in {}", parent.display()));
        }
        let child = |kept: &&PathBuf| {
            let next = kept.strip_prefix(parent).ok()?.iter().next()?.to_str()?.to_owned();
            name_matches(name, &next).then(|| parent.join(next))
        };
        let system = SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect::<Vec<_>>();
        if let Some(found) = kept.iter().copied().chain(&system).find_map(|kept| child(&kept)) {
            return Some(found.display().to_string());
        }
    }
    None
}

/// The device that a word names, for display.
fn device_path(word: &Word, directory: Option<&Path>) -> Option<String> {
    let found = word.paths(directory)?.into_iter().find(|path| {
        let name = path.strip_prefix("/dev").ok().and_then(|rest| rest.iter().next());
        let name = name.and_then(|name| name.to_str()).unwrap_or_default();
        DEVICES.iter().any(|device| name_matches(device, name))
    });
    found.map(|path| path.display().to_string())
}

/// Arguments in the usual convention: options at any position before `--`.
struct Arguments<'a> {
    options: Vec<&'a str>,
    operands: Vec<&'a Word>,
}

impl<'a> Arguments<'a> {
    fn of(command: &'a Command) -> Self {
        let mut arguments = Arguments { options: Vec::new(), operands: Vec::new() };
        let mut only_operands = false;
        for word in &command.words[1..] {
            match word.known() {
                Some("--") if !only_operands => only_operands = true,
                Some(text) if !only_operands && text.len() > 1 && text.starts_with('-') => {
                    arguments.options.push(text);
                }
                _ => arguments.operands.push(word),
            }
        }
        arguments
    }

    /// Whether an option is present, as a letter among others or as a possibly abbreviated long name.
    fn has(&self, letter: char, long: &str) -> bool {
        self.options.iter().any(|option| match option.strip_prefix("--") {
            Some(given) => !given.is_empty() && long.starts_with(given),
            None => option[1..].contains(letter),
        })
    }
}
