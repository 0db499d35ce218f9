//! Chinese, Japanese and Korean fonts without a `ToUnicode` table. Their glyphs have numbers in one of Adobe's
//! character collections, which have such tables.

use std::collections::HashMap;

use hayro_interpret::font::OutlineGlyph;
use hayro_interpret::hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, String as PdfString};

/// The fonts of a file that need such a table. They are searched for when the first glyph needs one.
pub(super) struct Collections<'a> {
    pdf: &'a Pdf,
    fonts: Option<HashMap<String, Font>>,
}

struct Font {
    encoding: Vec<u8>,
    family: CidFamily,
    /// `None` until loaded, `Some(None)` if not available.
    tables: Option<Option<Tables>>,
}

/// Maps a character code to a glyph number, and that to Unicode.
struct Tables {
    numbers: CMap,
    unicode: CMap,
}

impl<'a> Collections<'a> {
    pub(super) fn of(pdf: &'a Pdf) -> Collections<'a> {
        Collections { pdf, fonts: None }
    }

    /// The text of a glyph by its number, if its font needs a table.
    pub(super) fn text(&mut self, glyph: &OutlineGlyph) -> Option<BfString> {
        let name = glyph.font_data()?.postscript_name?;
        let fonts = self.fonts.get_or_insert_with(|| fonts_of(self.pdf));
        let font = fonts.get_mut(&name)?;
        let (encoding, family) = (&font.encoding, &font.family);
        let tables = font.tables.get_or_insert_with(|| Tables::load(encoding, family));
        tables.as_ref()?.text(glyph.char_code())
    }
}

impl Tables {
    fn load(encoding: &[u8], family: &CidFamily) -> Option<Tables> {
        let load = |name| CMap::parse(load_embedded(name)?, load_embedded);
        let numbers = match encoding {
            b"Identity-H" | b"Identity-V" => CMap::identity_h(),
            name => load(CMapName::from_bytes(name))?,
        };
        Some(Tables { numbers, unicode: load(family.ucs2_cmap()?)? })
    }

    fn text(&self, code: u32) -> Option<BfString> {
        // The length of the code in bytes is not known here. Nearly all codes have two.
        let number =
            [2, 1, 3, 4].iter().find_map(|&bytes| self.numbers.lookup_cid_code(code, bytes));
        self.unicode.lookup_bf_string(number?)
    }
}

fn fonts_of(pdf: &Pdf) -> HashMap<String, Font> {
    pdf.objects().into_iter().filter_map(Object::into_dict).filter_map(|dict| font(&dict)).collect()
}

/// The name and properties of a composite font without a Unicode table.
fn font(dict: &Dict<'_>) -> Option<(String, Font)> {
    if dict.get::<Name<'_>>("Subtype")?.as_str() != "Type0" || dict.contains_key("ToUnicode") {
        return None;
    }
    let name = dict.get::<Name<'_>>("BaseFont")?;
    let encoding = dict.get::<Name<'_>>("Encoding")?.to_vec();
    let descendant = dict.get::<Array<'_>>("DescendantFonts")?.iter::<Dict<'_>>().next()?;
    let collection = descendant.get::<Dict<'_>>("CIDSystemInfo")?;
    let registry = collection.get::<PdfString<'_>>("Registry")?;
    let ordering = collection.get::<PdfString<'_>>("Ordering")?;
    let family = CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes());
    Some((without_subset_mark(name.as_str()).to_owned(), Font { encoding, family, tables: None }))
}

/// `ABCDEF+Song` is a subset of `Song`, which is the name that hayro uses.
fn without_subset_mark(name: &str) -> &str {
    match name.split_once('+') {
        Some((mark, rest)) if mark.len() == 6 => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(encoding: &str, family: CidFamily, code: u32) -> Option<String> {
        match Tables::load(encoding.as_bytes(), &family)?.text(code)? {
            BfString::Char(c) => Some(c.to_string()),
            BfString::String(text) => Some(text),
        }
    }

    #[test]
    fn numbers_and_known_encodings_map_to_unicode() {
        assert_eq!(text_of("Identity-H", CidFamily::AdobeJapan1, 843).as_deref(), Some("あ"));
        assert_eq!(text_of("90ms-RKSJ-H", CidFamily::AdobeJapan1, 0x82a0).as_deref(), Some("あ"));
        assert_eq!(text_of("90ms-RKSJ-H", CidFamily::AdobeJapan1, 0x41).as_deref(), Some("A"));
        assert_eq!(text_of("UniGB-UCS2-H", CidFamily::AdobeGB1, 0x4f60).as_deref(), Some("你"));
    }

    #[test]
    fn without_a_table_there_is_no_text() {
        assert_eq!(text_of("Identity-H", CidFamily::AdobeIdentity, 843), None);
        assert_eq!(text_of("Nobodys-Own-H", CidFamily::AdobeJapan1, 843), None);
    }

    #[test]
    fn a_subset_has_the_name_of_its_font() {
        assert_eq!(without_subset_mark("ABCDEF+Song"), "Song");
        assert_eq!(without_subset_mark("A+B"), "A+B");
    }
}
