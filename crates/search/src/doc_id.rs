//! The id of a file in an index.

/// A file in an index: its segment and its number there. It stays valid as long as its segment exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DocId {
    pub(crate) serial: u32,
    pub(crate) file: u32,
}

impl DocId {
    /// Number of bits of a packed id.
    pub(crate) const BITS: u32 = 36;
    const FILE_BITS: u32 = 14;

    /// As a number above 0. `None` if it does not fit.
    pub(crate) fn packed(self) -> Option<u64> {
        let packed = u64::from(self.serial) << DocId::FILE_BITS | u64::from(self.file);
        (self.serial > 0 && self.file >> DocId::FILE_BITS == 0 && packed >> DocId::BITS == 0)
            .then_some(packed)
    }

    pub(crate) fn unpacked(packed: u64) -> Option<DocId> {
        let serial = u32::try_from(packed >> DocId::FILE_BITS).ok().filter(|serial| *serial > 0)?;
        let file = u32::try_from(packed & ((1 << DocId::FILE_BITS) - 1)).ok()?;
        Some(DocId { serial, file })
    }
}
