//! A small set of strings.

/// Sorted strings, at least one and at most [`MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StringSet(Vec<Vec<u8>>);

/// More strings are too many, since each is looked up.
pub(super) const MAX: usize = 64;

/// Limit of the total length.
const MAX_BYTES: usize = 64 << 10;

impl StringSet {
    /// The set with only the empty string.
    pub(super) fn empty() -> StringSet {
        StringSet::one(b"")
    }

    pub(super) fn one(string: &[u8]) -> StringSet {
        StringSet(vec![string.to_vec()])
    }

    /// The strings that `make` returns. `None` if there are none or too many.
    pub(super) fn if_few(count: usize, make: impl FnOnce() -> Vec<Vec<u8>>) -> Option<StringSet> {
        if count == 0 || count > MAX {
            return None;
        }
        StringSet::of(make())
    }

    fn of(mut strings: Vec<Vec<u8>>) -> Option<StringSet> {
        strings.sort_unstable();
        strings.dedup();
        let bytes: usize = strings.iter().map(Vec::len).sum();
        let few = !strings.is_empty() && strings.len() <= MAX && bytes <= MAX_BYTES;
        few.then_some(StringSet(strings))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// The concatenations of each string with each of `others`. `None` if they are too many.
    pub(super) fn cross_product(&self, others: &StringSet) -> Option<StringSet> {
        let count = self.0.len() * others.0.len();
        let bytes = |strings: &StringSet| strings.0.iter().map(Vec::len).max().unwrap_or(0);
        if count > MAX || count * (bytes(self) + bytes(others)) > MAX_BYTES {
            return None;
        }
        let pairs = self.0.iter().flat_map(|one| others.0.iter().map(move |two| (one, two)));
        StringSet::of(pairs.map(|(one, two)| [one.as_slice(), two].concat()).collect())
    }

    /// The union of both sets. `None` if it is too large.
    pub(super) fn union(&self, others: &StringSet) -> Option<StringSet> {
        StringSet::of(self.0.iter().chain(&others.0).cloned().collect())
    }

    /// The first bytes of each string.
    pub(super) fn prefixes(&self, bytes: usize) -> StringSet {
        StringSet::cut(self.0.iter().map(|string| string[..bytes.min(string.len())].to_vec()))
    }

    /// The last bytes of each string.
    pub(super) fn suffixes(&self, bytes: usize) -> StringSet {
        let last = |string: &Vec<u8>| string[string.len() - bytes.min(string.len())..].to_vec();
        StringSet::cut(self.0.iter().map(last))
    }

    /// The result has no more strings than the input, and none is longer.
    fn cut(strings: impl Iterator<Item = Vec<u8>>) -> StringSet {
        StringSet::of(strings.collect()).unwrap_or_else(StringSet::empty)
    }
}
