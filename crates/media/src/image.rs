//! Prepares images for a model: upright, within its size limits, and decodable to the last row. An invalid
//! image would make every later turn of a conversation fail.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use serde::{Deserialize, Serialize};

/// Limits of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Pixels on the longer side of the result.
    pub side: u32,
    /// Bytes of the result.
    pub bytes: usize,
    /// Pixels to decode, according to the file header.
    pub pixels: u64,
}

/// An image that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The format of its bytes.
    pub format: PictureFormat,
    /// The encoded image, if it had to be converted (the first frame of an animation). `None` if the input
    /// can be used as it is.
    #[serde(skip)]
    pub remade: Option<Vec<u8>>,
    /// Width and height of the file, before it is turned upright.
    pub original: (u32, u32),
    /// Width and height of the result.
    pub shown: (u32, u32),
    /// Whether it was rotated or mirrored to be upright.
    pub turned: bool,
}

/// The formats that models accept.
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

/// Why an image cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageError {
    /// The format is not supported.
    Unknown,
    /// Its header has this width and height, which is too large to decode.
    TooLarge(u32, u32),
    /// It cannot be decoded completely.
    Broken(String),
}

/// Quality of JPEGs that are encoded here: the loss is not visible.
const JPEG_QUALITY: u8 = 85;

/// Maximum number of bytes of a decoded pixel.
const PIXEL_BYTES: u64 = 16;

/// Additional memory for a decoder, for tables and compressed data.
const DECODER_BYTES: u64 = 64 << 20;

/// Converts an image to fit the limits, if necessary. It is decoded in any case.
pub fn picture(bytes: &[u8], limits: ImageLimits) -> Result<Picture, ImageError> {
    let (decoded, orientation, image) = decode(bytes, limits)?;
    let original = (image.width(), image.height());
    let turned = orientation != Orientation::NoTransforms;
    let fits = original.0.max(original.1) <= limits.side && bytes.len() <= limits.bytes;
    if let (true, false, Some(format)) = (fits, turned, accepted_format(decoded)) {
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

/// The output format, if models accept this format.
fn accepted_format(format: ImageFormat) -> Option<PictureFormat> {
    match format {
        ImageFormat::Png => Some(PictureFormat::Png),
        ImageFormat::Jpeg => Some(PictureFormat::Jpeg),
        ImageFormat::Gif => Some(PictureFormat::Gif),
        ImageFormat::WebP => Some(PictureFormat::WebP),
        _ => None,
    }
}

/// Encodes an image in at most `most` bytes: losslessly unless it was a JPEG, as a JPEG if that is too large,
/// and scaled down if that is still too large.
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
