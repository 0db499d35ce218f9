//! Binary files are described, not shown.

use toolcrib_fs::ContentHasher;
use toolcrib_media::{Kind, kind_of};

use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::{Error, ErrorKind};

/// Bytes from which the type is detected.
const HEAD_BYTES: usize = 8 << 10;

/// The type of a file by its first bytes. `None` for text.
pub(super) fn kind(file: &OpenFile) -> Result<Option<Kind>, Error> {
    Ok(kind_of(&file.head(HEAD_BYTES)?))
}

/// The error for a binary file, with its type.
pub(super) fn binary(cx: &Cx<'_>, file: &OpenFile) -> Error {
    let media_type = kind(file).ok().flatten().map(Kind::media_type);
    let what = media_type.map_or(String::new(), |media_type| format!("{media_type}, "));
    let hash = hash(cx, file);
    let hashed = hash.as_ref().map_or(String::new(), |hash| format!(", hash {hash}"));
    let message = format!("{} is not text: {what}{} bytes{hashed}", file.shown(), file.size());
    let mut error = Error::new(ErrorKind::Binary, message)
        .hint("Its bytes are not shown.")
        .with("size", file.size());
    if let Some(media_type) = media_type {
        error = error.with("media_type", media_type);
    }
    match hash {
        Some(hash) => error.with("hash", hash),
        None => error,
    }
}

/// The hash of a file, unless it is too large.
fn hash(cx: &Cx<'_>, file: &OpenFile) -> Option<String> {
    if file.size() > cx.limits().look_bytes {
        return None;
    }
    let mut hasher = ContentHasher::default();
    let mut chunks = file.chunks(cx);
    while let Some(chunk) = chunks.next_chunk().ok()? {
        hasher.feed(chunk);
    }
    Some(hasher.finish().short())
}
