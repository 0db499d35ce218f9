//! Reads an image, scaled to fit into a reply.

use toolcrib_media::{ImageError, ImageLimits};

use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::{Error, ErrorKind};
use crate::helper::{acquire_decoder, scaled_picture};
use crate::reply::{Picture, Reply};

pub(super) fn read(cx: &Cx<'_>, file: &OpenFile, media_type: &str) -> Result<Reply, Error> {
    let limits = cx.limits();
    let _place = acquire_decoder(cx)?;
    let bytes = file.read_all(limits.picture_bytes).map_err(|error| {
        error.hint("Images of this size are not supported. Make a smaller copy and read that.")
    })?;
    let fit = ImageLimits {
        side: limits.picture_side,
        bytes: limits.shown_picture_bytes,
        pixels: limits.picture_pixels,
    };
    let shown =
        scaled_picture(cx, &bytes, fit)?.map_err(|error| broken(cx, file, media_type, error))?;
    let (width, height) = shown.original;
    let mut text = format!("{}: {media_type}, {width}x{height}", file.shown());
    if shown.turned {
        text += ", rotated upright";
    }
    let is_remade = shown.remade.is_some();
    if is_remade {
        let (width, height) = shown.shown;
        text += &format!(", shown as {} of {width}x{height}", shown.format.media_type());
    }
    if is_remade && media_type == "image/gif" {
        text += " (its first frame)";
    }
    Ok(Reply::new(text + "\n")
        .with("file_path", file.shown())
        .with("media_type", media_type)
        .with("size", file.size())
        .with("width", width)
        .with("height", height)
        .with("shown_width", shown.shown.0)
        .with("shown_height", shown.shown.1)
        .picture(Picture {
            media_type: shown.format.media_type(),
            bytes: shown.remade.unwrap_or(bytes),
        }))
}

fn broken(cx: &Cx<'_>, file: &OpenFile, media_type: &str, error: ImageError) -> Error {
    let shown = file.shown();
    match error {
        ImageError::TooLarge(width, height) => {
            let pixels = u64::from(width) * u64::from(height);
            let most = cx.limits().picture_pixels;
            let message =
                format!("{shown} is {width}x{height}: {pixels} pixels; the limit is {most}");
            Error::new(ErrorKind::TooLarge, message).hint(
                "Make a smaller copy with a command (convert, magick, ffmpeg, sips) and read that.",
            )
        }
        ImageError::Unknown | ImageError::Broken(_) => {
            let why = match error {
                ImageError::Broken(why) => why,
                _ => "it contains no image".to_owned(),
            };
            let message = format!("{shown} looks like {media_type}, but cannot be decoded: {why}");
            Error::new(ErrorKind::Unsupported, message)
                .hint("The file is damaged or has another format. Its bytes are not shown.")
        }
    }
}
