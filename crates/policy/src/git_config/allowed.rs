//! The variables that neither run a program nor send git to other files.
//!
//! Whole sections are never allowed, even if all their variables are harmless today: git adds new
//! ones. These are left out on purpose, although they look harmless: `gc.recentObjectsHook`,
//! `fetch.bundleURI`, `pull.twohead` and `branch.*.mergeOptions` (a strategy is a program),
//! `log.showSignature` and formats of logs (`%G?` runs a program that checks signatures),
//! `rebase.instructionFormat` (a line feed in it adds a command to the list), `core.sharedRepository`
//! and `core.protectNTFS` (they take safeguards away), `help.autoCorrect` (it runs another command).

use std::collections::HashSet;
use std::path::{Component, Path};

use super::parse::Variable;
use super::url;

/// What is known of a configuration besides one of its variables.
pub(super) struct Surroundings<'a> {
    /// The remotes that have an address. Git takes any other name of a remote for a path.
    remotes: HashSet<&'a [u8]>,
    /// The number of directories between the workspace's root and the file.
    depth: usize,
}

/// Names of variables, with the values that are harmless.
struct Allowed {
    section: &'static str,
    has_subsection: bool,
    names: &'static [&'static str],
    values: Values,
}

enum Values {
    Any,
    OneOf(&'static [&'static str]),
    /// The address of a repository.
    Address,
    /// A remote by its name or its address.
    Remote,
    /// A directory in the workspace.
    Directory,
}

use Values::{Address, Any, Directory, OneOf, Remote};

