//! A few strings.

/// Strings in order, at least one, at most [`MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strings(Vec<Vec<u8>>);

/// More are too many: each is looked up.
pub(super) const MAX: usize = 64;

/// So many bytes they have together.
const MAX_BYTES: usize = 64 << 10;

impl Strings {
    /// The empty one.
    pub(super) fn empty() -> Strings {
        Strings::one(b"")
    }

    pub(super) fn one(string: &[u8]) -> Strings {
        Strings(vec![string.to_vec()])
    }

    /// Those that `make` makes, if there are not too many, and any at all.
    pub(super) fn few(count: usize, make: impl FnOnce() -> Vec<Vec<u8>>) -> Option<Strings> {
        if count == 0 || count > MAX {
            return None;
        }
        Strings::of(make())
    }

    fn of(mut strings: Vec<Vec<u8>>) -> Option<Strings> {
        strings.sort_unstable();
        strings.dedup();
        let bytes: usize = strings.iter().map(Vec::len).sum();
        let few = !strings.is_empty() && strings.len() <= MAX && bytes <= MAX_BYTES;
        few.then_some(Strings(strings))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Each of these before each of those; nothing, if that is too much.
    pub(super) fn times(&self, others: &Strings) -> Option<Strings> {
        let count = self.0.len() * others.0.len();
        let bytes = |strings: &Strings| strings.0.iter().map(Vec::len).max().unwrap_or(0);
        if count > MAX || count * (bytes(self) + bytes(others)) > MAX_BYTES {
            return None;
        }
        let pairs = self.0.iter().flat_map(|one| others.0.iter().map(move |two| (one, two)));
        Strings::of(pairs.map(|(one, two)| [one.as_slice(), two].concat()).collect())
    }

    /// These and those; nothing, if that is too much.
    pub(super) fn plus(&self, others: &Strings) -> Option<Strings> {
        Strings::of(self.0.iter().chain(&others.0).cloned().collect())
    }

    /// The first bytes of each.
    pub(super) fn firsts(&self, bytes: usize) -> Strings {
        Strings::cut(self.0.iter().map(|string| string[..bytes.min(string.len())].to_vec()))
    }

    /// The last bytes of each.
    pub(super) fn lasts(&self, bytes: usize) -> Strings {
        let last = |string: &Vec<u8>| string[string.len() - bytes.min(string.len())..].to_vec();
        Strings::cut(self.0.iter().map(last))
    }

    /// There are no more of them than there were, and they are no longer.
    fn cut(strings: impl Iterator<Item = Vec<u8>>) -> Strings {
        Strings::of(strings.collect()).unwrap_or_else(Strings::empty)
    }
}
