//! `SHA256SUMS`, which `sha256sum --check` reads.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::Artefact;

/// The name of the file.
pub(super) const NAME: &str = "SHA256SUMS";

/// The file for these artefacts.
pub(super) fn of(artefacts: &[Artefact]) -> String {
    let mut lines = String::new();
    for Artefact { name, bytes } in artefacts {
        let _ = writeln!(lines, "{}  {name}", sha256(bytes));
    }
    lines
}

/// In hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_sha256sum_prints_it() {
        let artefact = Artefact { name: "a".to_owned(), bytes: b"abc".to_vec() };
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(&[artefact]), format!("{hash}  a\n"));
    }
}
