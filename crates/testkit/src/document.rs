//! A Markdown page as prose and fenced blocks, to be read, changed and written back unchanged but
//! for what was changed.

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its parts, in order.
    pub segments: Vec<Segment>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Prose, with its newlines.
    Prose(String),
    /// A fenced block.
    Block {
        /// The backticks.
        fence: String,
        /// What stands behind them.
        info: String,
        /// The lines between the fences, each with its newline.
        body: String,
    },
}

impl Document {
    /// Takes a page apart. A fence that is not closed is an error.
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

    /// The page as text.
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
    fn a_page_comes_back_as_it_was() {
        let page = "# T\n\n```file a\nx\n```\nbetween\n````output\n```\n````\n";
        let document = Document::parse(page).unwrap();
        assert_eq!(document.segments.len(), 4);
        assert_eq!(document.render(), page);
    }

    #[test]
    fn an_open_block_is_an_error() {
        assert!(Document::parse("```file a\nx\n").unwrap_err().contains("line 1"));
    }
}
