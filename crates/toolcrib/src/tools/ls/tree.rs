//! A directory as a tree of bounded size.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_fs::{Directory, EntryKind};
use toolcrib_text::visible_name;

use super::ignore_patterns::Patterns;
use crate::cx::Cx;
use crate::error::Error;
use crate::hidden_paths::Reason;

/// Directories of dependencies, build output and caches, shown as one line each.
const COLLAPSED: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "target",
    "__pycache__",
    ".venv",
    "venv",
    "dist",
    "build",
    ".next",
    ".cache",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".gradle",
    ".idea",
];

/// Time limit for counting the files in all collapsed directories.
const COUNT_TIMEOUT: Duration = Duration::from_millis(300);

pub(super) struct Options {
    pub(super) depth: usize,
    pub(super) limit: usize,
    pub(super) ignore: Patterns,
    pub(super) chars: usize,
}

/// The listing.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) text: String,
    pub(super) entries: Vec<Value>,
    /// Number of entries found.
    pub(super) total: usize,
    pub(super) ignored: usize,
    /// Whether all entries were counted.
    pub(super) complete: bool,
    unreadable: usize,
    /// Number of directories at the depth limit that are not empty.
    deeper: usize,
    chars: usize,
    budget: usize,
    counting_until: Option<Instant>,
}

impl Tree {
    /// Lists a directory; `prefix` precedes its paths in replies.
    pub(super) fn of(
        cx: &Cx<'_>,
        directory: &Directory,
        prefix: &str,
        options: Options,
    ) -> Result<Tree, Error> {
        // Half of the budget is for the first and last line and for the metadata.
        let mut tree = Tree { complete: true, budget: options.chars / 2, ..Tree::default() };
        tree.add(cx, directory, prefix, 0, &options)?;
        Ok(tree)
    }

    /// Whether every requested entry is shown, except ignored ones.
    pub(super) fn is_complete(&self) -> bool {
        self.complete && self.total == self.entries.len() && self.unreadable + self.deeper == 0
    }

    /// Notes about omitted entries, and how to see them.
    pub(super) fn omission_notes(&self, depth: u64) -> Vec<String> {
        let hidden = self.total.saturating_sub(self.entries.len());
        let at_least = if self.complete { "" } else { "at least " };
        let entries = if hidden == 1 { "entry" } else { "entries" };
        let counted = [
            (
                hidden,
                format!("{at_least}{hidden} more {entries}: list a subdirectory, or raise limit"),
            ),
            (self.deeper, format!("… is deeper: depth {} shows more", depth + 1)),
            (self.unreadable, format!("{} could not be read", self.unreadable)),
            (self.ignored, format!("{} ignored", self.ignored)),
        ];
        counted.into_iter().filter_map(|(count, words)| (count > 0).then_some(words)).collect()
    }

    fn add(
        &mut self,
        cx: &Cx<'_>,
        directory: &Directory,
        prefix: &str,
        level: usize,
        options: &Options,
    ) -> Result<(), Error> {
        cx.check_cancelled()?;
        let Some(names) = self.first_names(directory, options) else { return Ok(()) };
        for (at, (name, kind)) in names.iter().enumerate() {
            if self.is_full(options) {
                self.complete &= names[at..].iter().all(|(_, kind)| *kind != EntryKind::Directory)
                    || level + 1 >= options.depth;
                return Ok(());
            }
            let shown = visible_name(name.as_encoded_bytes());
            let path = format!("{prefix}{shown}");
            let indent = "  ".repeat(level + 1);
            let opened = (*kind == EntryKind::Directory).then(|| directory.child(name));
            let hidden =
                cx.hidden_reason(&directory.path().join(name)).map(|reason| match reason {
                    Reason::Own => "Toolcrib's own, not shown",
                    Reason::Secret(_) => "hidden: keys, tokens or history",
                    Reason::OtherWorkspace => "other workspaces, not shown",
                    Reason::System(_) => "not open to file tools",
                });
            match opened {
                _ if hidden.is_some() => {
                    let line = format!("{indent}{shown} ({})", hidden.unwrap_or_default());
                    self.line(&line, entry(&path, "special"));
                }
                None => self.leaf(directory, name, *kind, &indent, &shown, &path),
                Some(Err(_)) => {
                    self.unreadable += 1;
                    self.line(
                        &format!("{indent}{shown}/ (cannot be read)"),
                        entry(&path, "directory"),
                    );
                }
                Some(Ok(child)) if level + 1 >= options.depth => {
                    let count = self.count_collapsed(&child, &shown, options);
                    self.line(&format!("{indent}{shown}/{count}"), entry(&path, "directory"));
                }
                Some(Ok(child)) if COLLAPSED.contains(&shown.as_str()) => {
                    let count = self.count_files(&child);
                    self.line(&format!("{indent}{shown}/ ({count})"), entry(&path, "directory"));
                }
                Some(Ok(child)) => {
                    self.line(&format!("{indent}{shown}/"), entry(&path, "directory"));
                    self.add(cx, &child, &format!("{path}/"), level + 1, options)?;
                }
            }
        }
        Ok(())
    }

