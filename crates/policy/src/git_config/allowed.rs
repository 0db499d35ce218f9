//! The allow-list of variables that neither run a program nor point git to other files.
//!
//! Whole sections are never allowed, even if all their variables are harmless today: git adds new
//! ones. These are excluded on purpose, although they look harmless: `gc.recentObjectsHook`,
//! `fetch.bundleURI`, `pull.twohead` and `branch.*.mergeOptions` (a strategy is a program),
//! `log.showSignature` and log formats (`%G?` runs a program to verify signatures),
//! `rebase.instructionFormat` (a line feed in it adds a command to the list), `core.sharedRepository`
//! and `core.protectNTFS` (they disable safeguards), `help.autoCorrect` (it runs another command).

use std::collections::HashSet;
use std::path::{Component, Path};

use super::parse::Variable;
use super::url;

/// Properties of the whole configuration that the check of one variable needs.
pub(super) struct ConfigContext<'a> {
    /// The remotes with a URL. Git treats any other remote name as a path.
    remotes: HashSet<&'a [u8]>,
    /// The number of directories between the workspace's root and the file.
    depth: usize,
}

/// Names of variables and their harmless values.
struct Allowed {
    section: &'static str,
    has_subsection: bool,
    names: &'static [&'static str],
    values: AllowedValues,
}

enum AllowedValues {
    Any,
    OneOf(&'static [&'static str]),
    /// The URL of a repository.
    Address,
    /// The name or URL of a remote.
    Remote,
    /// A directory inside the workspace.
    Directory,
}

use AllowedValues::{Address, Any, Directory, OneOf, Remote};

