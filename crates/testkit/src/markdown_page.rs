//! A Markdown page as prose and fenced blocks. Rendering an unchanged page gives the same bytes.

/// A Markdown page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The segments, in order.
    pub segments: Vec<Segment>,
}

/// A segment of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Prose, with its newlines.
    Prose(String),
    /// A fenced block.
    Block {
        /// The backticks.
        fence: String,
        /// The info string after the opening fence.
        info: String,
        /// The lines between the fences, each with its newline.
        body: String,
    },
}

impl Document {
    /// Parses a page. Fails if a fence is not closed.
    pub fn parse(text: &str) -> Result<Document, String> {
        let mut segments = Vec::new();
        let mut prose = String::new();
        let mut lines = text.split_inclusive('\n').enumerate();
        while let Some((number, line)) = lines.next() {
            let ticks = line.len() - line.trim_start_matches('`').len();
            if ticks < 3 {
                prose.push_str(line);
                continue;
            }
            if !prose.is_empty() {
                segments.push(Segment::Prose(std::mem::take(&mut prose)));
            }
            let (fence, info) = line.split_at(ticks);
            let mut body = String::new();
            loop {
                let Some((_, line)) = lines.next() else {
                    return Err(format!("the block at line {} is not closed", number + 1));
                };
                if line.trim_end() == fence {
                    break;
                }
                body.push_str(line);
            }
            let (fence, info) = (fence.to_owned(), info.trim().to_owned());
            segments.push(Segment::Block { fence, info, body });
        }
        if !prose.is_empty() {
            segments.push(Segment::Prose(prose));
        }
        Ok(Document { segments })
    }

    /// Renders the page as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Prose(prose) => text.push_str(prose),
                Segment::Block { fence, info, body } => {
                    text.push_str(&format!("{fence}{info}\n{body}{fence}\n"));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_and_rendering_preserves_a_page() {
        let page = "# T\n\n```file a\nx\n```\nbetween\n````output\n```\n````\n";
        let document = Document::parse(page).unwrap();
        assert_eq!(document.segments.len(), 4);
        assert_eq!(document.render(), page);
    }

    #[test]
    fn rejects_an_unclosed_block() {
        assert!(Document::parse("```file a\nx\n").unwrap_err().contains("line 1"));
    }
}
