//! The queries, as calls of our tools and as command lines of the peers.

/// The program that we compare with.
#[derive(Clone, Copy)]
pub(super) enum Peer {
    Rg,
    RgFiles,
    Fd,
}

/// A query.
pub(super) struct Query {
    pub(super) what: &'static str,
    /// Whether it runs only on the large tree or only on the small one; `None` for both.
    pub(super) large: Option<bool>,
    /// The tool and its arguments.
    pub(super) ours: (&'static str, &'static str),
    pub(super) peer: Peer,
    pub(super) theirs: &'static [&'static str],
    /// Whether it also runs on a server without watches.
    pub(super) also_unwatched: bool,
}

impl Query {
    const fn also_unwatched(self) -> Query {
        Query { also_unwatched: true, ..self }
    }
}

const LARGE: Option<bool> = Some(true);
const SMALL: Option<bool> = Some(false);

const fn grep(
    what: &'static str,
    large: Option<bool>,
    arguments: &'static str,
    theirs: &'static [&'static str],
) -> Query {
    Query { what, large, ours: ("Grep", arguments), peer: Peer::Rg, theirs, also_unwatched: false }
}

const fn glob(
    what: &'static str,
    large: Option<bool>,
    arguments: &'static str,
    peer: Peer,
    theirs: &'static [&'static str],
) -> Query {
    Query { what, large, ours: ("Glob", arguments), peer, theirs, also_unwatched: false }
}

