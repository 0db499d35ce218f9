//! The result of a walk: directories with their names in order, and the pruned entries.

mod candidate;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use toolcrib_fs::{Directory, Stamp};

pub use self::candidate::Candidate;
use crate::cached_directory::CachedDirectory;
use crate::cached_doc_id::{CachedDocId, CachedDocIdVersion};
use crate::doc_id::DocId;
use crate::doc_map::{DocMap, DocMapState};
use crate::file_id::FileId;
use crate::ignore_rules::{IgnoreFiles, RuleScope};

/// The files of a tree. A directory holds its names in one buffer, so that a file costs its name and sixteen
/// bytes.
#[derive(Debug, Default)]
pub struct Listing {
    /// Every directory but the first is an entry of an earlier one.
    pub(crate) directories: Arc<Vec<Arc<ListedDirectory>>>,
    /// The directory where the listing begins.
    pub(crate) top: u32,
    /// Whether the walk finished before its deadline.
    pub complete: bool,
    /// Whether its directories are the cached ones of the whole root.
    pub(crate) is_cached: bool,
    /// Derived values, perhaps computed by an earlier call.
    pub(crate) summary: Arc<ListingSummary>,
}

/// Derived values that stay valid as long as no directory changes.
#[derive(Debug, Default)]
pub(crate) struct ListingSummary {
    /// Files and symlinks, in path order.
    entries: OnceLock<Arc<[FileId]>>,
    /// Files without symlinks, in path order.
    files: OnceLock<Arc<[FileId]>>,
    pruned: OnceLock<Pruned>,
    /// The files by their cached ids.
    pub(crate) doc_map: DocMapState,
}

impl ListingSummary {
    /// A copy, for a new listing with the same files and the same cached ids.
    pub(crate) fn copied(&self) -> ListingSummary {
        ListingSummary {
            entries: self.entries.clone(),
            files: self.files.clone(),
            pruned: self.pruned.clone(),
            doc_map: self.doc_map.copied(),
        }
    }
}

/// One directory of a listing.
#[derive(Debug, Default)]
pub(crate) struct ListedDirectory {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// Whether its name, or a directory name above it within the walk, begins with a dot.
    pub(crate) hidden: bool,
    pub(crate) names: Vec<u8>,
    /// In name order.
    pub(crate) entries: Vec<Entry>,
    pub(crate) pruned: Pruned,
    /// The stat fingerprint just before it was read. `None` if it was racy.
    pub(crate) stamp: Option<Stamp>,
    /// The rules that it inherits, and the rules that apply in it.
    pub(crate) inherited_rules: RuleScope,
    pub(crate) rules: RuleScope,
    /// Its ignore files, with their stat fingerprints. A repository need not have an exclude file.
    pub(crate) ignore_files: IgnoreFiles,
    pub(crate) ignore_stamps: Vec<(Option<Stamp>, PathBuf)>,
    /// It no longer exists, and no entry refers to it.
    pub(crate) gone: bool,
    /// Device and inode.
    pub(crate) identity: Option<(u64, u64)>,
    /// What the listing cache knows about it.
    pub(crate) cache: CachedDirectory,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    start: u32,
    length: u16,
    pub(crate) kind: ListedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedKind {
    File,
    Symlink,
    /// Position of the directory in the listing.
    Directory(u32),
}

/// Whether there are at least `least` files, symlinks and directories.
pub(crate) fn has_at_least(directories: &[Arc<ListedDirectory>], least: u64) -> bool {
    let mut count = 0;
    let mut counts = directories.iter().map(|listed| {
        count += listed.entries.len() as u64;
        count
    });
    least == 0 || counts.any(|count| count >= least)
}

/// Invalidates everything that is known about files. Watches stay.
pub(crate) fn invalidate_all(directories: &[Arc<ListedDirectory>]) {
    directories.iter().for_each(|listed| listed.cache.watch.invalidate(&listed.cache.doc_ids));
}

/// The entries that a walk left out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Number of files that are ignored by ignore files or by default.
    pub ignored_files: u64,
    /// Number of ignored directories. They were not entered.
    pub ignored_directories: u64,
    /// The first ignored paths. Directories end with a slash.
    pub ignored_names: Vec<PathBuf>,
    /// Number of directories that could not be read.
    pub unreadable: u64,
    /// The first of them.
    pub unreadable_names: Vec<PathBuf>,
    /// Number of directories whose path is longer than the system limit.
    pub too_deep: u64,
}

