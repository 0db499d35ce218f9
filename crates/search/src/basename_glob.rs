//! The part of a glob that concerns the last path component. It rejects most files without assembling their
//! paths.

use memchr::memmem::Finder;

/// Alternative name patterns that contain only literals and stars: `*.rs`, `Makefile`, `*sched*.{c,h}`.
#[derive(Debug, Clone)]
pub(crate) struct LastName(Vec<Stars>);

/// Literals with a star between each two.
#[derive(Debug, Clone)]
struct Stars {
    first: Box<[u8]>,
    between: Vec<Finder<'static>>,
    /// `None` if there is no star. The name must then equal `prefix`.
    last: Option<Box<[u8]>>,
    /// The longest literal.
    longest: Finder<'static>,
}

/// Globs with more alternatives are matched as a whole.
const MAX_CHOICES: usize = 64;

impl LastName {
    /// The name patterns of a list of alternative globs. `None` if one of them is not simple enough.
    pub(crate) fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Option<LastName> {
        let mut choices = Vec::new();
        for pattern in patterns {
            let name = pattern.rsplit('/').next()?;
            let is_simple = !name.contains(['?', '[', ']', '\\']) && !name.contains("**");
            choices.extend(is_simple.then(|| spelled_out(name)).flatten()?);
            if choices.len() > MAX_CHOICES {
                return None;
            }
        }
        Some(LastName(choices.iter().map(|choice| Stars::of(choice)).collect()))
    }

    /// Whether a match is possible among names that are concatenated without separators.
    pub(crate) fn may_be_among(&self, names: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.longest.find(names).is_some())
    }

    /// Whether a name matches one of the alternatives.
    pub(crate) fn fits(&self, name: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.fit(name))
    }
}

/// Whether a glob accepts every directory before the last component.
pub(crate) fn is_at_any_depth(pattern: &str) -> bool {
    pattern.strip_prefix("**/").is_some_and(|name| !name.contains('/'))
}

impl Stars {
    fn of(choice: &str) -> Stars {
        let finder = |piece: &[u8]| Finder::new(piece).into_owned();
        let mut pieces = choice.split('*').map(str::as_bytes);
        let longest = pieces.clone().max_by_key(|piece| piece.len()).unwrap_or_default();
        let first = pieces.next().unwrap_or_default().into();
        let last = pieces.next_back().map(Box::from);
        let between = pieces.filter(|piece| !piece.is_empty()).map(finder).collect();
        Stars { first, between, last, longest: finder(longest) }
    }

    fn fit(&self, name: &[u8]) -> bool {
        let Some(last) = &self.last else { return name == &*self.first };
        let between = || name.strip_prefix(&*self.first)?.strip_suffix(&**last);
        let Some(mut rest) = between() else { return false };
        self.between.iter().all(|piece| match piece.find(rest) {
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
fn spelled_out(name: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut rest = name;
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, braces) = rest.split_at(at);
        let (choices, after) = braces.strip_prefix('{')?.split_once('}')?;
        let count = choices.split(',').count();
        if choices.contains('{') || all.len() * count > MAX_CHOICES {
            return None;
        }
        let with = |begun: &String| -> Vec<String> {
            choices.split(',').map(|choice| format!("{begun}{plain}{choice}")).collect()
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
            if let Some(last) = LastName::of([pattern.as_str()]) {
                let fits = whole.is_match(&name);
                prop_assert_eq!(last.fits(name.as_bytes()), fits, "{}", pattern);
                let among = format!("x{name}y");
                prop_assert!(!fits || last.may_be_among(among.as_bytes()));
            } else {
                let has_braces = pattern.contains("{");
                prop_assert!(has_braces || pattern.contains("**"));
            }
        }
    }

    #[test]
    fn complex_globs_are_not_simplified() {
        for odd in ["a?", "[ab]", r"a\*", "a**b", "**", "{a,{b,c}}", "{a/b,c}", "x/{a,b/c}"] {
            assert!(LastName::of([odd]).is_none(), "{odd}");
        }
        assert!(LastName::of(["**/*.rs", "x/[ab]"]).is_none());
        assert!(is_at_any_depth("**/*.rs") && !is_at_any_depth("**/a/*.rs"));
        assert!(!is_at_any_depth("*.rs") && !is_at_any_depth("**/**/x"));
    }
}
