//! Valid, invalid and hostile images.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbaImage};
use proptest::prelude::*;
use toolcrib_media::{ImageError, ImageLimits, Kind, kind_of, picture};

const LIMITS: ImageLimits = ImageLimits { side: 200, bytes: 50_000, pixels: 4_000_000 };

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// The left half is white, the right half black.
fn halves(width: u32, height: u32) -> DynamicImage {
    let shade = |x| if x < width / 2 { 255 } else { 0 };
    image::RgbImage::from_fn(width, height, |x, _| image::Rgb([shade(x); 3])).into()
}

fn noise(side: u32) -> DynamicImage {
    let mut state = 1u32;
    RgbaImage::from_fn(side, side, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgba([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8, 255])
    })
    .into()
}

/// A JPEG with an orientation tag, as cameras write it.
fn turned(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let length = (exif.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, &exif, &jpeg[2..]].concat()
}

#[test]
fn an_image_that_fits_is_unchanged() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
        let bytes = encoded(&halves(20, 10), format);
        let Some(Kind::Picture(media_type)) = kind_of(&bytes) else { panic!("{format:?}") };
        let picture = picture(&bytes, LIMITS).unwrap();
        assert_eq!((picture.format.media_type(), picture.shown), (media_type, (20, 10)));
        assert!(picture.remade.is_none());
    }
}

#[test]
fn a_large_image_is_scaled_down_in_proportion() {
    let picture = picture(&encoded(&halves(1000, 100), ImageFormat::Png), LIMITS).unwrap();
    assert_eq!((picture.original, picture.shown), ((1000, 100), (200, 20)));
    let again = image::load_from_memory(&picture.remade.unwrap()).unwrap().to_luma8();
    assert_eq!((again.get_pixel(20, 10)[0], again.get_pixel(180, 10)[0]), (255, 0));
}

#[test]
fn a_rotated_image_is_turned_upright() {
    let jpeg = turned(&encoded(&halves(64, 32), ImageFormat::Jpeg), 6);
    let picture = picture(&jpeg, LIMITS).unwrap();
    assert!(picture.turned && picture.remade.is_some());
    assert_eq!((picture.original, picture.shown), ((64, 32), (32, 64)));
    let upright = image::load_from_memory(&picture.remade.unwrap()).unwrap().to_luma8();
    assert!(upright.get_pixel(16, 8)[0] > 200 && upright.get_pixel(16, 56)[0] < 50, "white on top");
}

#[test]
fn an_unsupported_format_is_converted() {
    let picture = picture(&encoded(&halves(20, 10), ImageFormat::Bmp), LIMITS).unwrap();
    assert_eq!((picture.format.media_type(), picture.shown), ("image/png", (20, 10)));
}

#[test]
fn noise_is_compressed_to_the_byte_limit() {
    let picture = picture(&encoded(&noise(400), ImageFormat::Png), LIMITS).unwrap();
    let bytes = picture.remade.unwrap().len();
    assert!(bytes <= LIMITS.bytes, "{bytes}");
    assert!(picture.shown.0 > 100);
}

#[test]
fn invalid_images_are_errors() {
    let whole = encoded(&noise(50), ImageFormat::Png);
    let half = whole[..whole.len() / 2].to_vec();
    assert!(matches!(picture(&half, LIMITS), Err(ImageError::Broken(_))));
    let mut lying = whole.clone();
    lying[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(picture(&lying, LIMITS).is_err());
    assert_eq!(picture(b"text", LIMITS), Err(ImageError::Unknown));
    let wide = encoded(&halves(4000, 2000), ImageFormat::Png);
    assert_eq!(picture(&wide, LIMITS), Err(ImageError::TooLarge(4000, 2000)));
}

proptest! {
    #[test]
    fn damaged_images_do_not_panic(
        format in prop::sample::select(vec![
            ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp,
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encoded(&halves(24, 8), format);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = picture(&bytes, LIMITS);
        bytes.truncate(cut.index(bytes.len()));
        let _ = picture(&bytes, LIMITS);
    }
}
