//! Names that a listing omits.

use toolcrib_policy::name_matches;

/// Patterns of names.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    /// Also accepts the syntax of other tools: `**/dist/` is `dist`.
    pub(super) fn parse(patterns: &[String]) -> Patterns {
        let name = |pattern: &String| {
            pattern
                .trim_start_matches("**/")
                .trim_end_matches("/**")
                .trim_end_matches('/')
                .to_owned()
        };
        Patterns(patterns.iter().map(name).collect())
    }

    pub(super) fn match_name(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| name_matches(pattern, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_directories_are_patterns_of_their_names() {
        let patterns = Patterns::parse(&["*.o".into(), "dist/".into(), "**/cache/**".into()]);
        assert!(["x.o", "dist", "cache"].into_iter().all(|name| patterns.match_name(name)));
        assert!(!["x.oo", "dists"].into_iter().any(|name| patterns.match_name(name)));
    }
}
