//! Images scaled to fit, in a helper process.

use std::time::Duration;

use toolcrib_exec::WorkerLimits;
use toolcrib_media::{ImageError, ImageLimits, Picture, picture};

use super::{PICTURE, bad_answer, run_task};
use crate::cx::Cx;
use crate::error::Error;

/// Memory for the program, the file and the result.
const BASE_MEMORY_BYTES: u64 = 256 << 20;

/// Maximum bytes per pixel while the image is decoded, rotated and scaled.
const PIXEL_BYTES: u64 = 24;

fn limits(fit: ImageLimits) -> WorkerLimits {
    WorkerLimits {
        memory_bytes: fit.pixels.saturating_mul(PIXEL_BYTES).saturating_add(BASE_MEMORY_BYTES),
        cpu_seconds: 20,
        wall: Duration::from_secs(30),
        output_bytes: fit.bytes.saturating_add(64 << 10),
    }
}

pub(super) fn parse(words: &[&str]) -> Option<ImageLimits> {
    let [side, bytes, pixels] = words else { return None };
    Some(ImageLimits {
        side: side.parse().ok()?,
        bytes: bytes.parse().ok()?,
        pixels: pixels.parse().ok()?,
    })
}

/// Runs in the helper process. Returns a line that describes the image, then its bytes if it was re-encoded.
pub(super) fn run(bytes: &[u8], fit: ImageLimits) -> Result<Vec<u8>, String> {
    let mut made = picture(bytes, fit);
    let remade = made.as_mut().ok().and_then(|made| made.remade.take());
    let mut answer = serde_json::to_vec(&(made, remade.is_some())).map_err(|e| e.to_string())?;
    answer.push(b'\n');
    answer.extend(remade.unwrap_or_default());
    Ok(answer)
}

/// Decodes an image and scales it to fit.
pub(crate) fn scaled_picture(
    cx: &Cx<'_>,
    bytes: &[u8],
    fit: ImageLimits,
) -> Result<Result<Picture, ImageError>, Error> {
    let numbers = [fit.side.to_string(), fit.bytes.to_string(), fit.pixels.to_string()];
    let words = std::iter::once(PICTURE.to_owned()).chain(numbers).collect();
    let answer = run_task(cx, "picture", words, limits(fit), bytes).map_err(|error| {
        error.hint(
            "It is decoded in a separate process with limits. Make a smaller copy and read that.",
        )
    })?;
    let end = answer.iter().position(|&byte| byte == b'\n').unwrap_or(answer.len());
    let (described, rest) = answer.split_at(end);
    let (made, remade): (Result<Picture, ImageError>, bool) =
        serde_json::from_slice(described).map_err(|error| bad_answer(&error))?;
    let bytes = remade.then(|| rest.get(1..).unwrap_or_default().to_vec());
    Ok(made.map(|made| Picture { remade: bytes, ..made }))
}
