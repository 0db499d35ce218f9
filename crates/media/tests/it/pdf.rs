//! The text of ordinary, unusual and hostile PDFs.

use proptest::prelude::*;
use toolcrib_media::{PdfError, PdfText, count_pdf_pages, read_pdf};

use crate::make_pdf::{PdfMaker, shown, with_pages};

/// 64 MiB of spaces, deflated twice and written as hexadecimal digits.
const BOMB: &str = "\
    78DAEDDC2D6E02611080E16D0A8626144483C0AC25BD0086F44754578026D8269524B82E697A841E01C1019A\
    D4E2B8417F140740350D0AB22D7B8C6F9E478D1E3999BCB3EFED6A9EFD2BF2D743AFB36C6400000040E28AAF\
    E7D393E390971F77F723000000207593F366AD3A0AECC7DD1BEB00000080E4BD0CFAADEA43E0E7E9B1661D00\
    000090BC8BDDE6BABA05ACCBB7F6D03E00000020799F8201000000108A6000000000C4221800000000B10806\
    00000040308201000000108B6000000000C4221800000000B1080600000040308201000000108B6000000000\
    C4B218F4F3E36340EBB79C5EDDD63300000022793FBB2C8B873FC4CBA05F>";

/// Made with qpdf from a file of [`with_pages`]. The first has only an owner password, so it opens without
/// one. The second, with AES, needs `secret`.
const OPEN_TO_ALL: &[u8] = include_bytes!("../fixtures/encrypted-open-to-all.pdf");
const NEEDS_PASSWORD: &[u8] = include_bytes!("../fixtures/encrypted-needs-password.pdf");

fn read(bytes: Vec<u8>) -> PdfText {
    read_pdf(bytes, 1..=u32::MAX, 1_000_000).unwrap()
}

fn texts(bytes: Vec<u8>) -> Vec<String> {
    read(bytes).pages.into_iter().map(|page| page.text).collect()
}

fn two_pages() -> Vec<u8> {
    let second = shown("Second page", 50, 700) + &shown("its end", 50, 680);
    with_pages(&[&shown("Hello, world", 50, 700), &second])
}

#[test]
fn lines_and_pages_are_in_order() {
    let text = read(two_pages());
    assert_eq!((text.page_count, text.cut), (2, false));
    assert_eq!((text.pages[0].number, text.pages[1].number), (1, 2));
    assert_eq!(texts(two_pages()), ["Hello, world", "Second page\nits end"]);
    assert_eq!(count_pdf_pages(two_pages()), Ok(2));
}

#[test]
fn existing_pages_are_selected() {
    let numbers = |range| -> Vec<u32> {
        let text = read_pdf(two_pages(), range, 1_000).unwrap();
        text.pages.iter().map(|page| page.number).collect()
    };
    assert_eq!(numbers(2..=2), [2]);
    assert_eq!(numbers(0..=1), [1]);
    assert_eq!(numbers(2..=9), [2]);
    assert_eq!(numbers(3..=9), [] as [u32; 0]);
    assert_eq!(numbers(u32::MAX..=u32::MAX), [] as [u32; 0]);
}

#[test]
fn text_beyond_the_limit_is_cut_by_whole_lines_and_reported() {
    let text = read_pdf(two_pages(), 1..=2, 26).unwrap();
    assert_eq!(text.pages[1].text, "Second page");
    assert!(text.cut);
    assert!(!read_pdf(two_pages(), 1..=2, 31).unwrap().cut);
    assert!(read_pdf(two_pages(), 1..=2, 0).unwrap().cut);
}

#[test]
fn columns_are_read_one_after_the_other() {
    let mut content = String::new();
    for x in [50, 320] {
        for (row, y) in [(1, 700), (2, 685), (3, 670)] {
            content += &shown(&format!("at {x} row {row}"), x, y);
        }
    }
    let left = "at 50 row 1\nat 50 row 2\nat 50 row 3";
    let right = "at 320 row 1\nat 320 row 2\nat 320 row 3";
    assert_eq!(texts(with_pages(&[&content])), [format!("{left}\n{right}")]);
}

#[test]
fn words_are_separated_without_spaces_in_the_file() {
    let content = "BT /F1 12 Tf 50 700 Td [(two) -300 (wo) 20 (rds)] TJ 200 0 Td (column) Tj ET";
    assert_eq!(texts(with_pages(&[content])), ["two words\tcolumn"]);
}

