//! The ignore rules of a tree, with the semantics of git and ripgrep.
//!
//! The `ignore` crate matches the rules of one file. The precedence between files is implemented here,
//! because that crate's walker opens files by path: the deepest directory comes first, `.ignore` before
//! `.gitignore` before `.git/info/exclude`, and a repository disregards the `.gitignore` files above it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use toolcrib_fs::{BulkReader, Directory, WholeRead};

/// The rules of a directory, linked to those of the directories above.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Offset in a path from the root at which the part relative to this directory begins.
    skip: usize,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// The `.gitignore` files above do not apply here.
    is_repository: bool,
    /// Nothing is ignored in this directory, because the caller named it although it is ignored.
    allows_all: bool,
}

/// The ignore files that a directory listing contains.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IgnoreFiles {
    pub(crate) ignore: bool,
    pub(crate) git_ignore: bool,
    pub(crate) repository: bool,
}

/// More than is written by hand. A larger file is disregarded.
const MAX_RULE_BYTES: u64 = 1 << 20;

/// Ignored in every tree, unless a rule includes it.
const ALWAYS_IGNORED: &[&str] = &[
    "node_modules/",
    "__pycache__/",
    ".venv/",
    "venv/",
    ".tox/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    "*.pyc",
    "*.pyo",
];

/// Ignored in a tree without ignore files, since it is probably generated. With an ignore file, that file
/// decides: many projects have sources in `build`.
const IGNORED_WITHOUT_IGNORE_FILE: &[&str] = &["dist/", "build/"];

/// Whether a file of this name contains rules.
pub(crate) fn is_ignore_file(name: &OsStr) -> bool {
    let mut files = IgnoreFiles::default();
    files.note(name);
    files.ignore || files.git_ignore
}

impl IgnoreFiles {
    /// Records a name of the listing.
    pub(crate) fn note(&mut self, name: &OsStr) {
        match name.as_bytes() {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.git_ignore = true,
            b".git" => self.repository = true,
            _ => {}
        }
    }

    /// Whether the directory has any.
    pub(crate) fn any(self) -> bool {
        self.ignore || self.git_ignore || self.repository
    }

    /// The paths of the ignore files, relative to the directory.
    pub(crate) fn paths(self) -> impl Iterator<Item = &'static str> {
        let files = [
            (self.ignore, ".ignore"),
            (self.git_ignore, ".gitignore"),
            (self.repository, ".git/info/exclude"),
        ];
        files.into_iter().filter_map(|(there, path)| there.then_some(path))
    }
}

impl IgnoreRules {
    /// The rules of a directory, given those of its parent.
    pub(crate) fn enter(
        above: Option<&Arc<IgnoreRules>>,
        tree: &BulkReader,
        directory: &Directory,
        relative: &Path,
        files: IgnoreFiles,
    ) -> Option<Arc<IgnoreRules>> {
        if !files.any() || above.is_some_and(|above| above.allows_all) {
            return above.cloned();
        }
        let read = |there: bool, name: &str| {
            if there { read_rules(directory, name) } else { Gitignore::empty() }
        };
        let exclude = if files.repository {
            match tree.directory(&relative.join(".git/info")) {
                Ok(info) => read_rules(&info, "exclude"),
                Err(_) => Gitignore::empty(),
            }
        } else {
            Gitignore::empty()
        };
        let length = relative.as_os_str().len();
        Some(Arc::new(IgnoreRules {
            above: above.cloned(),
            skip: if length == 0 { 0 } else { length + 1 },
            ignore: read(files.ignore, ".ignore"),
            git: read(files.git_ignore, ".gitignore"),
            exclude,
            is_repository: files.repository,
            allows_all: false,
        }))
    }

    /// Rules that ignore nothing.
    pub(crate) fn allow_all() -> Arc<IgnoreRules> {
        Arc::new(IgnoreRules {
            above: None,
            skip: 0,
            ignore: Gitignore::empty(),
            git: Gitignore::empty(),
            exclude: Gitignore::empty(),
            is_repository: false,
            allows_all: true,
        })
    }
}

/// Whether the rules of the containing directory ignore a path. `relative` is relative to the root.
pub(crate) fn ignores(
    rules: Option<&Arc<IgnoreRules>>,
    relative: &[u8],
    is_directory: bool,
) -> bool {
    if rules.is_some_and(|rules| rules.allows_all) {
        return false;
    }
    let (mut ignore, mut git, mut exclude) = (None, None, None);
    let (mut passed_repository, mut next) = (false, rules);
    while let Some(rules) = next {
        let path = Path::new(OsStr::from_bytes(&relative[rules.skip..]));
        ignore = ignore.or_else(|| matched(&rules.ignore, path, is_directory));
        if !passed_repository {
            git = git.or_else(|| matched(&rules.git, path, is_directory));
            exclude = exclude.or_else(|| matched(&rules.exclude, path, is_directory));
        }
        passed_repository |= rules.is_repository;
        next = rules.above.as_ref();
    }
    let by_default = || {
        let name = Path::new(OsStr::from_bytes(
            relative.rsplit(|&byte| byte == b'/').next().unwrap_or(relative),
        ));
        let never = matched(built_in(&NEVER, ALWAYS_IGNORED), name, is_directory);
        never.or_else(|| match rules {
            None => matched(built_in(&GENERATED, IGNORED_WITHOUT_IGNORE_FILE), name, is_directory),
            Some(_) => None,
        })
    };
    ignore.or(git).or(exclude).or_else(by_default).unwrap_or(false)
}

static NEVER: OnceLock<Gitignore> = OnceLock::new();
static GENERATED: OnceLock<Gitignore> = OnceLock::new();

fn built_in(rules: &'static OnceLock<Gitignore>, lines: &[&str]) -> &'static Gitignore {
    rules.get_or_init(|| build(lines.iter().copied()))
}

/// The verdict of one file's rules: ignored, included, or `None`.
fn matched(rules: &Gitignore, path: &Path, is_directory: bool) -> Option<bool> {
    match rules.matched(path, is_directory) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

fn read_rules(directory: &Directory, name: &str) -> Gitignore {
    let mut bytes = Vec::new();
    match directory.take(OsStr::new(name), MAX_RULE_BYTES, &mut bytes) {
        Ok(WholeRead::Whole(_)) => {
            let lines = bytes.split(|&byte| byte == b'\n').map_while(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                std::str::from_utf8(line).ok()
            });
            build(lines)
        }
        _ => Gitignore::empty(),
    }
}

/// Invalid lines are skipped, as git does.
fn build<'a>(lines: impl Iterator<Item = &'a str>) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for (at, line) in lines.enumerate() {
        let line = if at == 0 { line.trim_start_matches('\u{feff}') } else { line };
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The rules that apply in a directory.
#[derive(Debug, Clone)]
pub(crate) enum RuleScope {
    Ruled(Option<Arc<IgnoreRules>>),
    /// An ignored directory above a named path. Nothing else in it is listed.
    NamedBelow,
}

impl Default for RuleScope {
    fn default() -> Self {
        RuleScope::Ruled(None)
    }
}
