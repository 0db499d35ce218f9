//! A file, symlink or directory with everything beneath it, as edits that remove or move it.

use std::path::PathBuf;

use toolcrib_fs::{Content, Directory, EntryKind, NewMode, ResolvedPath};

use crate::cx::{Cx, EntryChange, FileEdit};
use crate::error::{Error, ErrorKind};

/// Larger trees are left to commands: an edit holds all content in memory.
const MAX_ENTRIES: usize = 20_000;
const MAX_BYTES: usize = 512 << 20;

/// A path with everything beneath it.
pub(super) struct FileTree {
    top: ResolvedPath,
    /// Files and symlinks with their content.
    files: Vec<(ResolvedPath, Content)>,
    /// Directories, parents first.
    directories: Vec<ResolvedPath>,
    bytes: usize,
}

impl FileTree {
    /// Reads all content. Fails if a path in it may not be written.
    pub(super) fn read(cx: &Cx<'_>, top: &ResolvedPath) -> Result<FileTree, Error> {
        let mut tree =
            FileTree { top: top.clone(), files: Vec::new(), directories: Vec::new(), bytes: 0 };
        tree.add(cx, top)?;
        Ok(tree)
    }

    /// Reads several paths, with the same limits for all of them. `None` if there are none.
    pub(super) fn read_all(cx: &Cx<'_>, tops: &[ResolvedPath]) -> Result<Option<FileTree>, Error> {
        let Some((first, others)) = tops.split_first() else { return Ok(None) };
        let mut tree = FileTree::read(cx, first)?;
        for top in others {
            tree.add(cx, top)?;
        }
        Ok(Some(tree))
    }

    fn add(&mut self, cx: &Cx<'_>, top: &ResolvedPath) -> Result<(), Error> {
        let mut pending = vec![top.clone()];
        while let Some(place) = pending.pop() {
            cx.check_cancelled()?;
            cx.require_writable_entry(top, &place)?;
            if let Some(directory) = cx.entry_directory(&place)? {
                let names = self.names_in(cx, &place, &directory)?;
                self.directories.push(place);
                for path in names.into_iter().rev() {
                    pending.push(cx.entry_below(top, &path)?);
                }
                continue;
            }
            let content = cx.entry_content(&place)?;
            let Some(content) = content else { continue };
            self.bytes += content.len();
            if self.bytes > MAX_BYTES {
                return Err(self.too_large(cx));
            }
            self.files.push((place, content));
            if self.count() > MAX_ENTRIES {
                return Err(self.too_large(cx));
            }
        }
        Ok(())
    }

    fn names_in(
        &self,
        cx: &Cx<'_>,
        place: &ResolvedPath,
        directory: &Directory,
    ) -> Result<Vec<PathBuf>, Error> {
        let (mut paths, mut special) = (Vec::new(), None);
        let before = self.files.len() + self.directories.len();
        let listed = directory.each(|name, kind| {
            let path = place.path().join(name);
            if kind == EntryKind::Special {
                special = Some(path.clone());
            }
            paths.push(path);
            before + paths.len() <= MAX_ENTRIES && special.is_none()
        });
        listed.map_err(|error| cx.listing_error(&place.path(), &error))?;
        if let Some(special) = special {
            let shown = cx.show_real(&special);
            let message = format!("{shown} is a device, socket or FIFO");
            return Err(Error::new(ErrorKind::NotRegular, message)
                .hint("Nothing was changed. Use a command."));
        }
        if before + paths.len() > MAX_ENTRIES {
            return Err(self.too_large(cx));
        }
        paths.sort();
        Ok(paths)
    }

    fn too_large(&self, cx: &Cx<'_>) -> Error {
        let message = format!(
            "{} has more than {MAX_ENTRIES} entries or {} MiB",
            cx.show_real(&self.top.path()),
            MAX_BYTES >> 20
        );
        Error::new(ErrorKind::Limit, message).hint("Nothing was changed. Use a command.")
    }

    /// Whether it is a directory that is not empty.
    pub(super) fn has_entries(&self) -> bool {
        !self.directories.is_empty() && self.count() > 1
    }

    /// The number of files and directories.
    pub(super) fn count(&self) -> usize {
        self.files.len() + self.directories.len()
    }

    /// The names, for an approver.
    pub(super) fn names(&self, cx: &Cx<'_>) -> String {
        let files = self.files.iter().map(|(place, _)| place);
        let line = |place: &ResolvedPath| format!("- {}\n", cx.show_real(&place.path()));
        self.directories.iter().chain(files).map(line).collect()
    }

    /// The change that removes it.
    pub(super) fn removal(self) -> EntryChange {
        let remove = |(place, content): (ResolvedPath, Content)| {
            let edit = FileEdit { path: place.path(), was: Some(content), now: None, mode: None };
            (edit, place)
        };
        EntryChange {
            edits: self.files.into_iter().map(remove).collect(),
            unneeded: self.directories,
            needed: Vec::new(),
        }
    }

    /// The change that moves it to a path, where a file with the content `replaces` may be.
    pub(super) fn moved_to(
        self,
        cx: &Cx<'_>,
        to: &ResolvedPath,
        replaces: Option<Content>,
    ) -> Result<EntryChange, Error> {
        let (from, target) = (self.top.path(), to.path());
        let new_path = |place: &ResolvedPath| match place.path().strip_prefix(&from) {
            Ok(rest) if !rest.as_os_str().is_empty() => target.join(rest),
            _ => target.clone(),
        };
        let mut change = EntryChange::default();
        for place in &self.directories {
            let moved = cx.entry_below(to, &new_path(place))?;
            cx.require_writable_entry(to, &moved)?;
            change.needed.push((moved, place.mode()));
        }
        for (place, content) in &self.files {
            let moved = cx.entry_below(to, &new_path(place))?;
            cx.require_writable_entry(to, &moved)?;
            let mode = place.mode().filter(|_| !content.is_link()).map(NewMode::Exactly);
            let edit = FileEdit {
                path: moved.path(),
                was: replaces.clone(),
                now: Some(content.clone()),
                mode,
            };
            change.edits.push((edit, moved));
        }
        let removal = self.removal();
        change.edits.extend(removal.edits);
        change.unneeded = removal.unneeded;
        Ok(change)
    }
}
