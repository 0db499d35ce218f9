//! Variables that a call sets for its command only: exports before its script, so that the policy decides on them.

use toolcrib_text::visible_name;

use crate::error::Error;

/// A script with these variables.
pub(crate) fn with_exports<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    script: &str,
) -> String {
    let exports =
        variables.into_iter().map(|(name, value)| format!("export {name}={}; ", quoted(value)));
    exports.chain([script.to_owned()]).collect()
}

/// Fails if bash cannot export a variable with one of these names.
pub(crate) fn check_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), Error> {
    match names.into_iter().find(|name| !is_name(name)) {
        Some(name) => {
            let name = visible_name(name.as_bytes());
            Err(Error::invalid(format!("`env`: {name} is not a valid variable name"))
                .hint("Use letters, digits and _, and no digit at the start."))
        }
        None => Ok(()),
    }
}

/// A word that bash takes literally.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Bytes that bash takes literally as one word.
pub(crate) fn quoted_bytes(word: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = word.split(|byte| *byte == b'\'').collect();
    [b"'", parts.join(&b"'\\''"[..]).as_slice(), b"'"].concat()
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
