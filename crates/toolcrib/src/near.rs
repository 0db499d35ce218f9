//! The name that was probably meant.

/// Below this two names have little to do with each other.
const LIKENESS: f64 = 0.75;

/// The candidates that are most like `name`, best first, at most `most`. Case does not matter.
pub(crate) fn near<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let name = fold(name);
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &fold(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
    scored.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// A name without regard to case and `_`: how tools and fields are compared.
pub(crate) fn fold(name: &str) -> String {
    name.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["file_path", "offset", "limit"];
        assert_eq!(near("fil_path", names, 1), ["file_path"]);
        assert_eq!(near("filePath", names, 1), ["file_path"]);
        assert_eq!(near("colour", names, 1), [""; 0]);
    }
}
