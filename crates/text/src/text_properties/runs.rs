//! Runs of bytes beyond ASCII, and whether they are UTF-8: what tells damaged UTF-8 from another encoding.

/// Counts of runs, over chunks of any size.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Runs {
    /// Runs that are UTF-8 from their beginning to their end.
    pub(super) whole: u64,
    /// Runs that are not.
    pub(super) broken: u64,
    /// Letters of three or four bytes.
    pub(super) long_letters: u64,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Whole,
    Broken,
}

impl Runs {
    /// Takes the next bytes, which are UTF-8.
    pub(super) fn valid(&mut self, text: &str) {
        if text.is_ascii() {
            if !text.is_empty() {
                self.close();
            }
            return;
        }
        for byte in text.bytes() {
            if byte.is_ascii() {
                self.close();
                continue;
            }
            self.open = self.open.or(Some(Open::Whole));
            self.long_letters += u64::from(byte >= 0xe0);
        }
    }

    /// Takes bytes that are not UTF-8. None of them is ASCII.
    pub(super) fn invalid(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.open = Some(Open::Broken);
        }
    }

    /// Ends the run that is open.
    pub(super) fn close(&mut self) {
        match self.open.take() {
            Some(Open::Whole) => self.whole += 1,
            Some(Open::Broken) => self.broken += 1,
            None => {}
        }
    }
}