const fn in_section(section: &'static str, names: &'static [&'static str]) -> Allowed {
    Allowed { section, has_subsection: false, names, values: Any }
}

const fn in_subsection(section: &'static str, names: &'static [&'static str]) -> Allowed {
    Allowed { section, has_subsection: true, names, values: Any }
}

const NO: AllowedValues = OneOf(&["false", "no", "off", "0"]);

#[rustfmt::skip]
const ALLOWED: &[Allowed] = &[
    in_section("core", &[
        "abbrev", "autocrlf", "bare", "bigfilethreshold", "checkstat", "commitgraph", "compression",
        "deltabasecachelimit", "eol", "filemode", "filesreflocktimeout", "fsync", "fsyncmethod",
        "fsyncobjectfiles", "hidedotfiles", "ignorecase", "lockfilepid", "logallrefupdates",
        "loosecompression", "maxtreedepth", "multipackindex", "notesref", "packedgitlimit",
        "packedgitwindowsize", "packedrefstimeout", "precomposeunicode", "preloadindex", "quotepath",
        "repositoryformatversion", "safecrlf", "sparsecheckout", "sparsecheckoutcone", "splitindex",
        "symlinks", "trustctime", "untrackedcache", "warnambiguousrefs", "whitespace",
    ]),
    // A submodule's configuration has `../../../sub`.
    Allowed { values: Directory, ..in_section("core", &["worktree"]) },
    in_subsection("remote", &[
        "fetch", "followremotehead", "gh-resolved", "mirror", "partialclonefilter", "promisor", "prune",
        "prunetags", "push", "skipdefaultupdate", "skipfetchall", "tagopt",
    ]),
    Allowed { values: Address, ..in_subsection("remote", &["pushurl", "url"]) },
    Allowed { values: Remote, ..in_section("remote", &["pushdefault"]) },
    in_subsection("branch", &["description", "merge", "rebase"]),
    Allowed { values: Remote, ..in_subsection("branch", &["pushremote", "remote"]) },
    in_section("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    in_section("user", &["email", "name", "signingkey", "useconfigonly"]),
    in_section("author", &["email", "name"]),
    in_section("committer", &["email", "name"]),
    in_section("init", &["defaultbranch"]),
    in_subsection("submodule", &["active", "branch", "fetchrecursesubmodules", "ignore", "shallow"]),
    Allowed { values: Address, ..in_subsection("submodule", &["url"]) },
    // Any other value is a command.
    Allowed {
        values: OneOf(&["checkout", "merge", "none", "rebase"]),
        ..in_subsection("submodule", &["update"])
    },
    in_section("submodule", &["active", "fetchjobs", "propagatebranches", "recurse"]),
    in_section("extensions", &[
        "compatobjectformat", "noop", "objectformat", "preciousobjects", "relativeworktrees",
        "worktreeconfig",
    ]),
    // Later versions of git also accept a path after the name.
    Allowed { values: OneOf(&["files", "reftable"]), ..in_section("extensions", &["refstorage"]) },
    Allowed { values: Remote, ..in_section("extensions", &["partialclone"]) },
    in_section("push", &[
        "autosetupremote", "default", "followtags", "negotiate", "usebitmaps", "useforceifincludes",
    ]),
    in_section("pull", &["autostash", "ff", "rebase"]),
    in_section("fetch", &[
        "all", "followremotehead", "fsckobjects", "negotiationalgorithm", "output", "parallel", "prune",
        "prunetags", "recursesubmodules", "showforcedupdates", "unpacklimit", "writecommitgraph",
    ]),
    in_section("merge", &[
        "autostash", "conflictstyle", "defaulttoupstream", "directoryrenames", "ff", "log",
        "renamelimit", "renames", "renormalize", "stat", "verbosity",
    ]),
    in_section("rebase", &[
        "abbreviatecommands", "autosquash", "autostash", "forkpoint", "missingcommitscheck",
        "rebasemerges", "stat", "updaterefs",
    ]),
    in_section("rerere", &["autoupdate", "enabled"]),
    in_section("gc", &[
        "aggressivedepth", "aggressivewindow", "auto", "autodetach", "autopacklimit",
        "bigpackthreshold", "cruftpacks", "logexpiry", "maxcruftsize", "packrefs", "pruneexpire",
        "reflogexpire", "reflogexpireunreachable", "rerereresolved", "rerereunresolved",
        "worktreepruneexpire", "writecommitgraph",
    ]),
    in_subsection("gc", &["reflogexpire", "reflogexpireunreachable"]),
    in_section("maintenance", &["auto", "autodetach"]),
    in_section("advice", &[
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
    in_section("color", &[
        "advice", "blame", "branch", "decorate", "diff", "grep", "interactive", "pager", "push",
        "remote", "showbranch", "status", "transport", "ui",
    ]),
    in_section("column", &["branch", "clean", "status", "tag", "ui"]),
    in_section("status", &[
        "aheadbehind", "branch", "displaycommentprefix", "relativepaths", "renamelimit", "renames",
        "short", "showstash", "showuntrackedfiles", "submodulesummary",
    ]),
    in_section("log", &[
        "abbrevcommit", "date", "decorate", "diffmerges", "excludedecoration", "follow", "graphcolors",
        "initialdecorationset", "mailmap", "showroot",
    ]),
    in_section("diff", &[
        "algorithm", "autorefreshindex", "colormoved", "colormovedws", "context", "dirstat",
        "dstprefix", "ignoresubmodules", "indentheuristic", "interhunkcontext", "mnemonicprefix",
        "noprefix", "relative", "renamelimit", "renames", "srcprefix", "statgraphwidth",
        "statnamewidth", "submodule", "suppressblankempty", "wordregex", "wserrorhighlight",
    ]),
    in_section("commit", &["cleanup", "status", "verbose"]),
    // Signing runs a program.
    Allowed { values: NO, ..in_section("commit", &["gpgsign"]) },
    Allowed { values: NO, ..in_section("tag", &["forcesignannotated", "gpgsign"]) },
    Allowed { values: NO, ..in_section("push", &["gpgsign"]) },
    in_section("tag", &["sort"]),
    in_section("checkout", &["guess", "thresholdforparallelism", "workers"]),
    in_section("i18n", &["commitencoding", "logoutputencoding"]),
    in_section("feature", &["experimental", "manyfiles"]),
    in_section("index", &[
        "recordendofindexentries", "recordoffsettable", "skiphash", "sparse", "threads", "version",
    ]),
    in_section("pack", &[
        "allowpackreuse", "compression", "deltacachelimit", "deltacachesize", "depth", "indexversion",
        "packsizelimit", "readreverseindex", "threads", "usebitmapboundarytraversal", "usebitmaps",
        "usesparse", "window", "windowmemory", "writebitmaphashcache", "writebitmaplookuptable",
        "writereverseindex",
    ]),
    in_section("lfs", &["repositoryformatversion"]),
    in_subsection("lfs", &["access", "locksverify"]),
];

impl<'a> ConfigContext<'a> {
    pub(super) fn of(variables: &'a [Variable], depth: usize) -> Self {
        let name = |variable: &'a Variable| {
            let has_address = variable.section == "remote"
                && variable.name == "url"
                && variable.value.as_ref().is_some_and(|value| !value.is_empty());
            variable.subsection.as_deref().filter(|_| has_address)
        };
        ConfigContext { remotes: variables.iter().filter_map(name).collect(), depth }
    }

    /// Whether a variable is known to be harmless.
    pub(super) fn allows(&self, variable: &Variable) -> bool {
        ALLOWED.iter().any(|row| {
            row.section == variable.section
                && row.has_subsection == variable.subsection.is_some()
                && row.names.contains(&variable.name.as_str())
                && self.allows_value(&row.values, variable.value.as_deref())
        })
    }

    fn allows_value(&self, values: &AllowedValues, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return matches!(values, Any) };
        match values {
            Any => true,
            OneOf(words) => words.iter().any(|word| word.as_bytes() == value),
            Address => url::uses_builtin_transport(value),
            Remote => {
                value == b"." || self.remotes.contains(value) || url::uses_builtin_transport(value)
            }
            Directory => std::str::from_utf8(value).is_ok_and(|path| self.is_inside(path)),
        }
    }

    /// Whether a path relative to the file's directory stays inside the workspace.
    fn is_inside(&self, path: &str) -> bool {
        let mut depth = self.depth;
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                // After a name, `..` may leave the target of a symlink.
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
    fn names_are_lower_case_and_sorted() {
        for row in ALLOWED {
            let is_lower = |name: &str| !name.chars().any(|c| c.is_ascii_uppercase());
            assert!(row.names.iter().all(|name| is_lower(name)), "{}", row.section);
            assert!(row.names.is_sorted(), "{}: {:?}", row.section, row.names);
        }
    }

    #[test]
    fn a_working_tree_must_be_inside_the_workspace() {
        let context = |depth| ConfigContext { remotes: HashSet::new(), depth };
        for (depth, path) in [(3, "../../../sub"), (1, ".."), (1, "./x"), (4, "../../../../a/b")] {
            assert!(context(depth).is_inside(path), "{depth} {path}");
        }
        for (depth, path) in [(1, "../../x"), (3, "/x"), (3, ""), (3, "a/../../x"), (0, "..")] {
            assert!(!context(depth).is_inside(path), "{depth} {path}");
        }
    }
}
