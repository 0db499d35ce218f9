//! The part of a glob that concerns the last path component. It rejects most files without assembling their
//! paths.

use memchr::memmem::Finder;

/// Alternative name patterns that contain only literals and stars: `*.rs`, `Makefile`, `*sched*.{c,h}`.
#[derive(Debug, Clone)]
pub(crate) struct BasenameGlob(Vec<StarPattern>);

/// Literals with a star between each two.
#[derive(Debug, Clone)]
struct StarPattern {
    prefix: Box<[u8]>,
    middle: Vec<Finder<'static>>,
    /// `None` if there is no star. The name must then equal `prefix`.
    suffix: Option<Box<[u8]>>,
    /// The longest literal.
    longest: Finder<'static>,
}

/// Globs with more alternatives are matched as a whole.
const MAX_ALTERNATIVES: usize = 64;

impl BasenameGlob {
    /// The name patterns of a list of alternative globs. `None` if one of them is not simple enough.
    pub(crate) fn from_globs<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Option<BasenameGlob> {
        let mut alternatives = Vec::new();
        for pattern in patterns {
            let name = pattern.rsplit('/').next()?;
            let is_simple = !name.contains(['?', '[', ']', '\\']) && !name.contains("**");
            alternatives.extend(is_simple.then(|| expand_braces(name)).flatten()?);
            if alternatives.len() > MAX_ALTERNATIVES {
                return None;
            }
        }
        Some(BasenameGlob(
            alternatives.iter().map(|alternative| StarPattern::of(alternative)).collect(),
        ))
    }

    /// Whether a match is possible among names that are concatenated without separators.
    pub(crate) fn may_match_any(&self, names: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.longest.find(names).is_some())
    }

    /// Whether a name matches one of the alternatives.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.matches(name))
    }
}

/// Whether a glob accepts every directory before the last component.
pub(crate) fn matches_at_any_depth(pattern: &str) -> bool {
    pattern.strip_prefix("**/").is_some_and(|name| !name.contains('/'))
}

impl StarPattern {
    fn of(alternative: &str) -> StarPattern {
        let finder = |piece: &[u8]| Finder::new(piece).into_owned();
        let mut pieces = alternative.split('*').map(str::as_bytes);
        let longest = pieces.clone().max_by_key(|piece| piece.len()).unwrap_or_default();
        let prefix = pieces.next().unwrap_or_default().into();
        let suffix = pieces.next_back().map(Box::from);
        let middle = pieces.filter(|piece| !piece.is_empty()).map(finder).collect();
        StarPattern { prefix, middle, suffix, longest: finder(longest) }
    }

    fn matches(&self, name: &[u8]) -> bool {
        let Some(suffix) = &self.suffix else { return name == &*self.prefix };
        let middle = || name.strip_prefix(&*self.prefix)?.strip_suffix(&**suffix);
        let Some(mut rest) = middle() else { return false };
        self.middle.iter().all(|piece| match piece.find(rest) {
            Some(at) => {
                rest = &rest[at + piece.needle().len()..];
                true
            }
            None => false,
        })
    }
}

/// Expands braces into one name for each alternative. `None` if braces are nested, or if there are too many
/// alternatives.
fn expand_braces(name: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut rest = name;
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, braces) = rest.split_at(at);
        let (alternatives, after) = braces.strip_prefix('{')?.split_once('}')?;
        let count = alternatives.split(',').count();
        if alternatives.contains('{') || all.len() * count > MAX_ALTERNATIVES {
            return None;
        }
        let with = |begun: &String| -> Vec<String> {
            alternatives
                .split(',')
                .map(|alternative| format!("{begun}{plain}{alternative}"))
                .collect()
        };
        all = all.iter().flat_map(with).collect();
        rest = after;
    }
    all.iter_mut().for_each(|begun| begun.push_str(rest));
    Some(all)
}

#[cfg(test)]
mod tests {
    use globset::GlobBuilder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
        #[test]
        fn a_basename_matches_exactly_when_the_whole_glob_matches(
            pattern in r"(\*|a|b|\.c|,|\{(a|\*b?|\.c)?(,(b|a\*|cc)){0,2}\}){1,6}",
            name in "[abc.,]{1,8}",
        ) {
            let whole = GlobBuilder::new(&format!("**/{pattern}"))
                .literal_separator(true)
                .backslash_escape(true)
                .empty_alternates(true)
                .build()
                .unwrap()
                .compile_matcher();
            if let Some(last) = BasenameGlob::from_globs([pattern.as_str()]) {
                let fits = whole.is_match(&name);
                prop_assert_eq!(last.matches(name.as_bytes()), fits, "{}", pattern);
                let among = format!("x{name}y");
                prop_assert!(!fits || last.may_match_any(among.as_bytes()));
            } else {
                let has_braces = pattern.contains("{");
                prop_assert!(has_braces || pattern.contains("**"));
            }
        }
    }

    #[test]
    fn complex_globs_are_not_simplified() {
        for odd in ["a?", "[ab]", r"a\*", "a**b", "**", "{a,{b,c}}", "{a/b,c}", "x/{a,b/c}"] {
            assert!(BasenameGlob::from_globs([odd]).is_none(), "{odd}");
        }
        assert!(BasenameGlob::from_globs(["**/*.rs", "x/[ab]"]).is_none());
        assert!(matches_at_any_depth("**/*.rs") && !matches_at_any_depth("**/a/*.rs"));
        assert!(!matches_at_any_depth("*.rs") && !matches_at_any_depth("**/**/x"));
    }
}
