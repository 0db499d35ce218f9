//! Pictures, made to fit into what a model takes: upright, no larger than it looks at, and really a
//! picture to its last row. One that is not would spoil every later turn of a conversation.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use serde::{Deserialize, Serialize};

/// What a picture may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Pixels on its longer side, as it is given out.
    pub side: u32,
    /// Bytes, as it is given out.
    pub bytes: usize,
    /// Pixels that are decoded, as the file's header says them.
    pub pixels: u64,
}

/// A picture that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// What its bytes are.
    pub format: PictureFormat,
    /// The picture, if it was made anew (of one that moves, its first frame); otherwise it is what was given.
    #[serde(skip)]
    pub remade: Option<Vec<u8>>,
    /// Width and height that the file has, before it is turned upright.
    pub original: (u32, u32),
    /// Width and height as it is given out.
    pub shown: (u32, u32),
    /// Whether it had to be turned or mirrored to be upright.
    pub turned: bool,
}

/// The formats that models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PictureFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    WebP,
}

impl PictureFormat {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            PictureFormat::Png => "image/png",
            PictureFormat::Jpeg => "image/jpeg",
            PictureFormat::Gif => "image/gif",
            PictureFormat::WebP => "image/webp",
        }
    }
}

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageError {
    /// It is none of the formats that can be shown.
    Unknown,
    /// It says that it is so wide and so high, which is too much to decode.
    TooLarge(u32, u32),
    /// It cannot be decoded to its end.
    Broken(String),
}

/// Quality of JPEGs that are made anew: what is lost is not seen.
const JPEG_QUALITY: u8 = 85;

/// Bytes that a pixel of a decoded picture takes, at most.
const PIXEL_BYTES: u64 = 16;

/// What a decoder needs besides, for tables and compressed parts.
const DECODER_BYTES: u64 = 64 << 20;

/// Makes a picture fit, which may mean to leave it as it is. It is decoded in any case.
pub fn picture(bytes: &[u8], limits: ImageLimits) -> Result<Picture, ImageError> {
    let (decoded, orientation, image) = decode(bytes, limits)?;
    let original = (image.width(), image.height());
    let turned = orientation != Orientation::NoTransforms;
    let fits = original.0.max(original.1) <= limits.side && bytes.len() <= limits.bytes;
    if let (true, false, Some(format)) = (fits, turned, shown_as_it_is(decoded)) {
        return Ok(Picture { format, remade: None, original, shown: original, turned });
    }
    let mut image = image;
    image.apply_orientation(orientation);
    if image.width().max(image.height()) > limits.side {
        image = image.resize(limits.side, limits.side, FilterType::Triangle);
    }
    let (image, format, bytes) = encode(image, decoded, limits.bytes)?;
    let shown = (image.width(), image.height());
    Ok(Picture { format, remade: Some(bytes), original, shown, turned })
}

fn decode(
    bytes: &[u8],
    limits: ImageLimits,
) -> Result<(ImageFormat, Orientation, DynamicImage), ImageError> {
    let broken = |error: image::ImageError| ImageError::Broken(error.to_string());
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| ImageError::Broken(error.to_string()))?;
    let format = reader.format().ok_or(ImageError::Unknown)?;
    let mut decoding = Limits::default();
    decoding.max_alloc = Some(limits.pixels.saturating_mul(PIXEL_BYTES) + DECODER_BYTES);
    reader.limits(decoding);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > limits.pixels {
        return Err(ImageError::TooLarge(width, height));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    Ok((format, orientation, image))
}

/// The same format, if models take it as it is.
fn shown_as_it_is(format: ImageFormat) -> Option<PictureFormat> {
    match format {
        ImageFormat::Png => Some(PictureFormat::Png),
        ImageFormat::Jpeg => Some(PictureFormat::Jpeg),
        ImageFormat::Gif => Some(PictureFormat::Gif),
        ImageFormat::WebP => Some(PictureFormat::WebP),
        _ => None,
    }
}

/// The picture in as many bytes as it may have, with their format: without loss if it had none,
/// as a JPEG if that is too much, and smaller if that is too.
fn encode(
    mut image: DynamicImage,
    format: ImageFormat,
    most: usize,
) -> Result<(DynamicImage, PictureFormat, Vec<u8>), ImageError> {
    let broken = |error: image::ImageError| ImageError::Broken(error.to_string());
    loop {
        if format != ImageFormat::Jpeg {
            let mut bytes = Vec::new();
            image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(broken)?;
            if bytes.len() <= most {
                return Ok((image, PictureFormat::Png, bytes));
            }
        }
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
        image.to_rgb8().write_with_encoder(encoder).map_err(broken)?;
        let smaller = |side: u32| (side / 4 * 3).max(1);
        let (width, height) = (smaller(image.width()), smaller(image.height()));
        if bytes.len() <= most || (width, height) == (1, 1) {
            return Ok((image, PictureFormat::Jpeg, bytes));
        }
        image = image.resize_exact(width, height, FilterType::Triangle);
    }
}
