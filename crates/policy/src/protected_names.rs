//! Protected files: files that make other programs run code. Tools write them only if the operator allows it.
//!
//! Examples are a hook in `.git`, an editor task and the configuration of an agent. Writing one of them
//! runs a program sooner or later, outside any sandbox and as the user.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::name_pattern::name_matches;

/// The protected file patterns and their exceptions.
#[derive(Debug, Clone)]
pub struct Protection {
    /// Shared, because each runtime and each policy has them.
    protected: Arc<Vec<Pattern>>,
    /// The number of leading patterns whose files may be removed: removing such a file runs nothing.
    removable_count: usize,
    allowed: Vec<Pattern>,
}

/// Patterns that are protected by default, at every depth.
///
/// A name is listed if a program runs the file's content when a directory is entered, opened, committed
/// or debugged, and agents seldom need to write it. Build files are not listed (`package.json`,
/// `Makefile`, `build.rs`, `.npmrc`, `.yarnrc.yml`, `rust-toolchain.toml`, `.tool-versions`): agents edit
/// them every day, and building a project runs its code anyway. `.pre-commit-config.yaml` is not listed
/// because it changes with each hook update, and a checkout that contains it would fail. Configuration
/// that programs read only from the home directory (`.bashrc`, `.vimrc`) is an ordinary file in a workspace.
const DEFAULT_PATTERNS: &[&str] = &[
    // Repositories: hooks, and configuration that names programs. Some projects include `.gitconfig`.
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
    ".gitconfig",
    // Hooks installed by a tool. They run at each commit.
    ".husky",
    ".githooks",
    ".lefthook",
    "lefthook*.yml",
    "lefthook*.yaml",
    "lefthook*.toml",
    "lefthook*.json",
    ".lefthook*.yml",
    ".lefthook*.yaml",
    ".lefthook*.toml",
    ".lefthook*.json",
    // Editor tasks and language servers.
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    "*.code-workspace",
    ".idea/runConfigurations",
    ".idea/watcherTasks.xml",
    ".idea/workspace.xml",
    "*.run.xml",
    ".fleet",
    ".vs/tasks.vs.json",
    ".vs/launch.vs.json",
    ".zed/tasks.json",
    ".zed/settings.json",
    ".helix",
    ".vim/coc-settings.json",
    "*.sublime-project",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals*.el",
    ".devcontainer",
    ".devcontainer.json",
    // Run when a directory is entered. mise trusts a file by its path, so it does not ask about a change.
    ".envrc",
    ".autoenv*",
    ".mise",
    "mise*.toml",
    ".mise*.toml",
    // Loaded from the working directory by debuggers and interactive interpreters.
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".irbrc",
    ".pryrc",
    ".ghci",
    ".ocamlinit",
    ".octaverc",
    ".Rprofile",
    // They name compilers, linkers and JVM agents, also for editors, and are seldom written.
    ".cargo/config",
    ".cargo/config.toml",
    ".mvn/jvm.config",
    ".mvn/maven.config",
    ".mvn/extensions.xml",
];

/// Hooks, servers and commands of agents. These files also restrict agents, so removing one can give an agent
/// more power.
const AGENT_PATTERNS: &[&str] = &[
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".crush.json",
    "crush.json",
    ".windsurf",
    ".kiro",
    ".roo/mcp.json",
    ".amazonq/mcp.json",
    ".trae/mcp.json",
    ".continue/config.json",
    ".continue/config.yaml",
    ".continue/mcpServers",
    ".aider.conf.yml",
];

impl Default for Protection {
    fn default() -> Self {
        static PARSED: LazyLock<Arc<Vec<Pattern>>> = LazyLock::new(|| {
            let all = DEFAULT_PATTERNS.iter().chain(AGENT_PATTERNS);
            Arc::new(all.filter_map(|pattern| Pattern::parse(pattern).ok()).collect())
        });
        Protection {
            // All of them are valid, as a test shows.
            removable_count: DEFAULT_PATTERNS.len(),
            protected: PARSED.clone(),
            allowed: Vec::new(),
        }
    }
}

impl Protection {
    /// Adds a protected pattern: path components separated by `/`, in which `*` and `?` match characters.
    /// It matches at every depth and covers everything beneath. Fails if a component is empty or `..`.
    pub fn protect(mut self, pattern: &str) -> Result<Self, String> {
        Arc::make_mut(&mut self.protected).push(Pattern::parse(pattern)?);
        Ok(self)
    }

    /// Adds an exception: paths that match this pattern may be written. Fails like [`Protection::protect`].
    pub fn allow(mut self, pattern: &str) -> Result<Self, String> {
        self.allowed.push(Pattern::parse(pattern)?);
        Ok(self)
    }

