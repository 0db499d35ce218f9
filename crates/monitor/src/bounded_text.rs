//! Texts within limits, with the names of those that were truncated.

/// The fields that were truncated.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    fields: Vec<&'static str>,
}

impl Cut {
    /// The first characters of a text.
    pub(crate) fn text(&mut self, field: &'static str, text: &str, chars: usize) -> String {
        match text.char_indices().nth(chars) {
            None => text.to_owned(),
            Some((end, _)) => {
                self.add(field);
                text[..end].to_owned()
            }
        }
    }

    /// Records that a field was truncated.
    pub(crate) fn add(&mut self, field: &'static str) {
        if !self.fields.contains(&field) {
            self.fields.push(field);
        }
    }

    /// The fields.
    pub(crate) fn fields(&self) -> Vec<String> {
        self.fields.iter().map(|field| (*field).to_owned()).collect()
    }
}
