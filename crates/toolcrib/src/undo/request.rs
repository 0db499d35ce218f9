//! What a caller wants taken back.

use std::path::{Path, PathBuf};

use toolcrib_policy::Effect;

use crate::cx::Cx;
use crate::error::Error;
use crate::path_access::resolve_any;

/// What a caller wants taken back.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The last so many changes.
    Steps(usize),
    /// The last so many changes of a path, which may mean any of these.
    StepsAt { steps: usize, paths: Vec<PathBuf>, shown: String },
    /// One change, or what it did at a path.
    One { id: u64, at: Option<(Vec<PathBuf>, String)> },
    /// All from one on.
    Since(u64),
}

/// The real paths that a path may mean, the likeliest first, and the path as replies show it: the name itself,
/// which may be a symlink, and what it leads to.
pub(crate) fn real_paths(cx: &Cx<'_>, given: &str) -> Result<(Vec<PathBuf>, String), Error> {
    let given = Path::new(given);
    // Not for reading: a file that is gone is not meant to be another that looks like it.
    let resolve = |path: &Path| resolve_any(cx.runtime(), cx.session(), Effect::Write, path);
    let followed = resolve(given);
    let mut paths = Vec::new();
    if let (Some(parent), Some(name)) = (given.parent(), given.file_name()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        paths.extend(resolve(parent).map(|parent| parent.path().join(name)));
    }
    match followed {
        Ok(place) if !paths.contains(&place.path()) => paths.push(place.path()),
        Err(error) if paths.is_empty() => return Err(error.into()),
        _ => {}
    }
    let shown = paths.first().map(|path| cx.show_real(path)).unwrap_or_default();
    Ok((paths, shown))
}