/// Number of pruned paths that are named.
pub(crate) const MAX_NAMED: usize = 5;

impl Pruned {
    /// Number of ignored files and directories.
    pub fn ignored(&self) -> u64 {
        self.ignored_files + self.ignored_directories
    }

    fn add(&mut self, other: &Pruned) {
        self.ignored_files += other.ignored_files;
        self.ignored_directories += other.ignored_directories;
        self.unreadable += other.unreadable;
        self.too_deep += other.too_deep;
        add_names(&mut self.ignored_names, &other.ignored_names);
        add_names(&mut self.unreadable_names, &other.unreadable_names);
    }
}

fn add_names(names: &mut Vec<PathBuf>, more: &[PathBuf]) {
    let room = MAX_NAMED - names.len().min(MAX_NAMED);
    names.extend(more.iter().take(room).cloned());
}

impl ListedDirectory {
    pub(crate) fn push(&mut self, name: &OsStr, kind: ListedKind) {
        let start = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        self.names.extend_from_slice(name.as_bytes());
        self.entries.push(Entry { start, length, kind });
    }

    pub(crate) fn name(&self, entry: Entry) -> &OsStr {
        let start = entry.start as usize;
        OsStr::from_bytes(&self.names[start..start + usize::from(entry.length)])
    }

    pub(crate) fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| self.name(*a).cmp(self.name(*b)));
        self.entries = entries;
    }

    /// Creates a slot for each entry. If `old` is the same directory, its positions are kept: it was watched
    /// while it was listed.
    pub(crate) fn make_slots(&mut self, old: Option<&ListedDirectory>) {
        let Some(old) = old.filter(|old| old.identity.is_some() && old.identity == self.identity)
        else {
            self.cache.doc_ids = self.entries.iter().map(|_| CachedDocId::default()).collect();
            return;
        };
        self.cache.watch = old.cache.watch.copied();
        self.cache.watch.set_current();
        let copied = |entry: &Entry| {
            let slot =
                old.slot_by_name(self.name(*entry)).filter(|_| entry.kind == ListedKind::File);
            slot.map_or_else(CachedDocId::default, CachedDocId::copied)
        };
        self.cache.doc_ids = self.entries.iter().map(copied).collect();
    }

    /// Stats a file. Also returns the slot version from before, if the result may be stored.
    pub(crate) fn stat_entry(
        &self,
        directory: &Directory,
        entry: usize,
    ) -> Option<(Stamp, Option<CachedDocIdVersion>)> {
        // The order matters: a change from here on changes the version.
        let version = self.cache.doc_ids.get(entry).map(CachedDocId::version);
        let has_active_viewer = self.cache.watch.watch().is_some();
        let stamp = directory.stamp_of(self.name(*self.entries.get(entry)?))?;
        // A file with several names could be changed through a name that is not watched.
        Some((stamp, version.filter(|_| has_active_viewer && !stamp.is_shared)))
    }

    /// The slot of a file.
    pub(crate) fn slot_by_name(&self, name: &OsStr) -> Option<&CachedDocId> {
        self.position(name).and_then(|at| self.cache.doc_ids.get(at))
    }

    /// Clears the cached id of a file. Returns the number of its entry.
    pub(crate) fn clear_slot(&self, name: &OsStr) -> Option<u32> {
        let at = self.position(name)?;
        self.cache.doc_ids.get(at)?.clear();
        u32::try_from(at).ok()
    }

    /// Whether it is the same directory as `other` and has the same entries, each with the same number.
    pub(crate) fn has_same_entries(&self, other: &ListedDirectory) -> bool {
        let same = |(one, two): (&Entry, &Entry)| {
            one.kind == two.kind && self.name(*one) == other.name(*two)
        };
        self.identity.is_some()
            && self.identity == other.identity
            && (self.gone, self.hidden, &self.path) == (other.gone, other.hidden, &other.path)
            && self.pruned == other.pruned
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(same)
    }

    /// The position in the listing of a subdirectory.
    pub(crate) fn directory_by_name(&self, name: &OsStr) -> Option<u32> {
        match self.entries[self.position(name)?].kind {
            ListedKind::Directory(at) => Some(at),
            _ => None,
        }
    }

    /// Whether it has an entry of this name.
    pub(crate) fn contains(&self, name: &OsStr) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &OsStr) -> Option<usize> {
        self.entries.binary_search_by(|entry| self.name(*entry).cmp(name)).ok()
    }

    /// Writes the path of an entry, relative to the root, into `path`.
    pub(crate) fn path_of(&self, entry: Entry, path: &mut Vec<u8>) {
        path.clear();
        path.extend_from_slice(self.path.as_os_str().as_bytes());
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(self.name(entry).as_bytes());
    }
}