    /// Whether an exception matches a path.
    pub fn allows(&self, path: &Path) -> bool {
        let names = normalized_names(path);
        self.allowed.iter().any(|pattern| pattern.matches(&names))
    }

    /// The protected paths beneath a directory, relative to it. For each pattern whose first components match the
    /// last ones of `path`, returns the rest of the pattern, which may contain `*` and `?`.
    pub fn protected_beneath(&self, path: &Path) -> Vec<PathBuf> {
        let names = normalized_names(path);
        let mut remainders = Vec::new();
        for pattern in self.protected.iter() {
            for length in 1..pattern.names.len().min(names.len() + 1) {
                let (first, rest) = pattern.names.split_at(length);
                let last = &names[names.len() - length..];
                if first.iter().zip(last).all(|(pattern, name)| name_matches(pattern, name)) {
                    remainders.push(rest.iter().collect());
                }
            }
        }
        remainders
    }

    /// Whether an exception with this pattern can match a protected name. A pattern with wildcards can.
    pub fn has_names_like(&self, pattern: &str) -> bool {
        let path = Path::new(pattern);
        pattern.contains(['*', '?'])
            || self.find(path).is_some()
            || !self.protected_beneath(path).is_empty()
    }

    /// All protected patterns.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.protected.iter().map(|pattern| pattern.text.as_str())
    }

    /// Whether a protected path may be removed if it can be restored. Files that can restrict agents and patterns
    /// added by the operator may not.
    pub fn may_be_removed(&self, path: &Path) -> bool {
        let names = normalized_names(path);
        !self.protected.iter().skip(self.removable_count).any(|pattern| pattern.matches(&names))
    }

    /// The protected patterns without wildcards.
    pub fn plain_paths(&self) -> Vec<PathBuf> {
        let is_plain = |pattern: &&Pattern| !pattern.text.contains(['*', '?']);
        self.protected.iter().filter(is_plain).map(|pattern| pattern.text.as_str().into()).collect()
    }

    /// The narrowest exception that allows a protected path, which is relative to its root: the path itself. It is the
    /// pattern that protects the path if the path cannot be written as a pattern.
    pub fn narrowest_exception(&self, path: &Path) -> Option<String> {
        let pattern = self.find(path)?;
        let own = path.to_str().filter(|text| !text.contains(char::is_control));
        let own = own.filter(|text| Pattern::parse(text).is_ok());
        Some(own.unwrap_or(pattern).to_owned())
    }

    /// Why a path, which is relative to its root, is protected.
    pub fn reason(&self, path: &Path) -> &'static str {
        let names = normalized_names(path);
        let by_default = DEFAULT_PATTERNS.len() + AGENT_PATTERNS.len();
        let mut by_default = self.protected.iter().take(by_default);
        if by_default.any(|pattern| pattern.matches(&names)) {
            "writing it can make programs run code"
        } else {
            "the setting `protect` names it"
        }
    }

    /// The pattern that protects a path, which is relative to its root. `None` if the path may be written.
    pub fn find(&self, path: &Path) -> Option<&str> {
        let names = normalized_names(path);
        if self.allowed.iter().any(|pattern| pattern.matches(&names)) {
            return None;
        }
        let found = self.protected.iter().find(|pattern| pattern.matches(&names));
        found.map(|pattern| pattern.text.as_str())
    }
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    names: Vec<String>,
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, String> {
        let names: Vec<String> =
            text.trim_end_matches('/').split('/').map(owned_normalized_name).collect();
        if names.iter().any(|name| name.is_empty() || name == "..") {
            return Err(format!(
                "{text:?} is not a pattern: write names separated by `/`, none of them empty"
            ));
        }
        Ok(Pattern { text: text.to_owned(), names })
    }

    /// Whether consecutive components of the path match the pattern.
    fn matches(&self, path: &[String]) -> bool {
        path.windows(self.names.len()).any(|names| {
            names.iter().zip(&self.names).all(|(name, pattern)| name_matches(pattern, name))
        })
    }
}

fn normalized_names(path: &Path) -> Vec<String> {
    path.iter().map(|name| owned_normalized_name(&name.to_string_lossy())).collect()
}

fn owned_normalized_name(name: &str) -> String {
    normalized_name(name).into_owned()
}

