//! Builds PDFs byte by byte.

/// The objects of a file. The first is the catalogue and the second the page tree.
pub(crate) struct PdfMaker {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
}

impl PdfMaker {
    pub(crate) fn new() -> PdfMaker {
        PdfMaker { objects: vec![Vec::new(), Vec::new()], pages: Vec::new() }
    }

    /// Adds an object. Returns its number.
    pub(crate) fn object(&mut self, body: impl Into<Vec<u8>>) -> usize {
        self.objects.push(body.into());
        self.objects.len()
    }

    /// Adds a stream with these dictionary entries.
    pub(crate) fn stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let head = format!("<< {entries} /Length {} >>\nstream\n", data.len());
        self.object([head.as_bytes(), data, b"\nendstream"].concat())
    }

    /// Adds a page of 600 by 800 points with these entries.
    pub(crate) fn page(&mut self, entries: &str) {
        let page = self.object(format!("<< /Type /Page /Parent 2 0 R {entries} >>"));
        self.pages.push(page);
    }

    /// Adds a page with this content and Helvetica as `F1`.
    pub(crate) fn text_page(&mut self, content: &str) {
        let contents = self.stream("", content.as_bytes());
        self.page(&format!(
            "/Contents {contents} 0 R /Resources << /Font << /F1 {HELVETICA} >> >>"
        ));
    }

    /// The whole file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let kids: Vec<String> = self.pages.iter().map(|page| format!("{page} 0 R")).collect();
        let (kids, count) = (kids.join(" "), kids.len());
        self.objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
        self.objects[1] =
            format!("<< /Type /Pages /Kids [{kids}] /Count {count} /MediaBox [0 0 600 800] >>")
                .into();
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut table = String::from("0000000000 65535 f \n");
        for (body, number) in self.objects.iter().zip(1..) {
            table += &format!("{:010} 00000 n \n", file.len());
            file.extend(format!("{number} 0 obj\n").as_bytes());
            file.extend(body);
            file.extend(b"\nendobj\n");
        }
        let (start, size) = (file.len(), self.objects.len() + 1);
        file.extend(format!("xref\n0 {size}\n{table}").as_bytes());
        file.extend(format!("trailer\n<< /Size {size} /Root 1 0 R >>\n").as_bytes());
        file.extend(format!("startxref\n{start}\n%%EOF\n").as_bytes());
        file
    }
}

/// A standard font.
pub(crate) const HELVETICA: &str =
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/// A file with a page for each content.
pub(crate) fn with_pages(contents: &[&str]) -> Vec<u8> {
    let mut maker = PdfMaker::new();
    contents.iter().for_each(|content| maker.text_page(content));
    maker.finish()
}

/// Content with one line of text.
pub(crate) fn shown(text: &str, x: u32, y: u32) -> String {
    format!("BT /F1 12 Tf {x} {y} Td ({text}) Tj ET\n")
}
