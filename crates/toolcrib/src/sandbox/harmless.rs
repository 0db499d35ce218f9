//! Configurations of new repositories: whether they say only what every repository's says.
//!
//! Nothing here understands a configuration; it knows the few lines that run nothing, and takes all others
//! for dangerous.

/// What a new repository, a clone and a submodule have in their configuration, and who commits.
const OF_GIT: [(&str, &[&str]); 7] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "worktree",
            "autocrlf",
            "eol",
        ],
    ),
    ("remote", &["url", "fetch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("submodule", &["url", "active"]),
    ("extensions", &["objectformat", "refstorage", "worktreeconfig"]),
];

/// Where a clone comes from.
const OF_MERCURIAL: [(&str, &[&str]); 1] = [("paths", &["default"])];

/// Whether a configuration of git makes it run nothing.
pub(super) fn for_git(text: &str) -> bool {
    has_only(text, &OF_GIT)
}

/// Whether a configuration of Mercurial makes it run nothing.
pub(super) fn for_mercurial(text: &str) -> bool {
    has_only(text, &OF_MERCURIAL)
}

fn has_only(text: &str, known: &[(&str, &[&str])]) -> bool {
    let mut keys: &[&str] = &[];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(section) = header.strip_suffix(']') else { return false };
            let section = section.split([' ', '\t', '.']).next().unwrap_or_default();
            let section = section.to_ascii_lowercase();
            match known.iter().find(|(name, _)| *name == section) {
                Some((_, of_section)) => keys = of_section,
                None => return false,
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        // A value may go on, name a program instead of a place, or be taken for an option.
        let plain =
            !value.ends_with('\\') && !value.contains("::") && !value.trim().starts_with('-');
        if !keys.contains(&key.as_str()) || !plain {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_repository_says_is_harmless_and_nothing_else() {
        let new = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
        assert!(for_git(new) && for_git(""));
        assert!(for_git(&format!(
            "{new}[remote \"origin\"]\n\turl = /w/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n; note\n[user]\nname = A B\n"
        )));
        for evil in [
            "[core]\n\tfsmonitor = evil",
            "[core]\n\tFSMonitor = evil",
            "[core] fsmonitor = evil",
            "[core]\n\thooksPath = x",
            "[core]\n\tsshCommand = x",
            "[alias]\n\ts = !evil",
            "[include]\n\tpath = x",
            "[filter \"x\"]\n\tclean = evil",
            "[remote \"o\"]\n\turl = ext::sh -c evil",
            "[remote \"o\"]\n\tuploadpack = evil",
            "[remote \"o\"]\n\turl = --upload-pack=evil",
            "[core]\n\teol = x\\\n\tfsmonitor",
            "fsmonitor = evil",
            "[core",
        ] {
            assert!(!for_git(evil), "{evil}");
        }
        assert!(for_mercurial("[paths]\ndefault = /w/x\n"));
        assert!(!for_mercurial("[hooks]\ncommit = evil\n"));
    }
}
