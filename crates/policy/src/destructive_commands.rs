//! Commands that nobody means: they take the machine with them.
//!
//! Decided on what was understood of a command, even where that is not all of it. Found here, a command
//! is refused in every profile but `open`. What is not found is not thereby harmless.

use std::path::{Path, PathBuf};

use crate::command::{Command, CommandAnalysis, Surroundings, Touched, Word};
use crate::name_pattern::name_fits;

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// The part of the command that does it.
    pub what: String,
    /// What it would do.
    pub why: String,
}

/// Looks for the worst. The first that is found is told.
pub fn danger(understood: &CommandAnalysis, around: &Surroundings) -> Option<Danger> {
    if let Some(name) = understood.bombs.first() {
        let why = "it starts itself again and again until the machine stops (a fork bomb)";
        return Some(Danger { what: format!("{name}()"), why: why.to_owned() });
    }
    let redirected = |write: &Touched| {
        let device = is_device(&write.word, write.directory.as_deref())?;
        Some(Danger {
            what: format!("> {device}"),
            why: format!("it overwrites the device {device}"),
        })
    };
    let acted = |command: &Command| {
        let why = danger_of(command, around)?;
        Some(Danger { what: command.shown().join(" "), why })
    };
    understood
        .writes
        .iter()
        .find_map(redirected)
        .or_else(|| understood.commands.iter().find_map(acted))
}

/// Directories without which a system is none. Not /tmp, which is there to be emptied.
const SYSTEM: &[&str] = &[
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

/// Devices behind which there are disks or the memory.
const DEVICES: &[&str] = &[
    "sd*", "hd*", "vd*", "xvd*", "nvme*", "mmcblk*", "disk*", "rdisk*", "mapper", "dm-*", "md*",
    "loop*", "ram*", "zram*", "sr*", "nbd*", "mem", "kmem", "port",
];

fn danger_of(command: &Command, around: &Surroundings) -> Option<String> {
    let program = command.program()?;
    let arguments = Arguments::of(command);
    let directory = command.directory.as_deref();
    let precious = |word: &&Word| precious(word, directory, around);
    match program {
        "rm" if arguments.has('r', "recursive") || arguments.has('R', "recursive") => {
            if arguments.options.contains(&"--no-preserve-root") {
                return Some("it deletes with the last safeguard taken off".to_owned());
            }
            let place = arguments.operands.iter().find_map(precious)?;
            Some(format!("it deletes {place} with all that is in it"))
        }
        "chmod" | "chown" | "chgrp" if arguments.has('R', "recursive") => {
            // In the workspace itself it is a day's work.
            let system = Surroundings { roots: Vec::new(), ..around.clone() };
            let changed = arguments.operands.iter().skip(1);
            let place =
                changed.filter_map(|word| self::precious(word, directory, &system)).next()?;
            Some(format!("it changes who may use {place}, with all that is in it"))
        }
        "mv" => {
            let (_, sources) = arguments.operands.split_last()?;
            let place = sources.iter().find_map(precious)?;
            Some(format!("it moves {place} away"))
        }
        "find" => deleted_by_find(command, &precious),
        _ if is_formatter(program) => {
            let asks =
                |word: &Word| matches!(word.known(), Some("--help" | "--version" | "-V" | "-h"));
            let does = !command.words[1..].is_empty() && !command.words[1..].iter().any(asks);
            does.then(|| "it makes a new file system, and what was there is gone".to_owned())
        }
        _ => {
            let written = written_by(program, command, &arguments);
            let device = written.iter().find_map(|word| is_device(word, directory))?;
            Some(format!("it overwrites the device {device}"))
        }
    }
}

/// `find / -delete`, if nothing narrows down what is found.
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
    Some(format!("it deletes what is in {place}"))
}

fn is_formatter(program: &str) -> bool {
    name_fits("mkfs*", program)
        || matches!(program, "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" | "newfs")
}

/// What a command writes, besides what redirections do.
fn written_by<'a>(program: &str, command: &'a Command, arguments: &Arguments<'a>) -> Vec<Word> {
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

/// The place that must stay, if a word means one: a root, a home, or what they or the system lie in.
fn precious(word: &Word, directory: Option<&Path>, around: &Surroundings) -> Option<String> {
    let kept: Vec<&PathBuf> = around.roots.iter().chain(&around.home).collect();
    let is_precious = |path: &Path| {
        path == Path::new("/")
            || SYSTEM.iter().any(|system| path == Path::new(system))
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
        // Everything in the system, or in the home; of the workspace, only what would take the root itself.
        let in_system =
            parent == Path::new("/") || SYSTEM.iter().any(|one| parent == Path::new(one));
        let in_home = around.home.as_deref() == Some(parent);
        if takes_all && (in_system || in_home) {
            return Some(format!("everything in {}", parent.display()));
        }
        let child = |kept: &&PathBuf| {
            let next = kept.strip_prefix(parent).ok()?.iter().next()?.to_str()?.to_owned();
            name_fits(name, &next).then(|| parent.join(next))
        };
        let system = SYSTEM.iter().map(PathBuf::from).collect::<Vec<_>>();
        if let Some(found) = kept.iter().copied().chain(&system).find_map(|kept| child(&kept)) {
            return Some(found.display().to_string());
        }
    }
    None
}

/// The device that a word means.
fn is_device(word: &Word, directory: Option<&Path>) -> Option<String> {
    let found = word.paths(directory)?.into_iter().find(|path| {
        let name = path.strip_prefix("/dev").ok().and_then(|rest| rest.iter().next());
        let name = name.and_then(|name| name.to_str()).unwrap_or_default();
        DEVICES.iter().any(|device| name_fits(device, name))
    });
    found.map(|path| path.display().to_string())
}

/// Arguments as most programs take them: options anywhere, until `--`.
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

    /// Whether an option is given, by its letter among others, or by its long name cut anywhere.
    fn has(&self, letter: char, long: &str) -> bool {
        self.options.iter().any(|option| match option.strip_prefix("--") {
            Some(given) => !given.is_empty() && long.starts_with(given),
            None => option[1..].contains(letter),
        })
    }
}