/// Normalizes a name so that names which some file system treats as equal become equal: drops case,
/// invisible characters, trailing dots and spaces and everything after a colon, and expands the Windows
/// short name of `.git`.
pub(crate) fn normalized_name(name: &str) -> Cow<'_, str> {
    // The fast path: nearly every name is ASCII in lower case, and every name is compared with every pattern.
    let is_changed = |byte: u8| !byte.is_ascii() || byte.is_ascii_uppercase() || byte == b':';
    if !name.bytes().any(is_changed) {
        return Cow::Borrowed(stem_of(name));
    }
    let lower: String = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        let visible = name.chars().filter(|c| !is_ignorable(*c));
        visible.flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect()
    };
    Cow::Owned(stem_of(&lower).to_owned())
}

/// A name in lower case without what follows a colon, without trailing dots and spaces.
fn stem_of(lower: &str) -> &str {
    let stem = lower.split(':').next().unwrap_or_default();
    match stem.trim_end_matches(['.', ' ']) {
        "git~1" => ".git",
        trimmed => trimmed,
    }
}

/// Code points that file systems ignore when they compare names.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_default_patterns_are_valid() {
        let count = Protection::default().patterns().count();
        assert_eq!(count, DEFAULT_PATTERNS.len() + AGENT_PATTERNS.len());
    }

    #[test]
    fn protected_names_match_in_every_spelling() {
        let protection = Protection::default();
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".Git/hooks",
            "sub/module/.git/config",
            ".git",
            ".g\u{200c}it/config",
            ".git./config",
            ".git /config",
            "GIT~1/config",
            ".git::$INDEX_ALLOCATION/config",
            ".vscode/tasks.json",
            "a/.VSCODE/Tasks.JSON",
            ".envrc",
            ".mcp.json",
            ".gdbinit",
            "sub/.nvim.lua",
            ".cargo/config.toml",
            "lefthook-local.yml",
            "x.sublime-project",
            ".kiro/settings/mcp.json",
            "mise.local.toml",
            ".rprofile",
        ] {
            assert!(protection.find(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            ".gitignore",
            "git/config",
            ".github/workflows/ci.yml",
            ".vscode/x",
            "a.git/x",
            "package.json",
            "Makefile",
            ".npmrc",
            ".cargo/audit.toml",
            ".roo/rules/a.md",
            ".cursor/rules/a.mdc",
            "mise/main.rs",
        ] {
            assert_eq!(protection.find(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn lists_protected_paths_beneath_a_directory() {
        let protection = Protection::default().protect("a/b/*.c").unwrap();
        let beneath = |path: &str| protection.protected_beneath(Path::new(path));
        assert!(beneath("x/.VSCode").contains(&"tasks.json".into()));
        assert_eq!(beneath("a"), [PathBuf::from("b/*.c")]);
        assert_eq!(beneath("x/a/b"), [PathBuf::from("*.c")]);
        assert_eq!(beneath("src"), Vec::<PathBuf>::new());
        assert!(protection.plain_paths().contains(&".claude".into()));
    }

    #[test]
    fn an_exception_is_narrow_and_allows_its_path() {
        let protection = Protection::default();
        for (path, expected) in [
            (".git/hooks/pre-commit", ".git/hooks/pre-commit"),
            ("sub/.GIT/Config", "sub/.GIT/Config"),
            ("sub/.envrc", "sub/.envrc"),
            (".git/hooks/:x", ".git"),
            (".git/a\nb", ".git"),
        ] {
            let exception = protection.narrowest_exception(Path::new(path)).unwrap();
            assert_eq!(exception, expected);
            let allowed = protection.clone().allow(&exception).unwrap();
            assert_eq!(allowed.find(Path::new(path)), None, "{path}");
        }
        assert_eq!(protection.narrowest_exception(Path::new("src/main.rs")), None);
        for name in [".envrc", "a/.git/hooks", ".vscode", "*.xml"] {
            assert!(protection.has_names_like(name), "{name}");
        }
        assert!(!protection.has_names_like("src/main.rs"));
    }

    #[test]
    fn the_operator_adds_patterns_and_exceptions() {
        let protection = Protection::default()
            .protect("*.lock")
            .unwrap()
            .allow(".vscode/settings.json")
            .unwrap();
        assert_eq!(protection.find(Path::new("x/Cargo.lock")), Some("*.lock"));
        assert_eq!(protection.find(Path::new(".vscode/settings.json")), None);
        assert!(protection.find(Path::new(".vscode/tasks.json")).is_some());
        assert!(!protection.may_be_removed(Path::new("x/Cargo.lock")));
        assert!(!protection.may_be_removed(Path::new(".claude/settings.json")));
        assert!(protection.may_be_removed(Path::new("sub/.envrc")));
        assert!(Protection::default().protect("a//b").is_err());
        assert!(Protection::default().protect("").is_err());
    }
}
