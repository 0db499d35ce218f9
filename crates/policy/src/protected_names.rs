//! Files that make programs run code: written only if the operator says so.
//!
//! A hook in `.git`, a task of an editor, the configuration of an agent: whoever writes them runs a
//! program sooner or later, outside any sandbox and in the user's name.

use std::path::{Path, PathBuf};

use crate::name_pattern::name_fits;

/// Which files are not written by tools.
#[derive(Debug, Clone)]
pub struct Protection {
    protected: Vec<Pattern>,
    /// As many of them, from the first on, only make programs run code: nothing runs because such a file is gone.
    removable: usize,
    allowed: Vec<Pattern>,
}

/// What is protected unless the operator says otherwise, at every depth.
///
/// A name is here if a program runs what the file says because a directory is entered, opened, committed
/// or debugged, and agents seldom have a reason to write it. Files of a build are not here
/// (`package.json`, `Makefile`, `build.rs`, `.npmrc`, `.yarnrc.yml`, `rust-toolchain.toml`,
/// `.tool-versions`): agents edit them every day, and whoever builds a project runs its code anyway.
/// `.pre-commit-config.yaml` changes with each update of a hook, and a checkout that brings it would fail.
/// Configuration that a shell or an editor has in the home directory only (`.bashrc`, `.vimrc`) is not
/// here either: in a workspace it is a file like others.
const USUAL: &[&str] = &[
    // Repositories: hooks, and configuration that names programs. Projects have `.gitconfig` included.
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
    ".gitconfig",
    // Hooks that a tool has installed in the repository. They run at each commit.
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
    // Tasks and language servers of editors.
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
    // Run when a directory is entered. mise trusts a file by its path, so a change is not asked about.
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
    // They name compilers, linkers and agents of a virtual machine, for editors as well, and are seldom
    // written.
    ".cargo/config",
    ".cargo/config.toml",
    ".mvn/jvm.config",
    ".mvn/maven.config",
    ".mvn/extensions.xml",
];

/// Hooks, servers and commands of agents. They also say what an agent may not do, so that removing one can give it more
/// power.
const OF_AGENTS: &[&str] = &[
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
        let parsed = |patterns: &[&str]| -> Vec<Pattern> {
            patterns.iter().filter_map(|pattern| Pattern::parse(pattern).ok()).collect()
        };
        let (usual, of_agents) = (parsed(USUAL), parsed(OF_AGENTS));
        Protection {
            removable: usual.len(),
            protected: [usual, of_agents].concat(),
            allowed: Vec::new(),
        }
    }
}

impl Protection {
    /// Protects what a pattern names, too: names of a path separated by `/`, `*` and `?` for letters of
    /// one name. It holds at every depth and for all that is beneath.
    pub fn protect(mut self, pattern: &str) -> Result<Self, String> {
        self.protected.push(Pattern::parse(pattern)?);
        Ok(self)
    }

    /// Lets what a pattern names be written, although it is protected.
    pub fn allow(mut self, pattern: &str) -> Result<Self, String> {
        self.allowed.push(Pattern::parse(pattern)?);
        Ok(self)
    }

    /// Whether the operator lets a path be written, whatever protects it.
    pub fn allows(&self, path: &Path) -> bool {
        let names = folded_names(path);
        self.allowed.iter().any(|pattern| pattern.matches(&names))
    }

    /// The paths that would be protected beneath a path, given from there. The last names of the path are the
    /// first of a pattern, and this is the rest of it, which may have `*` and `?`.
    pub fn protected_beneath(&self, path: &Path) -> Vec<PathBuf> {
        let names = folded_names(path);
        let mut rests = Vec::new();
        for pattern in &self.protected {
            for length in 1..pattern.names.len().min(names.len() + 1) {
                let (first, rest) = pattern.names.split_at(length);
                let last = &names[names.len() - length..];
                if first.iter().zip(last).all(|(pattern, name)| name_fits(pattern, name)) {
                    rests.push(rest.iter().collect());
                }
            }
        }
        rests
    }

    /// All patterns of protected files.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.protected.iter().map(|pattern| pattern.text.as_str())
    }

    /// Whether a protected path may be removed if it can be brought back. It may not if it can also say what agents may
    /// not do, or if the operator has protected it.
    pub fn may_be_removed(&self, path: &Path) -> bool {
        let names = folded_names(path);
        !self.protected.iter().skip(self.removable).any(|pattern| pattern.matches(&names))
    }

    /// The protected paths that name one file each.
    pub fn plain_paths(&self) -> Vec<PathBuf> {
        let is_plain = |pattern: &&Pattern| !pattern.text.contains(['*', '?']);
        self.protected.iter().filter(is_plain).map(|pattern| pattern.text.as_str().into()).collect()
    }

    /// The pattern that protects a path, given from its root; nothing, if it may be written.
    pub fn find(&self, path: &Path) -> Option<&str> {
        let names = folded_names(path);
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
        let names: Vec<String> = text.trim_end_matches('/').split('/').map(folded).collect();
        if names.iter().any(|name| name.is_empty() || name == "..") {
            return Err(format!(
                "{text:?} is no pattern: names separated by `/`, none of them empty"
            ));
        }
        Ok(Pattern { text: text.to_owned(), names })
    }

    /// Whether some names of the path, one after the other, are those of the pattern.
    fn matches(&self, path: &[String]) -> bool {
        path.windows(self.names.len()).any(|names| {
            names.iter().zip(&self.names).all(|(name, pattern)| name_fits(pattern, name))
        })
    }
}

fn folded_names(path: &Path) -> Vec<String> {
    path.iter().map(|name| folded(&name.to_string_lossy())).collect()
}

/// A name as some file system may take it: without regard to case, without what is not seen, without
/// dots and blanks at the end, without what follows a colon, and the short name that Windows gives.
pub(crate) fn folded(name: &str) -> String {
    // Nearly every name, and every name is compared with every pattern.
    let lower: String = match name.is_ascii() {
        true => name.to_ascii_lowercase(),
        false => {
            let seen = name.chars().filter(|c| !is_ignorable(*c));
            seen.flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect()
        }
    };
    let stem = lower.split(':').next().unwrap_or_default();
    match stem.trim_end_matches(['.', ' ']) {
        "git~1" => ".git".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Code points that file systems leave out when they compare names.
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
    fn what_runs_code_is_protected_by_every_spelling() {
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
    fn what_lies_beneath_a_path_is_known_before_it_is_there() {
        let protection = Protection::default().protect("a/b/*.c").unwrap();
        let beneath = |path: &str| protection.protected_beneath(Path::new(path));
        assert!(beneath("x/.VSCode").contains(&"tasks.json".into()));
        assert_eq!(beneath("a"), [PathBuf::from("b/*.c")]);
        assert_eq!(beneath("x/a/b"), [PathBuf::from("*.c")]);
        assert_eq!(beneath("src"), Vec::<PathBuf>::new());
        assert!(protection.plain_paths().contains(&".claude".into()));
    }

    #[test]
    fn the_operator_adds_and_takes_away() {
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
