//! Runs of non-ASCII bytes, and whether they are UTF-8. They distinguish damaged UTF-8 from another encoding.

/// Counts of runs, over chunks of any size.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct NonAsciiRuns {
    /// Number of runs that are entirely UTF-8.
    pub(super) whole: u64,
    /// Number of other runs.
    pub(super) broken: u64,
    /// Number of characters of three or four bytes.
    pub(super) long_chars: u64,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Whole,
    Broken,
}

impl NonAsciiRuns {
    /// Adds the next bytes, which are UTF-8.
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
            self.long_chars += u64::from(byte >= 0xe0);
        }
    }

    /// Adds bytes that are not UTF-8. None of them is ASCII.
    pub(super) fn invalid(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.open = Some(Open::Broken);
        }
    }

    /// Ends the current run.
    pub(super) fn close(&mut self) {
        match self.open.take() {
            Some(Open::Whole) => self.whole += 1,
            Some(Open::Broken) => self.broken += 1,
            None => {}
        }
    }
}
