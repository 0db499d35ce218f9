//! The options with which git commands only read.
//!
//! Excluded on purpose: `--output`, `--ext-diff`, `--textconv`, `--no-index`, `--show-signature`,
//! `--contents`, `--open-files-in-pager`, and all options that name a file to read (`-O`, `-S` of blame,
//! `--exclude-from`).

/// A git subcommand that only reads with these options.
pub(super) struct Subcommand {
    pub(super) name: &'static str,
    /// Long options without a value, or with a value after `=`.
    pub(super) long: &'static [&'static [&'static str]],
    /// Long options whose value may be the next word.
    pub(super) with_value: &'static [&'static [&'static str]],
    /// Short options without a value, which may be combined.
    pub(super) letters: &'static str,
    /// Short options with a joined value.
    pub(super) letters_with_value: &'static str,
    /// Whether a number is an option, as in `-20`.
    pub(super) takes_number: bool,
}

const fn subcommand(name: &'static str, letters: &'static str, long: Lists) -> Subcommand {
    Subcommand { name, long, with_value: &[], letters, letters_with_value: "", takes_number: false }
}

type Lists = &'static [&'static [&'static str]];

/// Options for the display of changes.
#[rustfmt::skip]
const DIFF: &[&str] = &[
    "abbrev", "binary", "cc", "check", "color", "color-moved", "color-words", "compact-summary",
    "cumulative", "diff-filter", "dirstat", "exit-code", "find-copies", "find-copies-harder",
    "find-renames", "full-index", "function-context", "histogram", "ignore-all-space",
    "ignore-blank-lines", "ignore-cr-at-eol", "ignore-space-at-eol", "ignore-space-change",
    "ignore-submodules", "indent-heuristic", "ita-invisible-in-index", "minimal", "name-only",
    "name-status", "no-color", "no-color-moved", "no-ext-diff", "no-indent-heuristic", "no-patch",
    "no-prefix", "no-relative", "no-renames", "no-textconv", "numstat", "patch", "patch-with-raw",
    "patch-with-stat", "patience", "pickaxe-all", "pickaxe-regex", "quiet", "raw", "relative",
    "shortstat", "stat", "submodule", "summary", "text", "word-diff",
];

#[rustfmt::skip]
const DIFF_WITH_VALUE: &[&str] = &[
    "diff-algorithm", "dst-prefix", "find-object", "inter-hunk-context",
    "line-prefix", "src-prefix", "unified", "word-diff-regex", "ws-error-highlight",
];

/// Options for the selection and display of commits.
#[rustfmt::skip]
const LOG: &[&str] = &[
    "abbrev-commit", "all", "all-match", "ancestry-path", "author-date-order", "basic-regexp",
    "boundary", "branches", "cherry", "cherry-mark", "cherry-pick", "children", "clear-decorations",
    "date-order", "decorate", "dense", "extended-regexp", "first-parent", "fixed-strings", "follow",
    "format", "full-history", "graph", "invert-grep", "left-only", "left-right", "log-size",
    "mailmap", "merges", "no-abbrev-commit", "no-decorate", "no-mailmap", "no-max-parents",
    "no-merges", "no-min-parents", "no-notes", "no-walk", "not", "notes", "oneline", "parents",
    "perl-regexp", "pretty", "reflog", "regexp-ignore-case", "relative-date", "remotes", "reverse",
    "right-only", "root", "show-pulls", "simplify-by-decoration", "simplify-merges", "source",
    "sparse", "tags", "topo-order", "use-mailmap", "walk-reflogs",
];

#[rustfmt::skip]
const LOG_WITH_VALUE: &[&str] = &[
    "after", "author", "before", "committer", "date", "decorate-refs", "decorate-refs-exclude",
    "encoding", "exclude", "glob", "grep", "grep-reflog", "max-age", "max-count", "max-parents",
    "min-age", "min-parents", "since", "since-as-filter", "skip", "until",
];

/// A subcommand that shows commits.
pub(super) const ANY_LOG: Subcommand = Subcommand {
    with_value: &[DIFF_WITH_VALUE, LOG_WITH_VALUE],
    letters: "abcDEFgimpPqrRstuwWz",
    letters_with_value: "BCGLMnSU",
    takes_number: true,
    ..subcommand("log", "", &[DIFF, LOG])
};

/// A subcommand that shows changes.
#[rustfmt::skip]
pub(super) const ANY_DIFF: Subcommand = Subcommand {
    with_value: &[DIFF_WITH_VALUE],
    letters: "abcDmpRrstuwWz",
    letters_with_value: "BCGMSUl",
    ..subcommand(
        "diff",
        "",
        &[DIFF, &[
            "base", "cached", "first-parent", "include-untracked", "merge-base", "ours", "staged",
            "theirs",
        ]],
    )
};

#[rustfmt::skip]
pub(super) const BLAME: Subcommand = Subcommand {
    letters: "bcefMlnpstw",
    letters_with_value: "CL",
    with_value: &[&["date", "ignore-rev", "since"]],
    ..subcommand(
        "blame",
        "",
        &[&[
            "abbrev", "color-by-age", "color-lines", "first-parent", "incremental", "line-porcelain",
            "minimal", "no-progress", "porcelain", "root", "score-debug", "show-email", "show-name",
            "show-number", "show-stats",
        ]],
    )
};

#[rustfmt::skip]
pub(super) const GREP: Subcommand = Subcommand {
    letters: "acEFGhHiIlLnopPqrvwWz",
    letters_with_value: "ABCem",
    with_value: &[&[
        "after-context", "before-context", "context", "max-count", "max-depth", "threads",
    ]],
    takes_number: true,
    ..subcommand(
        "grep",
        "",
        &[&[
            "all-match", "and", "basic-regexp", "break", "cached", "color", "column", "count",
            "extended-regexp", "files-with-matches", "files-without-match", "fixed-strings",
            "full-name", "function-context", "heading", "ignore-case", "invert-match", "line-number",
            "name-only", "no-color", "no-recursive", "not", "null", "only-matching", "or",
            "perl-regexp", "quiet", "recurse-submodules", "recursive", "show-function", "text",
            "untracked", "word-regexp",
        ]],
    )
};

/// Options of `git branch` and `git tag` that only list.
#[rustfmt::skip]
pub(super) const LIST_OPTIONS: &[&str] = &[
    "-a", "-i", "-r", "-v", "-vv", "-av", "-avv", "-ra", "-rv", "-rvv", "-va", "-vva", "-n", "--all",
    "--color", "--column", "--ignore-case", "--no-color", "--no-column", "--remotes",
    "--show-current", "--verbose",
];

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Subcommand] = &[
    ANY_LOG,
    ANY_DIFF,
    Subcommand { name: "show", ..ANY_LOG },
    Subcommand { name: "whatchanged", ..ANY_LOG },
    Subcommand {
        name: "shortlog",
        long: &[LOG, &["email", "numbered", "summary"]],
        letters: "cenPEFis",
        ..ANY_LOG
    },
    Subcommand {
        name: "rev-list",
        long: &[LOG, &["cherry-mark", "count", "header", "objects", "timestamp"]],
        ..ANY_LOG
    },
    Subcommand {
        name: "range-diff",
        long: &[DIFF, &["dual-color", "left-only", "no-dual-color", "no-notes", "notes", "right-only"]],
        with_value: &[DIFF_WITH_VALUE, &["creation-factor"]],
        ..ANY_DIFF
    },
    Subcommand { name: "diff-tree", long: &[DIFF, &["always", "no-commit-id", "root"]], ..ANY_DIFF },
    Subcommand { name: "diff-index", long: &[DIFF, &["cached", "merge-base"]], ..ANY_DIFF },
    Subcommand { name: "diff-files", long: &[DIFF, &["base", "ours", "theirs"]], ..ANY_DIFF },
    Subcommand {
        letters_with_value: "u",
        ..subcommand(
            "status",
            "bsvz",
            &[&[
                "ahead-behind", "branch", "column", "find-renames", "ignore-submodules", "ignored",
                "long", "no-ahead-behind", "no-column", "no-renames", "null", "porcelain", "renames",
                "short", "show-stash", "untracked-files", "verbose",
            ]],
        )
    },
    Subcommand {
        with_value: &[&["candidates", "exclude", "match"]],
        ..subcommand(
            "describe",
            "",
            &[&[
                "abbrev", "all", "always", "contains", "debug", "dirty", "exact-match", "first-parent",
                "long", "tags",
            ]],
        )
    },
    subcommand(
        "rev-parse",
        "q",
        &[&[
            "abbrev-ref", "absolute-git-dir", "all", "branches", "git-common-dir", "git-dir",
            "is-bare-repository", "is-inside-git-dir", "is-inside-work-tree",
            "is-shallow-repository", "path-format", "quiet", "remotes", "short", "show-cdup",
            "show-object-format", "show-prefix", "show-ref-format",
            "show-superproject-working-tree", "show-toplevel", "symbolic", "symbolic-full-name",
            "tags", "verify",
        ]],
    ),
    Subcommand {
        letters_with_value: "x",
        with_value: &[&["exclude", "with-tree"]],
        ..subcommand(
            "ls-files",
            "cdfikmostuvz",
            &[&[
                "abbrev", "cached", "deduplicate", "deleted", "directory", "eol", "error-unmatch",
                "exclude-standard", "full-name", "ignored", "killed", "modified",
                "no-empty-directory", "others", "recurse-submodules", "resolve-undo", "stage",
                "unmerged",
            ]],
        )
    },
    subcommand(
        "ls-tree",
        "dlrtz",
        &[&["abbrev", "full-name", "full-tree", "long", "name-only", "name-status", "object-only"]],
    ),
    subcommand("cat-file", "epst", &[&["batch-all-objects", "batch-check", "buffer", "unordered"]]),
    Subcommand {
        with_value: &[&["exclude", "refs"]],
        ..subcommand("name-rev", "", &[&["all", "always", "name-only", "no-undefined", "tags"]])
    },
    subcommand(
        "merge-base",
        "a",
        &[&["all", "fork-point", "independent", "is-ancestor", "octopus"]],
    ),
    subcommand(
        "show-ref",
        "dsq",
        &[&["abbrev", "branches", "dereference", "hash", "head", "heads", "quiet", "tags", "verify"]],
    ),
    Subcommand {
        with_value: &[&["count", "exclude"]],
        ..subcommand(
            "for-each-ref",
            "",
            &[&[
                "color", "contains", "format", "ignore-case", "merged", "no-contains", "no-merged",
                "points-at", "sort",
            ]],
        )
    },
    subcommand("count-objects", "vH", &[&["human-readable", "verbose"]]),
    subcommand("check-ignore", "nqvz", &[&["non-matching", "quiet", "verbose"]]),
    subcommand("cherry", "v", &[&["abbrev", "verbose"]]),
];
