//! The paths of the table in home directories, sorted by the compiler: each call of the command line needs them sorted.

use super::table::IN_HOME;

const COUNT: usize = {
    let (mut count, mut kind) = (0, 0);
    while kind < IN_HOME.len() {
        count += IN_HOME[kind].1.len();
        kind += 1;
    }
    count
};

/// The paths in the order of [`std::path::Path`], which compares their components.
pub(super) static SORTED_IN_HOME: [&str; COUNT] = merge_sort(listed());

const fn listed() -> [&'static str; COUNT] {
    let mut all = [""; COUNT];
    let (mut count, mut kind) = (0, 0);
    while kind < IN_HOME.len() {
        let (paths, mut at) = (IN_HOME[kind].1, 0);
        while at < paths.len() {
            all[count] = paths[at];
            count += 1;
            at += 1;
        }
        kind += 1;
    }
    all
}

const fn merge_sort(mut paths: [&'static str; COUNT]) -> [&'static str; COUNT] {
    let mut width = 1;
    while width < COUNT {
        let runs = paths;
        let mut at = 0;
        while at < COUNT {
            let (middle, end) = (bounded(at + width), bounded(at + 2 * width));
            let (mut left, mut right) = (at, middle);
            while at < end {
                let takes_left =
                    right == end || (left < middle && is_before(runs[left], runs[right]));
                let taken = if takes_left { &mut left } else { &mut right };
                paths[at] = runs[*taken];
                *taken += 1;
                at += 1;
            }
        }
        width *= 2;
    }
    paths
}

const fn bounded(at: usize) -> usize {
    if at < COUNT { at } else { COUNT }
}

/// Whether a path is before another one. A slash is before any other byte.
const fn is_before(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] == b'/' || (other[at] != b'/' && one[at] < other[at]);
        }
        at += 1;
    }
    one.len() < other.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_paths_are_in_the_order_of_their_components() {
        let expected: BTreeSet<&Path> =
            IN_HOME.iter().flat_map(|(_, paths)| *paths).map(Path::new).collect();
        assert!(SORTED_IN_HOME.iter().map(Path::new).eq(expected));
    }
}
