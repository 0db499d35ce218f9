//! Requests to one file or directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use toolcrib::backend::{Backend, ListedEntry, PathKind, WriteOptions};
use toolcrib::{Cancel, Error, ErrorKind};

use super::response::{self, RestResponse};
use crate::error_status::RestError;
use crate::timestamp::rfc3339;
use crate::workspace::Workspace;
use crate::workspace_path::{BadPath, workspace_path};

/// Symlinks of one listing whose targets are looked up. Each is an operation of its own.
const MAX_FOLLOWED_LINKS: usize = 1_000;

/// A file or directory.
pub(super) struct Files {
    workspace: Arc<Workspace>,
    path: PathBuf,
}

impl Files {
    /// The file at a path of a URL, after `/v1/files`. Separators may be encoded.
    pub(super) fn of(workspace: Arc<Workspace>, in_url: &str) -> Result<Files, RestError> {
        let encoded = in_url.strip_prefix('/').unwrap_or(in_url);
        let given = percent_decode_str(encoded).decode_utf8();
        let given = given.map_err(|_| RestError::invalid("the path is not UTF-8"))?;
        let path = workspace_path(workspace.roots(), &given).map_err(|problem| match problem {
            BadPath::Escapes => RestError::escapes(),
            BadPath::Invalid => RestError::invalid("the path cannot be the name of a file"),
        })?;
        Ok(Files { workspace, path })
    }

    /// The content of a file, or the entries of a directory.
    pub(super) fn get(&self, cancel: &Cancel) -> Result<RestResponse, RestError> {
        self.workspace.with_backend(cancel, |backend| match self.kind(&backend)?.0 {
            PathKind::Directory => self.listing(&backend),
            _ => Ok(response::content(backend.open(&self.path).map_err(missing_below_file)?)),
        })
    }

    /// Whether a file or directory exists, and its size.
    pub(super) fn head(&self, cancel: &Cancel) -> Result<RestResponse, RestError> {
        self.workspace.with_backend(cancel, |backend| {
            Ok(match self.kind(&backend)? {
                (PathKind::Directory, _) => response::listing_head(),
                (_, size) => response::content_head(size),
            })
        })
    }

    /// Replaces a file.
    pub(super) fn put(
        &self,
        content: Vec<u8>,
        mode: u32,
        cancel: &Cancel,
    ) -> Result<RestResponse, RestError> {
        let options = WriteOptions { mode: Some(mode), ..WriteOptions::default() };
        let write = |backend: Backend<'_>| backend.write(&self.path, content, options);
        self.workspace.with_backend(cancel, write)?;
        Ok(response::no_content())
    }

    /// Removes a file or directory. A root is emptied instead: it is usually a mounted volume.
    pub(super) fn delete(
        &self,
        recursive: bool,
        cancel: &Cancel,
    ) -> Result<RestResponse, RestError> {
        self.workspace.with_backend(cancel, |backend| {
            if !self.workspace.roots().contains(&self.path) {
                backend.remove(&self.path, recursive, false).map_err(missing_below_file)?;
                return Ok(response::no_content());
            }
            if !recursive {
                let message =
                    "the workspace itself cannot be removed; recursive=true removes its entries";
                return Err(RestError::new(StatusCode::CONFLICT, "CONFLICT", message));
            }
            let listing = backend.list(&self.path)?;
            if listing.is_truncated {
                return Err(too_many_entries());
            }
            let entries = listing.entries.iter().map(|entry| self.path.join(&entry.name));
            backend.remove_all(entries.collect())?;
            Ok(response::no_content())
        })
    }

    /// The kind and size of the file.
    fn kind(&self, backend: &Backend<'_>) -> Result<(PathKind, u64), RestError> {
        let stat = backend.stat(&self.path, true).map_err(missing_below_file)?;
        Ok((stat.kind, stat.size))
    }

    fn listing(&self, backend: &Backend<'_>) -> Result<RestResponse, RestError> {
        let listing = backend.list(&self.path)?;
        if listing.is_truncated {
            return Err(too_many_entries());
        }
        let mut links = 0;
        let entries = listing.entries.iter().filter_map(|entry| match entry.kind {
            PathKind::File => entry_json(entry, "file"),
            PathKind::Directory => entry_json(entry, "directory"),
            PathKind::Symlink => {
                links += 1;
                (links <= MAX_FOLLOWED_LINKS).then(|| self.followed(backend, entry)).flatten()
            }
            PathKind::Other => None,
        });
        let entries: Vec<Value> = entries.collect();
        Ok(response::json(&json!({"path": self.shown(), "entries": entries})))
    }

    /// The target of a symlink. `None` if it is not in the workspace.
    fn followed(&self, backend: &Backend<'_>, link: &ListedEntry) -> Option<Value> {
        let target = backend.stat(self.path.join(&link.name), true).ok()?;
        let kind = match target.kind {
            PathKind::File => "file",
            PathKind::Directory => "directory",
            _ => return None,
        };
        let (size, mode, modified_ns) = (target.size, target.mode, target.modified_ns);
        entry_json(&ListedEntry { size, mode, modified_ns, ..link.clone() }, kind)
    }

    /// The path in the workspace, which is `/` there.
    fn shown(&self) -> String {
        let roots = self.workspace.roots();
        let relative = roots.first().and_then(|root| self.path.strip_prefix(root).ok());
        let shown = relative.map_or(self.path.clone(), |relative| Path::new("/").join(relative));
        shown.to_string_lossy().into_owned()
    }
}

/// An entry of a listing. A name that is not UTF-8 could not be used in a request.
fn too_many_entries() -> RestError {
    let message = "the directory has too many entries; use a command";
    RestError::new(StatusCode::PAYLOAD_TOO_LARGE, "RESOURCE_EXHAUSTED", message)
}

fn entry_json(entry: &ListedEntry, kind: &str) -> Option<Value> {
    Some(json!({
        "name": entry.name.to_str()?,
        "size": entry.size,
        "type": kind,
        "modified_at": rfc3339(entry.modified_ns),
        "mode": format!("{:04o}", entry.mode & 0o777),
    }))
}

/// Below a file there is nothing, so a path there does not exist.
fn missing_below_file(error: Error) -> RestError {
    match error.kind() {
        ErrorKind::NotADirectory => {
            RestError::new(StatusCode::NOT_FOUND, "NOT_FOUND", error.text())
        }
        _ => error.into(),
    }
}