    /// The names in a directory, directories first, up to the limit; the rest is only counted.
    fn first_names(
        &mut self,
        directory: &Directory,
        options: &Options,
    ) -> Option<Vec<(OsString, EntryKind)>> {
        let mut names: Vec<(OsString, EntryKind)> = Vec::new();
        let listed = directory.each(|name, kind| {
            if options.ignore.match_name(&name.to_string_lossy()) {
                self.ignored += 1;
            } else {
                self.total += 1;
                names.push((name.to_owned(), kind));
            }
            true
        });
        if listed.is_err() {
            self.unreadable += 1;
            return None;
        }
        let order = |a: &(OsString, EntryKind), b: &(OsString, EntryKind)| {
            let files_last = |kind| kind != EntryKind::Directory;
            files_last(a.1).cmp(&files_last(b.1)).then_with(|| a.0.cmp(&b.0))
        };
        let room = options.limit.saturating_sub(self.entries.len()) + 1;
        if names.len() > room {
            names.select_nth_unstable_by(room, order);
            names.truncate(room);
        }
        names.sort_unstable_by(order);
        Some(names)
    }

    fn leaf(
        &mut self,
        directory: &Directory,
        name: &OsStr,
        kind: EntryKind,
        indent: &str,
        shown: &str,
        path: &str,
    ) {
        match kind {
            EntryKind::Link => {
                let target = directory.link_target(name).unwrap_or_default();
                let target = visible_name(target.as_encoded_bytes());
                let mut entry = entry(path, "link");
                entry["target"] = target.as_str().into();
                self.line(&format!("{indent}{shown} → {target}"), entry);
            }
            EntryKind::Special => {
                self.line(&format!("{indent}{shown} (not a regular file)"), entry(path, "special"));
            }
            _ => {
                let size = directory.size(name).unwrap_or(0);
                let mut entry = entry(path, "file");
                entry["size"] = size.into();
                self.line(&format!("{indent}{shown} ({})", human_size(size)), entry);
            }
        }
    }

    fn line(&mut self, line: &str, entry: Value) {
        self.chars += line.chars().count() + 1;
        self.text += line;
        self.text.push('\n');
        self.entries.push(entry);
    }

    fn is_full(&self, options: &Options) -> bool {
        self.entries.len() >= options.limit || self.chars >= self.budget
    }

    /// The count shown after a collapsed directory. A plain list has none.
    fn count_collapsed(&mut self, child: &Directory, shown: &str, options: &Options) -> String {
        if options.depth == 1 {
            return String::new();
        }
        if COLLAPSED.contains(&shown) {
            return format!(" ({})", self.count_files(child));
        }
        let mut is_empty = true;
        let read = child.each(|_, _| {
            is_empty = false;
            false
        });
        if read.is_err() || is_empty {
            return String::new();
        }
        self.deeper += 1;
        " …".to_owned()
    }

    /// The number of files below a directory.
    fn count_files(&mut self, directory: &Directory) -> String {
        let until = *self.counting_until.get_or_insert_with(|| Instant::now() + COUNT_TIMEOUT);
        let (files, all) = count_below(directory, until);
        let at_least = if all { "" } else { "at least " };
        format!("{at_least}{} {}", thousands(files), if files == 1 { "file" } else { "files" })
    }
}

/// The number of files below a directory, and whether it is complete: unreadable, too deep and late entries are not
/// counted.
fn count_below(directory: &Directory, until: Instant) -> (u64, bool) {
    const DEEPEST: usize = 200;
    let (mut files, mut all) = (0, true);
    let mut look = |directory: &Directory| {
        let mut below = Vec::new();
        let read = directory.each(|name, kind| {
            match kind {
                EntryKind::Directory => below.push(name.to_owned()),
                _ => files += 1,
            }
            true
        });
        (below, read.is_ok())
    };
    let mut open: Vec<(Directory, Vec<OsString>)> = Vec::new();
    let (mut names, read) = look(directory);
    all &= read;
    loop {
        let next = match open.last_mut() {
            Some((above, names)) => names.pop().map(|name| above.child(&name)),
            None => names.pop().map(|name| directory.child(&name)),
        };
        match next {
            None if open.pop().is_none() => return (files, all),
            None => {}
            Some(_) if Instant::now() > until => return (files, false),
            Some(Ok(child)) if open.len() < DEEPEST => {
                let (below, read) = look(&child);
                all &= read;
                open.push((child, below));
            }
            Some(_) => all = false,
        }
    }
}

fn entry(path: &str, kind: &str) -> Value {
    let name = path.rsplit('/').next().unwrap_or(path);
    json!({"name": name, "path": path, "type": kind})
}

/// A human-readable size.
fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// Formats a number: `312,004`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(["312,004", "7", "1,000"], [312_004, 7, 1_000].map(thousands).as_slice());
        assert_eq!(
            ["999 B", "1.5 kB", "2.0 GB"],
            [999, 1_500, 2_000_000_000].map(human_size).as_slice()
        );
    }
}
