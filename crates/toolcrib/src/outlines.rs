//! The definitions of texts that were parsed lately. They are found by the hash of the text, so they are never out of date.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_fs::ContentHash;
use toolcrib_syntax::Outline;

use crate::source_syntax::{ParseBudget, Unparsed, may_have_definitions, outline};

/// Definitions that are kept, of all texts together: about 4 MB.
const MAX_DEFINITIONS: usize = 20_000;

/// Parses texts, and keeps their definitions.
#[derive(Default)]
pub(crate) struct Outlines(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    texts: HashMap<Key, KeptOutline>,
    definitions: usize,
    uses: u64,
}

/// The extension of the name, which determines the language together with the text, and the hash of the text.
type Key = (String, ContentHash);

struct KeptOutline {
    outline: Arc<Outline>,
    /// Steps of the parser. A kept outline costs as many, so that a reply does not depend on what is kept.
    steps: u64,
    last_use: u64,
}

impl Outlines {
    /// The definitions of a file. `name` is its name without directories.
    pub(crate) fn of_file(
        &self,
        name: &str,
        bytes: &[u8],
        budget: &ParseBudget,
    ) -> Result<Arc<Outline>, Unparsed> {
        if !may_have_definitions(name) {
            return Err(Unparsed::Language);
        }
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let key = (extension.to_owned(), ContentHash::of(bytes));
        if let Some((outline, steps)) = self.0.lock().get(&key) {
            return budget.take(steps).map(|()| outline);
        }
        let steps = budget.remaining();
        let outline = Arc::new(outline(name, bytes, budget)?);
        self.0.lock().keep(key, &outline, steps - budget.remaining());
        Ok(outline)
    }
}

impl Kept {
    fn get(&mut self, key: &Key) -> Option<(Arc<Outline>, u64)> {
        let kept = self.texts.get_mut(key)?;
        self.uses += 1;
        kept.last_use = self.uses;
        Some((kept.outline.clone(), kept.steps))
    }

    /// Keeps an outline instead of those that were not used for the longest time.
    fn keep(&mut self, key: Key, outline: &Arc<Outline>, steps: u64) {
        let size = size(outline);
        if size > MAX_DEFINITIONS / 4 {
            return;
        }
        self.uses += 1;
        let kept = KeptOutline { outline: outline.clone(), steps, last_use: self.uses };
        self.definitions += size;
        if let Some(same) = self.texts.insert(key, kept) {
            self.definitions -= self::size(&same.outline);
        }
        while self.definitions > MAX_DEFINITIONS {
            let oldest = self.texts.iter().min_by_key(|(_, kept)| kept.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(removed) = self.texts.remove(&oldest) {
                self.definitions -= self::size(&removed.outline);
            }
        }
    }
}

/// A text without definitions takes memory, too.
fn size(outline: &Outline) -> usize {
    outline.definitions.len() + 1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn budget() -> ParseBudget {
        ParseBudget::megabytes(1, Duration::from_secs(60))
    }

    fn functions(count: usize) -> String {
        (0..count).map(|number| format!("fn f{number}() {{}}\n")).collect()
    }

    #[test]
    fn a_kept_outline_is_the_same_and_costs_the_same() {
        let (outlines, text) = (Outlines::default(), functions(50));
        let (first, second) = (budget(), budget());
        let parsed = outlines.of_file("a.rs", text.as_bytes(), &first).unwrap();
        let kept = outlines.of_file("b.rs", text.as_bytes(), &second).unwrap();
        assert_eq!(parsed.definitions.len(), 50);
        assert!(Arc::ptr_eq(&parsed, &kept));
        assert_eq!(first.remaining(), second.remaining());
        assert!(first.remaining() < budget().remaining());
    }

    #[test]
    fn a_kept_outline_is_not_given_beyond_the_budget() {
        let (outlines, text) = (Outlines::default(), functions(50));
        outlines.of_file("a.rs", text.as_bytes(), &budget()).unwrap();
        let small = budget();
        small.take(small.remaining() - 1).unwrap();
        let over = outlines.of_file("a.rs", text.as_bytes(), &small);
        assert_eq!(over.err(), Some(Unparsed::OverBudget));
    }

    #[test]
    fn the_same_text_has_another_outline_in_another_language() {
        let outlines = Outlines::default();
        let of = |name| outlines.of_file(name, b"def f(): pass\n", &budget());
        assert_eq!(of("a.py").unwrap().definitions.len(), 1);
        assert_eq!(of("a.rs").unwrap().definitions.len(), 0);
        assert_eq!(of("a.txt").err(), Some(Unparsed::Language));
    }

    #[test]
    fn the_number_of_kept_definitions_is_bounded() {
        let outlines = Outlines::default();
        for number in 0..100 {
            let text = format!("// {number}\n{}", functions(999));
            outlines.of_file("a.rs", text.as_bytes(), &budget()).unwrap();
        }
        let kept = outlines.0.lock();
        assert_eq!(kept.definitions, 20_000);
        let sizes = kept.texts.values().map(|one| size(&one.outline));
        assert_eq!(kept.definitions, sizes.sum::<usize>());
        // Those used last are kept.
        let oldest = kept.texts.values().map(|one| one.last_use).min();
        assert_eq!(oldest, Some(kept.uses - 19));
    }
}