#[test]
fn text_printed_twice_for_bold_is_read_once() {
    let twice = shown("Bold", 50, 700) + "BT /F1 12 Tf 50.4 700 Td (Bold) Tj ET 2 Tr";
    let outlined = " BT 2 Tr /F1 12 Tf 50 600 Td (Filled and drawn) Tj ET";
    assert_eq!(texts(with_pages(&[&(twice + outlined)])), ["Bold\nFilled and drawn"]);
}

#[test]
fn rotated_pages_and_lines_are_read_along_their_direction() {
    let content = "BT /F1 12 Tf 0 1 -1 0 300 100 Tm (up the page) Tj ET";
    assert_eq!(texts(with_pages(&[content])), ["up the page"]);
}

#[test]
fn text_off_the_page_is_ignored() {
    let content = shown("seen", 50, 700) + &shown("unseen", 50, 900);
    assert_eq!(texts(with_pages(&[&content])), ["seen"]);
}

#[test]
fn chinese_is_read_by_the_fonts_unicode_table() {
    let table = "/CIDInit /ProcSet findresource begin begincmap\n\
        1 begincodespacerange <0000> <FFFF> endcodespacerange\n\
        2 beginbfchar <0001> <4F60> <0002> <597D> endbfchar endcmap end";
    let content = b"BT /F2 12 Tf 50 700 Td <00010002> Tj ET";
    assert_eq!(texts(composite("Identity-H", Some(table), content)), ["你好"]);
}

#[test]
fn chinese_is_read_by_a_known_encoding() {
    let content = b"BT /F2 12 Tf 50 700 Td <4F60597D> Tj ET";
    assert_eq!(texts(composite("UniGB-UCS2-H", None, content)), ["你好"]);
}

/// A page in a font that is not in the file, with two-byte codes.
fn composite(encoding: &str, to_unicode: Option<&str>, content: &[u8]) -> Vec<u8> {
    let mut maker = PdfMaker::new();
    let table = to_unicode.map(|table| maker.stream("", table.as_bytes()));
    let to_unicode = table.map(|table| format!("/ToUnicode {table} 0 R")).unwrap_or_default();
    let descendant = maker.object(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Song /DW 1000 \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> \
         /FontDescriptor << /Type /FontDescriptor /FontName /Song /Flags 4 >> >>",
    );
    let font = maker.object(format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /{encoding} \
         /DescendantFonts [{descendant} 0 R] {to_unicode} >>"
    ));
    let contents = maker.stream("", content);
    maker.page(&format!("/Contents {contents} 0 R /Resources << /Font << /F2 {font} 0 R >> >>"));
    maker.finish()
}

#[test]
fn filled_in_forms_show_their_values() {
    let mut maker = PdfMaker::new();
    let look = maker.stream(
        &format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 {} >> >>",
            crate::make_pdf::HELVETICA
        ),
        b"/Tx BMC BT /F1 12 Tf 2 5 Td (Ada Lovelace) Tj ET EMC",
    );
    let field = maker.object(format!(
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) \
         /Rect [100 600 300 620] /AP << /N {look} 0 R >> >>"
    ));
    let contents = maker.stream("", shown("Name:", 50, 605).as_bytes());
    let fonts = format!("/Font << /F1 {} >>", crate::make_pdf::HELVETICA);
    maker.page(&format!("/Contents {contents} 0 R /Annots [{field} 0 R] /Resources << {fonts} >>"));
    assert_eq!(texts(maker.finish()), ["Name: Ada Lovelace"]);
}

#[test]
fn a_scan_is_a_page_without_text() {
    let mut maker = PdfMaker::new();
    let image = maker.stream(
        "/Type /XObject /Subtype /Image /Width 2 /Height 2 /BitsPerComponent 8 /ColorSpace /DeviceGray",
        &[0, 255, 255, 0],
    );
    let contents = maker.stream("", b"q 600 0 0 800 0 0 cm /Im Do Q");
    maker
        .page(&format!("/Contents {contents} 0 R /Resources << /XObject << /Im {image} 0 R >> >>"));
    assert_eq!(texts(maker.finish()), [""]);
}

