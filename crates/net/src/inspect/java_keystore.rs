//! Adds an authority to a keystore of Java, in the format JKS.

use sha1::{Digest as _, Sha1};

/// The first bytes of a keystore, with the version.
const HEADER: [u8; 8] = [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2];

/// The tag of a trusted certificate.
const TRUSTED_CERTIFICATE: u32 = 2;

/// The digest at the end.
const DIGEST_BYTES: usize = 20;

/// The usual password of the list of authorities. It protects nothing.
const PASSWORD: &str = "changeit";

/// What the digest has between the password and the content.
const SALT: &[u8] = b"Mighty Aphrodite";

/// The keystore with one more certificate. `None` if it has another format.
pub(super) fn with_authority(keystore: &[u8], alias: &str, der: &[u8]) -> Option<Vec<u8>> {
    let content = keystore.get(..keystore.len().checked_sub(DIGEST_BYTES)?)?;
    let rest = content.strip_prefix(&HEADER)?;
    let (count, entries) = rest.split_first_chunk::<4>()?;
    let count = u32::from_be_bytes(*count).checked_add(1)?;
    let mut made = [&HEADER[..], &count.to_be_bytes(), entries].concat();
    made.extend(TRUSTED_CERTIFICATE.to_be_bytes());
    made.extend(text(alias)?);
    // The time at which it was added.
    made.extend(0_u64.to_be_bytes());
    made.extend(text("X.509")?);
    made.extend(u32::try_from(der.len()).ok()?.to_be_bytes());
    made.extend(der);
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let digest = Sha1::new().chain_update(password).chain_update(SALT).chain_update(&made);
    made.extend(digest.finalize());
    Some(made)
}

/// A text with its length.
fn text(text: &str) -> Option<Vec<u8>> {
    let length = u16::try_from(text.len()).ok()?.to_be_bytes();
    Some([&length[..], text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_number_of_certificates_grows() {
        let empty = [&HEADER[..], &[0; 4], &[0; DIGEST_BYTES]].concat();
        let one = with_authority(&empty, "a", b"certificate").unwrap();
        let two = with_authority(&one, "b", b"certificate").unwrap();
        assert_eq!((one[11], two[11]), (1, 2));
        assert!(two.starts_with(&HEADER) && two.len() > one.len());
        assert_eq!(with_authority(b"\x30\x82", "a", b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            with_authority(&bytes, "a", b"x");
            with_authority(&[&HEADER[..], &bytes].concat(), "a", b"x");
        }
    }
}
