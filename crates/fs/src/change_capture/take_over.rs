//! Records what a command has changed so far in files that another program is about to write.
//!
//! The difference at the end of the command would include what the other program wrote, and an undo would remove
//! it. So the command's change of such a file ends with the content that the other program finds.

use std::path::{Path, PathBuf};

use super::limits::{CaptureClass, NotKept};
use super::path_state::{PathState, WritablePath};
use super::{
    Action, Before, CapturedPath, ChangeCapture, Classify, Others, Settling, State, has_writer,
};
use crate::journal::FileChange;

/// A path that another program is about to write.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// The real path.
    pub path: &'a Path,
    /// Whether everything beneath it is renamed with it.
    pub whole: bool,
}

/// What writes a path that a command has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A tool, which records its change in the journal.
    Tool,
    /// Another command, which has stored the current content.
    Command,
}

/// The change of a file that ended when another program wrote it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) class: CaptureClass,
    pub(super) action: Action,
    pub(super) outcome: Result<FileChange, NotKept>,
}

impl Finished {
    /// The change in the note of a crashed process.
    pub(super) fn noted(change: FileChange) -> Finished {
        let (class, action) = (CaptureClass::Tracked, Action::of(&change));
        Finished { class, action, outcome: Ok(change) }
    }
}

impl State {
    /// Forgets a path that the command has not changed.
    fn end(&mut self, path: &Path) {
        self.touched.remove(path);
        if let Some(note) = &mut self.note {
            // If this fails, the change is only wrong if the process dies before it is settled.
            let _ = note.add_ended(path);
        }
    }
}

impl ChangeCapture {
    /// Reports that `writer` is about to write these paths. The command's changes of them end here. If it writes such a
    /// path again, that is a separate change. If other commands write the path again, too, that is not stored. Returns
    /// whether [`ChangeCapture::settle`] must wait until the tool has recorded its change.
    pub fn take_over(
        &self,
        written: &[Written<'_>],
        writer: Writer,
        settling: &Settling<'_>,
    ) -> bool {
        let mut state = self.state.lock();
        let captured = self.captured_at(&mut state, written, settling.class);
        let mut is_pending = false;
        for path in captured {
            is_pending |= self.take_over_one(&mut state, path, writer, settling);
        }
        is_pending
    }

    /// Returns whether the entry stays, because a tool is the writer: [`ChangeCapture::settle`] divides the change at the
    /// tool's, which the journal has by then.
    fn take_over_one(
        &self,
        state: &mut State,
        path: PathBuf,
        writer: Writer,
        settling: &Settling<'_>,
    ) -> bool {
        let is_finished = state.finished.contains_key(&path);
        let State { touched, usage, .. } = &mut *state;
        let Some(captured) = touched.get_mut(&path) else { return false };
        let Some(target) = WritablePath::of(&self.workspace, &path) else { return false };
        let now = target.state();
        let is_directory = matches!(captured.before, Before::Directory(_))
            || matches!(now, PathState::Directory(_));
        if is_directory {
            return false;
        }
        if captured.is_of_another_file(&now) {
            touched.remove(&path);
            return false;
        }
        // A writer that is open continues with the file, if that is still there.
        let open = match &now {
            PathState::File { stamp } if has_writer(&target, &now, settling) => Some(*stamp),
            _ => None,
        };
        let class = captured.class;
        let compared = self.compare(&target, &captured.before, now, class, usage);
        let is_recorded = writer == Writer::Tool && self.journal.is_some();
        if compared.is_none() && open.is_none() {
            // An operation that was reported may still be pending.
            if !is_recorded {
                state.end(&path);
            }
            return is_recorded;
        }
        if is_finished {
            if !is_recorded {
                captured.others = Others::WritePath;
            }
            return is_recorded;
        }
        let after = match &compared {
            Some((_, Ok(change))) => change.after.map_or(Before::Nothing, Before::Kept),
            Some((_, Err(not_kept))) => Before::NotStored(open, not_kept.clone()),
            None => std::mem::replace(&mut captured.before, Before::Nothing),
        };
        touched.remove(&path);
        if let Some(stamp) = open {
            let others = Others::WriteFile(stamp.identity);
            let rest = CapturedPath { others, ..CapturedPath::new(after, class, false) };
            touched.insert(path.clone(), rest);
        }
        if let Some(note) = &mut state.note {
            // If this fails, the change is only wrong if the process dies before it is settled.
            let _ = match &compared {
                Some((_, Ok(change))) => note.add_finished(change.clone()),
                _ => note.add_ended(&path),
            };
        }
        if let Some((action, outcome)) = compared {
            state.finished.insert(path, Finished { class, action, outcome });
        }
        false
    }

    /// The captured paths among those that another program writes. Remembers those in new directories.
    fn captured_at(
        &self,
        state: &mut State,
        written: &[Written<'_>],
        class: Classify<'_>,
    ) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        if state.touched.is_empty() {
            return paths;
        }
        for Written { path, whole } in written {
            if state.touched.contains_key(*path) {
                paths.push((*path).to_owned());
            } else if self.is_in_new_directory(state, path) {
                let came_with_directory =
                    path.ancestors().skip(1).any(|above| {
                        state.touched.get(above).is_some_and(|captured| captured.whole)
                    }) && !state.by_others.contains(*path);
                if came_with_directory {
                    let captured = CapturedPath::new(Before::Nothing, class(path, false), false);
                    state.touched.insert((*path).to_owned(), captured);
                    paths.push((*path).to_owned());
                }
                state.by_others.insert((*path).to_owned());
            }
            if *whole {
                let beneath = state.touched.range(path.to_path_buf()..).map(|(path, _)| path);
                let beneath = beneath.take_while(|beneath| beneath.starts_with(path));
                paths.extend(beneath.filter(|beneath| beneath != path).cloned());
            }
        }
        paths
    }

    /// Touches what others have written in a new directory that is now renamed.
    pub(super) fn touch_files_of_others(
        &self,
        state: &mut State,
        directory: &Path,
        class: Classify<'_>,
    ) {
        let beneath = state.by_others.range(directory.to_owned()..);
        let beneath = beneath.take_while(|path| path.starts_with(directory));
        let paths: Vec<PathBuf> = beneath.cloned().collect();
        for path in paths {
            if let Some(target) = WritablePath::of(&self.workspace, &path) {
                let state_now = target.state();
                let class = class(&path, matches!(state_now, PathState::Directory(_)));
                self.touch_one(state, (&target, state_now), class, false);
            }
        }
    }
}
