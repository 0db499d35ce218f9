//! The names of a path, split once for all rules that it is compared with.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use crate::command::ShellContext;
use crate::protected_names::normalized_name;

/// The place that a path pattern starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Roots,
    Home,
    FilesystemRoot,
}

/// A path that rules are compared with.
pub(super) struct PathNames<'a> {
    path: &'a Path,
    context: &'a ShellContext,
    written: Beneath<'a>,
    normalized: Beneath<'a>,
}

/// The names beneath each base. Most rules start from the same one, so the others are seldom needed.
#[derive(Default)]
struct Beneath<'a> {
    roots: OnceCell<Vec<Names<'a>>>,
    home: OnceCell<Vec<Names<'a>>>,
    filesystem_root: OnceCell<Vec<Names<'a>>>,
}

/// The names of a path beneath one directory.
type Names<'a> = Vec<Cow<'a, str>>;

impl<'a> PathNames<'a> {
    pub(super) fn new(path: &'a Path, context: &'a ShellContext) -> PathNames<'a> {
        PathNames { path, context, written: Beneath::default(), normalized: Beneath::default() }
    }

    /// The names beneath each directory that the base means, if the path is beneath it.
    pub(super) fn beneath(&self, base: Base, normalizes: bool) -> &[Names<'a>] {
        let beneath = if normalizes { &self.normalized } else { &self.written };
        let names = |directory: &Path| self.names(directory, normalizes);
        match base {
            Base::Roots => beneath
                .roots
                .get_or_init(|| self.context.roots.iter().filter_map(|root| names(root)).collect()),
            Base::Home => beneath
                .home
                .get_or_init(|| self.context.home.iter().filter_map(|home| names(home)).collect()),
            Base::FilesystemRoot => {
                beneath.filesystem_root.get_or_init(|| names(Path::new("/")).into_iter().collect())
            }
        }
    }

    fn names(&self, directory: &Path, normalizes: bool) -> Option<Names<'a>> {
        let rest = self.path.strip_prefix(directory).ok()?;
        let name = |name: Cow<'a, str>| match name {
            name if !normalizes => name,
            Cow::Borrowed(name) => normalized_name(name),
            Cow::Owned(name) => Cow::Owned(normalized_name(&name).into_owned()),
        };
        Some(rest.iter().map(|written| name(written.to_string_lossy())).collect())
    }
}
