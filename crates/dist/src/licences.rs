//! Licence texts that go with the program: ours, and those of the crates in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::workspace;

use super::archive_entry::Entry;
use super::components::{self, Component};

/// Our own licence files.
pub(super) const OURS: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The name of the file with all others.
const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES";

/// What a file with a licence text is called.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The files, at the top of an archive.
pub(super) fn entries() -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for name in OURS {
        entries.push(Entry::file(name, fs::read(workspace::root().join(name))?));
    }
    entries.push(Entry::file(THIRD_PARTY, third_party()?));
    Ok(entries)
}

/// One text with the licences of all crates in the program.
pub(super) fn third_party() -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut page = String::from("Toolcrib contains these crates:\n\n");
    let all = components::of_product()?;
    // Ours have no checksum of a published crate.
    for component in all.iter().filter(|one| one.checksum.is_some() && !one.is_macro) {
        let Component { name, version, licence, directory, .. } = component;
        let _ = writeln!(page, "{name} {version}: {}", licence.as_deref().unwrap_or("see below"));
        for text in texts_in(directory)? {
            texts.entry(text).or_default().push(format!("{name} {version}"));
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().collect();
    texts.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (text, crates) in texts {
        let _ =
            write!(page, "\n{}\n{}:\n\n{}\n", "-".repeat(80), crates.join(", "), text.trim_end());
    }
    Ok(page)
}

/// The licence texts at the top of the sources of a crate.
fn texts_in(directory: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in fs::read_dir(directory)? {
        let file = file?;
        if is_licence(&file.file_name().to_string_lossy()) && file.file_type()?.is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(file.path())?).into_owned());
        }
    }
    texts.sort();
    Ok(texts)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_files_are_known_by_their_names() {
        for name in ["LICENSE", "LICENSE-MIT", "license.txt", "COPYING", "NOTICE.md"] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["README.md", "src", "Cargo.toml"] {
            assert!(!is_licence(name), "{name}");
        }
    }
}
