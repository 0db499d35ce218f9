//! Adds rules to the user's file. All other bytes stay. Concurrent additions are serialized by a lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib::{Rules, random_bytes};

use crate::optional_file::is_missing;

/// Longer than an addition takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Only the user may read the rules.
const MODE: u32 = 0o600;

/// Adds rules at the end of a file. Creates the file if it does not exist. Does not add rules that it already
/// contains. Returns whether they were added.
pub(crate) fn add(path: &Path, rules: &str) -> Result<bool, String> {
    change(path, |text| with(text, rules))
}

/// Replaces the text of a file if it still is `was`. Returns whether it was replaced.
pub(crate) fn replace_if_unchanged(path: &Path, was: &str, new: &str) -> Result<bool, String> {
    change(path, |text| Ok((text == was).then(|| new.to_owned())))
}

/// Replaces the text of a file by the result of `new`, if there is one. A missing file has no text. Returns whether it
/// was replaced.
fn change(
    path: &Path,
    new: impl FnOnce(&str) -> Result<Option<String>, String>,
) -> Result<bool, String> {
    let at = |error: io::Error| format!("{}: {error}", path.display());
    let file = destination(path).map_err(at)?;
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(at)?;
    let locked = lock(directory).map_err(at)?;
    let text = match super::text(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(at(error)),
    };
    let new = new(&text).map_err(|problem| format!("{}: {problem}", path.display()))?;
    let Some(new) = new else { return Ok(false) };
    replace(&file, &new).map_err(at)?;
    // Makes the rename durable. The file is replaced even if this fails.
    let _ = locked.sync_all();
    Ok(true)
}

/// The text with the rules appended. `None` if it already contains them.
pub(crate) fn with(text: &str, rules: &str) -> Result<Option<String>, String> {
    let parse = |text: &str| Rules::parse(text).map_err(|error| error.to_string());
    let (before, added) = (parse(text)?.count(), parse(rules)?.count());
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let rules = rules.replace('\n', ending);
    let mut places = text.match_indices(&rules);
    if places.any(|(at, rules)| is_end_of_table(&text[at + rules.len()..])) {
        return Ok(None);
    }
    let mut new = text.to_owned();
    if !new.is_empty() {
        if !new.ends_with('\n') {
            new += ending;
        }
        new += ending;
    }
    new += &rules;
    // Nothing can be appended to a file that has its rules in one list, `rule = […]`.
    match parse(&new) {
        Ok(rules) if rules.count() == before + added => Ok(Some(new)),
        _ => Err("no rule can be appended to its format; add the rule by hand".to_owned()),
    }
}

/// Whether no key follows that belongs to the table before it.
fn is_end_of_table(rest: &str) -> bool {
    let mut lines = rest.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.find(|line| !line.starts_with('#')).is_none_or(|line| line.starts_with('['))
}

/// The target of a symlink: some users keep such files elsewhere.
fn destination(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if is_missing(path, &error) => std::path::absolute(path),
        Err(error) => Err(error),
    }
}

/// Locks the directory, because the file itself is replaced.
fn lock(directory: &Path) -> io::Result<File> {
    let (directory, began) = (File::open(directory)?, Instant::now());
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() > LOCK_TIMEOUT => {
                return Err(io::Error::other("another process has locked its directory"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL_INTERVAL),
        }
    }
}

/// Replaces the file atomically and durably.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mode = file.metadata().map_or(MODE, |found| found.permissions().mode() & 0o777);
    let random: [u8; 8] = random_bytes()?;
    let name = format!(".rules-{:016x}", u64::from_ne_bytes(random));
    let new = file.with_file_name(name);
    let write = || {
        let mut made = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
        made.write_all(text.as_bytes())?;
        made.set_permissions(fs::Permissions::from_mode(mode))?;
        made.sync_all()?;
        fs::rename(&new, file)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(command: &str) -> String {
        format!("[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"{command}\"]\n")
    }

    #[test]
    fn existing_content_is_unchanged() {
        let mine = "# mine,  as I like it\n[[rule]]\nkind='command' # quoted so\ndecision=\"deny\"\n\
                    commands=[ 'rm' , ]\n# the end";
        let new = with(mine, &rule("npm test")).unwrap().unwrap();
        assert_eq!(new, format!("{mine}\n\n{}", rule("npm test")));
        assert_eq!(with(&new, &rule("npm test")), Ok(None), "it is there");
        let crlf = with("# a\r\n", &rule("ls")).unwrap().unwrap();
        assert!(crlf.ends_with("commands = [\"ls\"]\r\n"));
    }

    #[test]
    fn a_narrower_rule_is_another_rule() {
        let narrower = format!("{}# only this one\ntools = [\"Bash\"]\n", rule("ls"));
        let new = with(&narrower, &rule("ls")).unwrap().unwrap();
        assert_eq!(new, format!("{narrower}\n{}", rule("ls")));
        let other = format!("{}\n# another one\n{}", rule("ls"), rule("rm"));
        assert_eq!(with(&other, &rule("ls")), Ok(None));
    }

    #[test]
    fn an_invalid_file_or_a_list_is_not_changed() {
        assert!(with("[[rule]", &rule("ls")).is_err());
        let list = "rule = [{decision = \"deny\", kind = \"command\", commands = [\"rm\"]}]\n";
        assert!(with(list, &rule("ls")).unwrap_err().contains("by hand"));
    }

    #[test]
    fn concurrent_additions_all_succeed() {
        let home = tempfile::tempdir().unwrap();
        let (kept, link) = (home.path().join("kept.toml"), home.path().join("new/rules.toml"));
        fs::create_dir(home.path().join("new")).unwrap();
        fs::write(&kept, "# mine\n").unwrap();
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        std::thread::scope(|scope| {
            for number in 0..20 {
                let link = &link;
                scope.spawn(move || add(link, &rule(&format!("make t{number}"))).unwrap());
            }
        });
        assert!(link.is_symlink(), "a link stays one");
        let text = fs::read_to_string(&kept).unwrap();
        assert!(text.starts_with("# mine\n"));
        assert_eq!(Rules::parse(&text).unwrap().count(), 20);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_missing_file_is_created_for_the_user_only() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("toolcrib/rules.toml");
        add(&file, &rule("ls")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::read_to_string(&file).unwrap(), rule("ls"));
    }
}
