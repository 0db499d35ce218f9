//! The compiled patterns of the last searches.
//!
//! Compiling a pattern such as `\w+` takes as long as searching a small repository, and an agent often searches for
//! the same pattern again: for its lines after its files, for the next page, in another directory.

use grep_regex::RegexMatcher;
use parking_lot::Mutex;

/// Everything that a compiled pattern depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MatcherKey {
    pub(crate) pattern: String,
    pub(crate) ignore_case: bool,
    pub(crate) crosses_lines: bool,
    pub(crate) dot_matches_new_line: bool,
}

/// Compiled patterns, the last used one last.
#[derive(Debug)]
pub(crate) struct MatcherCache(Mutex<Vec<(MatcherKey, RegexMatcher)>>);

/// A compiled pattern has at most 16 MB, and most have less than 2 MB. One search compiles up to four patterns.
const MAX_CACHED: usize = 4;

impl MatcherCache {
    pub(crate) const fn new() -> MatcherCache {
        MatcherCache(Mutex::new(Vec::new()))
    }

    /// The compiled pattern of a key, compiled with `compile` if it is not cached. The cache keeps a copy that never
    /// searches, since a matcher that has searched holds further memory.
    pub(crate) fn get<E>(
        &self,
        key: MatcherKey,
        compile: impl FnOnce(&MatcherKey) -> Result<RegexMatcher, E>,
    ) -> Result<RegexMatcher, E> {
        if let Some(cached) = self.cached(&key) {
            return Ok(cached);
        }
        // Without the lock: it may take long.
        let compiled = compile(&key)?;
        let mut matchers = self.0.lock();
        if matchers.iter().all(|(cached, _)| *cached != key) {
            if matchers.len() >= MAX_CACHED {
                matchers.remove(0);
            }
            matchers.push((key, compiled.clone()));
        }
        Ok(compiled)
    }

    fn cached(&self, key: &MatcherKey) -> Option<RegexMatcher> {
        let mut matchers = self.0.lock();
        let at = matchers.iter().position(|(cached, _)| cached == key)?;
        let used = matchers.remove(at);
        let matcher = used.1.clone();
        matchers.push(used);
        Some(matcher)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use grep_matcher::Matcher;
    use grep_regex::RegexMatcherBuilder;

    use super::*;

    #[test]
    fn a_pattern_is_compiled_again_only_with_other_options_or_after_many_others() {
        let (cache, compiled) = (MatcherCache::new(), Cell::new(0));
        let matches = |pattern: &str, ignore_case: bool| {
            let (crosses_lines, dot_matches_new_line) = (false, false);
            let pattern = pattern.to_owned();
            let key = MatcherKey { pattern, ignore_case, crosses_lines, dot_matches_new_line };
            let matcher = cache.get(key, |key| {
                compiled.set(compiled.get() + 1);
                let mut builder = RegexMatcherBuilder::new();
                builder.case_insensitive(key.ignore_case).build(&key.pattern)
            });
            matcher.unwrap().is_match(b"a word").unwrap()
        };
        assert!(matches("word", false) && matches("word", false) && compiled.get() == 1);
        assert!(!matches("Word", false) && matches("Word", true) && compiled.get() == 3);
        assert!(matches("a", false) && matches("word", false) && compiled.get() == 4);
        // The last used one is kept longest.
        assert!(!matches("b", false) && matches("word", false) && compiled.get() == 5);
        assert!(!matches("Word", false) && compiled.get() == 6);
    }
}
