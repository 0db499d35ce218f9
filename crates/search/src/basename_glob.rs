//! What a pattern of paths says about the last name of a path: enough to leave out most files without putting
//! their paths together.

use memchr::memmem::Finder;

/// Choices of names with stars in them: `*.rs`, `Makefile`, `*sched*.{c,h}`.
#[derive(Debug, Clone)]
pub(crate) struct LastName(Vec<Stars>);

/// Pieces of a name, and anything between them.
#[derive(Debug, Clone)]
struct Stars {
    first: Box<[u8]>,
    between: Vec<Finder<'static>>,
    /// Nothing, if there is no star: then the first is all.
    last: Option<Box<[u8]>>,
    /// The longest of the pieces.
    longest: Finder<'static>,
}

/// More choices than these are left to the pattern as a whole.
const MAX_CHOICES: usize = 64;

impl LastName {
    /// What the patterns say, of which a path has to fit one. Nothing, if one of them is not as simple.
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

    /// Whether one of those may be among names that are written one after the other.
    pub(crate) fn may_be_among(&self, names: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.longest.find(names).is_some())
    }

    /// Whether a name is one of those.
    pub(crate) fn fits(&self, name: &[u8]) -> bool {
        self.0.iter().any(|stars| stars.fit(name))
    }
}

/// Whether a pattern says nothing about the names before the last.
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

/// A name with braces as one name for each choice; nothing, if there are braces in braces, or too many.
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
        fn a_name_fits_just_when_the_pattern_fits_as_a_whole(
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
    fn what_is_not_simple_is_left_to_the_pattern() {
        for odd in ["a?", "[ab]", r"a\*", "a**b", "**", "{a,{b,c}}", "{a/b,c}", "x/{a,b/c}"] {
            assert!(LastName::of([odd]).is_none(), "{odd}");
        }
        assert!(LastName::of(["**/*.rs", "x/[ab]"]).is_none());
        assert!(is_at_any_depth("**/*.rs") && !is_at_any_depth("**/a/*.rs"));
        assert!(!is_at_any_depth("*.rs") && !is_at_any_depth("**/**/x"));
    }
}