/// The classes of queries: rare and common words, expressions with and without a literal, case-insensitive,
/// multi-line, lists, counts, order; then names.
pub(super) const QUERIES: &[Query] = &[
    grep(
        "count rare word: rg -c",
        LARGE,
        r#"{"pattern":"PM_RESUME","output_mode":"count"}"#,
        &["-c", "PM_RESUME"],
    )
    .also_unwatched(),
    grep(
        "count word of 3,000 files: rg -c",
        LARGE,
        r#"{"pattern":"EXPORT_SYMBOL_GPL","output_mode":"count"}"#,
        &["-c", "EXPORT_SYMBOL_GPL"],
    ),
    grep(
        "count common words: rg -c",
        LARGE,
        r#"{"pattern":"struct device","output_mode":"count"}"#,
        &["-c", "struct device"],
    ),
    grep(
        "count `return`: rg -c",
        LARGE,
        r#"{"pattern":"return","output_mode":"count"}"#,
        &["-c", "return"],
    ),
    grep(
        "count `[A-Z]+_RESUME`: rg -c",
        LARGE,
        r#"{"pattern":"[A-Z]+_RESUME","output_mode":"count"}"#,
        &["-c", "[A-Z]+_RESUME"],
    ),
    grep(
        "count 4 alternatives: rg -c",
        LARGE,
        r#"{"pattern":"ERR_SYS|PME_TURN_OFF|LINK_REQ_RST|CFG_BME_EVT","output_mode":"count"}"#,
        &["-c", "ERR_SYS|PME_TURN_OFF|LINK_REQ_RST|CFG_BME_EVT"],
    ),
    grep(
        "count without a literal: rg -c",
        LARGE,
        r#"{"pattern":"\\w{5}\\s+\\w{5}\\s+\\w{5}\\s+\\w{5}\\s+\\w{5}","output_mode":"count"}"#,
        &["-c", r"\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}"],
    ),
    grep(
        "count rare word, any case: rg -c -i",
        LARGE,
        r#"{"pattern":"PM_RESUME","-i":true,"output_mode":"count"}"#,
        &["-c", "-i", "PM_RESUME"],
    ),
    grep(
        "count over lines: rg -c -U",
        LARGE,
        r#"{"pattern":"struct file_operations \\w+ = \\{\\n\\s*\\.owner","multiline":true,"output_mode":"count"}"#,
        &["-c", "-U", "--multiline-dotall", r"struct file_operations \w+ = \{\n\s*\.owner"],
    ),
    grep(
        "count two bytes: rg -c",
        LARGE,
        r#"{"pattern":"=\\s*~0","output_mode":"count"}"#,
        &["-c", r"=\s*~0"],
    ),
    grep(
        "count a whole word: rg -c -w",
        LARGE,
        r#"{"pattern":"\\bkmalloc_array\\b","output_mode":"count"}"#,
        &["-c", "-w", "kmalloc_array"],
    ),
    grep(
        "files, by relevance: rg -l",
        LARGE,
        r#"{"pattern":"EXPORT_SYMBOL_GPL"}"#,
        &["-l", "EXPORT_SYMBOL_GPL"],
    ),
    grep(
        "files, by path, all: rg -l --sort path",
        LARGE,
        r#"{"pattern":"PM_RESUME","sort":"path"}"#,
        &["-l", "--sort=path", "PM_RESUME"],
    ),
    grep(
        "lines by path, rare, all: rg --sort path",
        LARGE,
        r#"{"pattern":"PM_RESUME","output_mode":"content"}"#,
        &["--sort=path", "PM_RESUME"],
    ),
    grep(
        "first 100 lines by path: rg --sort path",
        LARGE,
        r#"{"pattern":"struct device","output_mode":"content"}"#,
        &["--sort=path", "struct device"],
    ),
    grep(
        "first 100 lines: rg, all lines",
        LARGE,
        r#"{"pattern":"EXPORT_SYMBOL_GPL","output_mode":"content"}"#,
        &["EXPORT_SYMBOL_GPL"],
    ),
    grep(
        "first 250 lines of `return`: rg, all lines",
        LARGE,
        r#"{"pattern":"return","output_mode":"content","head_limit":250}"#,
        &["return"],
    ),
    grep(
        "no match: rg",
        None,
        r#"{"pattern":"zebra_crossing_xyz"}"#,
        &["-l", "zebra_crossing_[x]yz"],
    ),
    grep(
        "rare word, files: rg -l",
        SMALL,
        r#"{"pattern":"VERSION_CONTROL"}"#,
        &["-l", "VERSION_CONTROL"],
    )
    .also_unwatched(),
    grep(
        "common word, count: rg -c",
        SMALL,
        r#"{"pattern":"fn ","output_mode":"count"}"#,
        &["-c", "fn "],
    ),
    grep(
        "expression, first 100 lines: rg",
        SMALL,
        r#"{"pattern":"pub\\(crate\\) fn \\w+","output_mode":"content"}"#,
        &[r"pub\(crate\) fn \w+"],
    ),
    grep(
        "any case, count: rg -c -i",
        SMALL,
        r#"{"pattern":"error","-i":true,"output_mode":"count"}"#,
        &["-c", "-i", "error"],
    ),
    glob(
        "**/*.rs: rg --files -g",
        None,
        r#"{"pattern":"**/*.rs"}"#,
        Peer::RgFiles,
        &["-g=**/*.rs"],
    ),
    glob("**/*.rs: fd", None, r#"{"pattern":"**/*.rs"}"#, Peer::Fd, &["--glob", "-tf", "*.rs"]),
    // No symlink matches this pattern: Glob lists symlinks to files, ripgrep lists none.
    glob(
        "**/*.rst: rg --files -g",
        LARGE,
        r#"{"pattern":"**/*.rst"}"#,
        Peer::RgFiles,
        &["-g=**/*.rst"],
    )
    .also_unwatched(),
    glob(
        "**/*.rst: rg --files -g --sort modified",
        LARGE,
        r#"{"pattern":"**/*.rst"}"#,
        Peer::RgFiles,
        &["-g=**/*.rst", "--sortr=modified"],
    ),
    glob(
        "**/Makefile: rg --files -g",
        LARGE,
        r#"{"pattern":"**/Makefile"}"#,
        Peer::RgFiles,
        &["-g=**/Makefile"],
    ),
    glob(
        "drivers/net/**/*.h: rg --files -g",
        LARGE,
        r#"{"pattern":"drivers/net/**/*.h"}"#,
        Peer::RgFiles,
        &["-g=drivers/net/**/*.h"],
    ),
    glob(
        "**/*sched*: rg --files -g",
        LARGE,
        r#"{"pattern":"**/*sched*"}"#,
        Peer::RgFiles,
        &["-g=**/*sched*"],
    ),
    glob(
        "**/*.md: rg --files -g",
        SMALL,
        r#"{"pattern":"**/*.md"}"#,
        Peer::RgFiles,
        &["-g=**/*.md"],
    ),
];
