//! Warns about roots of other users. Root may write everything, but commands in the sandbox have only the rights of the
//! owner of a file: they could not write there although file tools can.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::args::RootArg;

/// Warnings for the operator, one sentence for each writable root of another user.
pub(crate) fn warnings(roots: &[RootArg]) -> Vec<String> {
    let Ok(us) = std::fs::metadata("/proc/self").map(|process| process.uid()) else {
        return Vec::new();
    };
    let writable = roots.iter().filter(|root| !root.read_only);
    let warned = writable.filter_map(|root| {
        let owner = std::fs::metadata(&root.directory).ok()?.uid();
        warning(&root.directory, owner, us)
    });
    warned.collect()
}

/// Other users than root cannot write there at all, which they see at once.
fn warning(root: &Path, owner: u32, us: u32) -> Option<String> {
    (us == 0 && owner != 0).then(|| {
        let root = root.display();
        format!(
            "the root {root} belongs to user {owner}, not to root. Commands in the sandbox cannot write in it, and git refuses it. Run `chown -R root {root}`, or run Toolcrib as user {owner}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_is_warned_about_directories_of_others() {
        let warned = |owner, us| warning(Path::new("/w"), owner, us);
        assert!(warned(1001, 0).unwrap().contains("/w belongs to user 1001"));
        assert_eq!(warned(0, 0), None);
        assert_eq!(warned(0, 1001), None);
        assert_eq!(warned(1001, 1001), None);
    }
}