const fn plain(section: &'static str, names: &'static [&'static str]) -> Allowed {
    Allowed { section, has_subsection: false, names, values: Any }
}

const fn each(section: &'static str, names: &'static [&'static str]) -> Allowed {
    Allowed { section, has_subsection: true, names, values: Any }
}

const NO: Values = OneOf(&["false", "no", "off", "0"]);

#[rustfmt::skip]
const ALLOWED: &[Allowed] = &[
    plain("core", &[
        "abbrev", "autocrlf", "bare", "bigfilethreshold", "checkstat", "commitgraph", "compression",
        "deltabasecachelimit", "eol", "filemode", "filesreflocktimeout", "fsync", "fsyncmethod",
        "fsyncobjectfiles", "hidedotfiles", "ignorecase", "lockfilepid", "logallrefupdates",
        "loosecompression", "maxtreedepth", "multipackindex", "notesref", "packedgitlimit",
        "packedgitwindowsize", "packedrefstimeout", "precomposeunicode", "preloadindex", "quotepath",
        "repositoryformatversion", "safecrlf", "sparsecheckout", "sparsecheckoutcone", "splitindex",
        "symlinks", "trustctime", "untrackedcache", "warnambiguousrefs", "whitespace",
    ]),
    // A submodule's configuration has `../../../sub`.
    Allowed { values: Directory, ..plain("core", &["worktree"]) },
    each("remote", &[
        "fetch", "followremotehead", "gh-resolved", "mirror", "partialclonefilter", "promisor", "prune",
        "prunetags", "push", "skipdefaultupdate", "skipfetchall", "tagopt",
    ]),
    Allowed { values: Address, ..each("remote", &["pushurl", "url"]) },
    Allowed { values: Remote, ..plain("remote", &["pushdefault"]) },
    each("branch", &["description", "merge", "rebase"]),
    Allowed { values: Remote, ..each("branch", &["pushremote", "remote"]) },
    plain("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    plain("user", &["email", "name", "signingkey", "useconfigonly"]),
    plain("author", &["email", "name"]),
    plain("committer", &["email", "name"]),
    plain("init", &["defaultbranch"]),
    each("submodule", &["active", "branch", "fetchrecursesubmodules", "ignore", "shallow"]),
    Allowed { values: Address, ..each("submodule", &["url"]) },
    // Any other value is a command.
    Allowed {
        values: OneOf(&["checkout", "merge", "none", "rebase"]),
        ..each("submodule", &["update"])
    },
    plain("submodule", &["active", "fetchjobs", "propagatebranches", "recurse"]),
    plain("extensions", &[
        "compatobjectformat", "noop", "objectformat", "preciousobjects", "relativeworktrees",
        "worktreeconfig",
    ]),
    // Later versions of git also take a path behind the name.
    Allowed { values: OneOf(&["files", "reftable"]), ..plain("extensions", &["refstorage"]) },
    Allowed { values: Remote, ..plain("extensions", &["partialclone"]) },
    plain("push", &[
        "autosetupremote", "default", "followtags", "negotiate", "usebitmaps", "useforceifincludes",
    ]),
    plain("pull", &["autostash", "ff", "rebase"]),
    plain("fetch", &[
        "all", "followremotehead", "fsckobjects", "negotiationalgorithm", "output", "parallel", "prune",
        "prunetags", "recursesubmodules", "showforcedupdates", "unpacklimit", "writecommitgraph",
    ]),
    plain("merge", &[
        "autostash", "conflictstyle", "defaulttoupstream", "directoryrenames", "ff", "log",
        "renamelimit", "renames", "renormalize", "stat", "verbosity",
    ]),
    plain("rebase", &[
        "abbreviatecommands", "autosquash", "autostash", "forkpoint", "missingcommitscheck",
        "rebasemerges", "stat", "updaterefs",
    ]),
    plain("rerere", &["autoupdate", "enabled"]),
    plain("gc", &[
        "aggressivedepth", "aggressivewindow", "auto", "autodetach", "autopacklimit",
        "bigpackthreshold", "cruftpacks", "logexpiry", "maxcruftsize", "packrefs", "pruneexpire",
        "reflogexpire", "reflogexpireunreachable", "rerereresolved", "rerereunresolved",
        "worktreepruneexpire", "writecommitgraph",
    ]),
    each("gc", &["reflogexpire", "reflogexpireunreachable"]),
    plain("maintenance", &["auto", "autodetach"]),
    plain("advice", &[
        "addembeddedrepo", "addemptypathspec", "addignoredfile", "ambiguousfetchrefspec", "amworkdir",
        "checkoutambiguousremotebranchname", "commitbeforemerge", "defaultbranchname", "detachedhead",
        "divergenthead", "diverging", "fetchshowforcedupdates", "forcedeletebranch", "graftfiledeprecated",
        "ignoredhook", "implicitidentity", "mergeconflict", "nestedtag", "pushalreadyexists",
        "pushfetchfirst", "pushneedsforce", "pushnonffcurrent", "pushnonffmatching", "pushrefneedsupdate",
        "pushunqualifiedrefname", "pushupdaterejected", "rebasetodoerror", "refsyntax", "resethooks",
        "resetnorefresh", "resetnorefreshwarning", "resolveconflict", "rmhints", "sequencerinuse",
        "setupstreamfailure", "skippedcherrypicks", "sparseindexexpanded", "statusaheadbehindwarning",
        "statushints", "statusuoption", "submodulealternateerrorstrategydie",
        "submodulemergeconflict", "submodulesnotupdated", "suggestdetachinghead",
        "updatesparsepath", "waitingforeditor", "worktreeaddorphan",
    ]),
    plain("color", &[
        "advice", "blame", "branch", "decorate", "diff", "grep", "interactive", "pager", "push",
        "remote", "showbranch", "status", "transport", "ui",
    ]),
    plain("column", &["branch", "clean", "status", "tag", "ui"]),
    plain("status", &[
        "aheadbehind", "branch", "displaycommentprefix", "relativepaths", "renamelimit", "renames",
        "short", "showstash", "showuntrackedfiles", "submodulesummary",
    ]),
    plain("log", &[
        "abbrevcommit", "date", "decorate", "diffmerges", "excludedecoration", "follow", "graphcolors",
        "initialdecorationset", "mailmap", "showroot",
    ]),
    plain("diff", &[
        "algorithm", "autorefreshindex", "colormoved", "colormovedws", "context", "dirstat",
        "dstprefix", "ignoresubmodules", "indentheuristic", "interhunkcontext", "mnemonicprefix",
        "noprefix", "relative", "renamelimit", "renames", "srcprefix", "statgraphwidth",
        "statnamewidth", "submodule", "suppressblankempty", "wordregex", "wserrorhighlight",
    ]),
    plain("commit", &["cleanup", "status", "verbose"]),
    // To sign is to run a program.
    Allowed { values: NO, ..plain("commit", &["gpgsign"]) },
    Allowed { values: NO, ..plain("tag", &["forcesignannotated", "gpgsign"]) },
    Allowed { values: NO, ..plain("push", &["gpgsign"]) },
    plain("tag", &["sort"]),
    plain("checkout", &["guess", "thresholdforparallelism", "workers"]),
    plain("i18n", &["commitencoding", "logoutputencoding"]),
    plain("feature", &["experimental", "manyfiles"]),
    plain("index", &[
        "recordendofindexentries", "recordoffsettable", "skiphash", "sparse", "threads", "version",
    ]),
    plain("pack", &[
        "allowpackreuse", "compression", "deltacachelimit", "deltacachesize", "depth", "indexversion",
        "packsizelimit", "readreverseindex", "threads", "usebitmapboundarytraversal", "usebitmaps",
        "usesparse", "window", "windowmemory", "writebitmaphashcache", "writebitmaplookuptable",
        "writereverseindex",
    ]),
    plain("lfs", &["repositoryformatversion"]),
    each("lfs", &["access", "locksverify"]),
];

impl<'a> Surroundings<'a> {
    pub(super) fn of(variables: &'a [Variable], depth: usize) -> Self {
        let name = |variable: &'a Variable| {
            let has_address = variable.section == "remote"
                && variable.name == "url"
                && variable.value.as_ref().is_some_and(|value| !value.is_empty());
            variable.subsection.as_deref().filter(|_| has_address)
        };
        Surroundings { remotes: variables.iter().filter_map(name).collect(), depth }
    }

    /// Whether a variable is known to be harmless.
    pub(super) fn allow(&self, variable: &Variable) -> bool {
        ALLOWED.iter().any(|row| {
            row.section == variable.section
                && row.has_subsection == variable.subsection.is_some()
                && row.names.contains(&variable.name.as_str())
                && self.allow_value(&row.values, variable.value.as_deref())
        })
    }

    fn allow_value(&self, values: &Values, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return matches!(values, Any) };
        match values {
            Any => true,
            OneOf(words) => words.iter().any(|word| word.as_bytes() == value),
            Address => url::has_own_transport(value),
            Remote => {
                value == b"." || self.remotes.contains(value) || url::has_own_transport(value)
            }
            Directory => std::str::from_utf8(value).is_ok_and(|path| self.is_inside(path)),
        }
    }

    /// Whether a path from the file's directory stays in the workspace.
    fn is_inside(&self, path: &str) -> bool {
        let mut depth = self.depth;
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                // Behind a name, `..` may leave the target of a symlink.
                Component::ParentDir if depth > 0 && depth <= self.depth => depth -= 1,
                Component::Normal(_) => depth = usize::MAX,
                _ => return false,
            }
        }
        !path.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_lower_case_and_in_order() {
        for row in ALLOWED {
            let is_lower = |name: &str| !name.chars().any(|letter| letter.is_ascii_uppercase());
            assert!(row.names.iter().all(|name| is_lower(name)), "{}", row.section);
            assert!(row.names.is_sorted(), "{}: {:?}", row.section, row.names);
        }
    }

    #[test]
    fn a_working_tree_lies_in_the_workspace() {
        let surroundings = |depth| Surroundings { remotes: HashSet::new(), depth };
        for (depth, path) in [(3, "../../../sub"), (1, ".."), (1, "./x"), (4, "../../../../a/b")] {
            assert!(surroundings(depth).is_inside(path), "{depth} {path}");
        }
        for (depth, path) in [(1, "../../x"), (3, "/x"), (3, ""), (3, "a/../../x"), (0, "..")] {
            assert!(!surroundings(depth).is_inside(path), "{depth} {path}");
        }
    }
}