impl Listing {
    /// The pruned entries of all directories.
    pub fn pruned(&self) -> Pruned {
        self.summary.pruned.get_or_init(|| self.sum_pruned()).clone()
    }

    fn sum_pruned(&self) -> Pruned {
        let mut of: Vec<&ListedDirectory> =
            self.directories_below_top().filter(|of| of.pruned != Pruned::default()).collect();
        of.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut pruned = Pruned::default();
        of.iter().for_each(|of| pruned.add(&of.pruned));
        pruned
    }

    /// A listing of one file. `path` is relative to the root.
    pub fn of_file(path: &Path) -> Listing {
        let mut directory = ListedDirectory {
            path: path.parent().unwrap_or(Path::new("")).to_owned(),
            ..ListedDirectory::default()
        };
        directory.push(path.file_name().unwrap_or_default(), ListedKind::File);
        Listing {
            directories: Arc::new(vec![Arc::new(directory)]),
            top: 0,
            complete: true,
            is_cached: false,
            summary: Arc::default(),
        }
    }

    /// The number of files and symlinks.
    pub fn count(&self) -> usize {
        self.entries().len()
    }

    /// The files and symlinks for which `wanted` returns true, in path order, component by component. A
    /// directory is skipped as a whole if `may_have` returns false for its names, which are concatenated
    /// without separators.
    pub fn choose(
        &self,
        may_have: impl Fn(&[u8]) -> bool,
        mut wanted: impl FnMut(&mut Candidate<'_>) -> bool,
    ) -> Vec<FileId> {
        let (mut path, mut chosen) = (Vec::new(), Vec::new());
        let top = self.directories.get(self.top as usize);
        let top_bytes = top.map_or(0, |top| top.path.as_os_str().len());
        for files in self.entries().chunk_by(|one, next| one.directory == next.directory) {
            let directory = &self.directories[files[0].directory as usize];
            if !may_have(&directory.names) {
                continue;
            }
            for file in files {
                let entry = directory.entries[file.entry as usize];
                if wanted(&mut Candidate::new(directory, entry, top_bytes, &mut path)) {
                    chosen.push(*file);
                }
            }
        }
        chosen
    }

    /// All files in path order, without symlinks.
    pub fn files(&self) -> Arc<[FileId]> {
        let without_symlinks = || {
            let entries = self.entries();
            if entries.iter().any(|file| self.is_link(*file)) {
                entries.iter().copied().filter(|file| !self.is_link(*file)).collect()
            } else {
                entries.clone()
            }
        };
        self.summary.files.get_or_init(without_symlinks).clone()
    }

    /// Whether these are all files of the cached listing of a whole root.
    pub(crate) fn are_all_cached(&self, files: &[FileId]) -> bool {
        // Comparing the slices by address takes no time, and only `files` returns this one.
        let are_all = |all: &Arc<[FileId]>| std::ptr::eq(all.as_ref(), files);
        self.is_cached && self.top == 0 && self.summary.files.get().is_some_and(are_all)
    }

    /// The cached id of a file in the index.
    pub(crate) fn cached_doc_id(&self, file: FileId) -> Option<DocId> {
        let doc_ids = &self.directories[file.directory as usize].cache.doc_ids;
        doc_ids.get(file.entry as usize).and_then(CachedDocId::get)
    }

    /// Makes the map from cached ids to files.
    pub(crate) fn make_doc_map(&self) {
        let doc_map = &self.summary.doc_map;
        let version = doc_map.version();
        let entry_counts = self.directories.iter().map(|listed| listed.entries.len());
        let map = DocMap::new(&self.files(), entry_counts, |file| self.cached_doc_id(file));
        doc_map.store(version, map);
    }

    fn entries(&self) -> &Arc<[FileId]> {
        self.summary.entries.get_or_init(|| {
            let mut entries = Vec::new();
            self.visit_in_order(|directory, entry| entries.push(FileId { directory, entry }));
            entries.into()
        })
    }

    /// The first `most` directories for which `wanted` returns true. Paths are relative to the root.
    pub fn choose_directories(
        &self,
        most: usize,
        mut wanted: impl FnMut(&Path) -> bool,
    ) -> Vec<PathBuf> {
        let top = &self.directories[self.top as usize].path;
        self.directories_below_top()
            .filter(|directory| directory.path != *top && wanted(&directory.path))
            .take(most)
            .map(|directory| directory.path.clone())
            .collect()
    }

    /// The path of a file, relative to the root.
    pub fn path(&self, file: FileId) -> PathBuf {
        let directory = &self.directories[file.directory as usize];
        directory.path.join(self.name(file))
    }

    /// The name of a file.
    pub fn name(&self, file: FileId) -> &OsStr {
        let directory = &self.directories[file.directory as usize];
        directory.name(directory.entries[file.entry as usize])
    }

    /// The path of a file's directory, relative to the root.
    pub fn directory_of(&self, file: FileId) -> &Path {
        &self.directories[file.directory as usize].path
    }

    /// Whether it is a symlink.
    pub fn is_link(&self, file: FileId) -> bool {
        let directory = &self.directories[file.directory as usize];
        directory.entries[file.entry as usize].kind == ListedKind::Symlink
    }

    pub(crate) fn directories_below_top(&self) -> impl Iterator<Item = &ListedDirectory> {
        let top = self.directories.get(self.top as usize).map(|top| top.path.as_path());
        self.directories.iter().map(Arc::as_ref).filter(move |listed| {
            !listed.gone && (self.top == 0 || top.is_some_and(|top| listed.path.starts_with(top)))
        })
    }

    /// Visits every file and symlink in path order.
    fn visit_in_order(&self, mut visit: impl FnMut(u32, u32)) {
        let first = self.directories.get(self.top as usize);
        let mut open: Vec<(u32, usize)> = Vec::from_iter(first.map(|_| (self.top, 0)));
        while let Some((at, next)) = open.last_mut() {
            let at = *at;
            let directory = &self.directories[at as usize];
            let Some(&entry) = directory.entries.get(*next) else {
                open.pop();
                continue;
            };
            let index = u32::try_from(*next).unwrap_or(u32::MAX);
            *next += 1;
            match entry.kind {
                ListedKind::Directory(child) => open.push((child, 0)),
                _ => visit(at, index),
            }
        }
    }
}