#[test]
fn encrypted_files_open_if_no_password_is_needed() {
    assert_eq!(texts(OPEN_TO_ALL.to_vec()), ["Behind an empty password"]);
    assert_eq!(read_pdf(NEEDS_PASSWORD.to_vec(), 1..=1, 100), Err(PdfError::Encrypted));
    assert_eq!(count_pdf_pages(NEEDS_PASSWORD.to_vec()), Err(PdfError::Encrypted));
}

#[test]
fn other_files_are_distinguished_from_broken_pdfs() {
    assert_eq!(count_pdf_pages(Vec::new()), Err(PdfError::NotPdf));
    assert_eq!(count_pdf_pages(b"PK\x03\x04 a zip".to_vec()), Err(PdfError::NotPdf));
    let broken = count_pdf_pages(b"%PDF-1.7\nand nothing else".to_vec());
    assert!(matches!(broken, Err(PdfError::Broken { .. })), "{broken:?}");
}

#[test]
fn a_wrong_object_table_is_rebuilt() {
    let file = String::from_utf8(two_pages()).unwrap();
    let (body, _) = file.rsplit_once("startxref").unwrap();
    let lying = format!("{body}startxref\n7\n%%EOF\n");
    assert_eq!(texts(lying.into()), ["Hello, world", "Second page\nits end"]);
}

#[test]
fn the_remaining_pages_of_a_truncated_file_are_read() {
    let file = two_pages();
    let end = file.windows(6).position(|bytes| bytes == b"xref\n0").unwrap();
    assert_eq!(texts(file[..end].to_vec()), ["Hello, world", "Second page\nits end"]);
    for length in (0..file.len()).step_by(7) {
        // Text or an error; no panic.
        let _ = read_pdf(file[..length].to_vec(), 1..=9, 1_000);
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for (open, close) in [("[", "]"), ("<< /A ", ">>"), ("(", ")")] {
        let nested = open.repeat(30_000) + &close.repeat(30_000);
        let content = format!("{nested} TJ {}", shown("after", 50, 700));
        let mut maker = PdfMaker::new();
        let object = maker.object(nested);
        maker.text_page(&content);
        maker.page(&format!("/Contents {object} 0 R"));
        assert_eq!(read(maker.finish()).page_count, 2);
    }
}

#[test]
fn a_form_that_draws_itself_terminates() {
    let mut maker = PdfMaker::new();
    let resources = "/Resources << /XObject << /X 3 0 R >> >>";
    let form = maker.stream(
        &format!("/Type /XObject /Subtype /Form /BBox [0 0 600 800] {resources}"),
        b"/X Do",
    );
    assert_eq!(form, 3);
    let contents = maker.stream("", b"/X Do");
    maker.page(&format!("/Contents {contents} 0 R {resources}"));
    assert_eq!(texts(maker.finish()), [""]);
}

#[test]
fn a_stream_that_inflates_a_lot_is_read_or_rejected() {
    let mut maker = PdfMaker::new();
    let filter = "/Filter [/ASCIIHexDecode /FlateDecode /FlateDecode]";
    let contents = maker.stream(filter, BOMB.as_bytes());
    maker.page(&format!("/Contents {contents} 0 R"));
    assert_eq!(texts(maker.finish()), [""]);
}

#[test]
fn endless_text_is_cut() {
    let spam = "1 0 0 1 50 700 Tm (spam) Tj 1 0 0 1 50 600 Tm (more) Tj ".repeat(100_000);
    let content = format!("BT /F1 12 Tf {spam} ET");
    let text = read_pdf(with_pages(&[&content]), 1..=1, 1_000).unwrap();
    assert!(text.cut);
    assert!(text.pages[0].text.chars().count() <= 1_000);
}

#[test]
fn results_survive_serialization() {
    let text = read(two_pages());
    let json = serde_json::to_string(&text).unwrap();
    assert_eq!(serde_json::from_str::<PdfText>(&json).unwrap(), text);
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = read_pdf([b"%PDF-1.4\n".to_vec(), bytes].concat(), 1..=3, 1_000);
    }

    #[test]
    fn mutated_files_do_not_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let table = "begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange endcmap";
        for mut file in [
            two_pages(),
            OPEN_TO_ALL.to_vec(),
            composite("Identity-H", Some(table), b"BT /F2 12 Tf 50 700 Td <00010002> Tj ET"),
        ] {
            for (at, byte) in &changes {
                let at = at.index(file.len());
                file[at] = *byte;
            }
            let _ = read_pdf(file, 1..=3, 1_000);
        }
    }
}
