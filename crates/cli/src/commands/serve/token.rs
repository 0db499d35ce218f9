//! The token file, which only its owner can read.

use std::path::Path;

use toolcrib::{PrivateFile, PrivateFileError, random_bytes};
use toolcrib_mcp::Token;

/// Larger than any token.
const MAX_TOKEN_BYTES: u64 = 4_096;

/// Fails if the file exists and cannot be used. Creates none: other servers would see it until its path is recorded.
pub(in super::super) fn check(file: &Path) -> Result<(), String> {
    read(file).map(drop).map_err(|problem| at(file, &problem))
}

/// Reads the token. Creates a random one if the file does not exist.
pub(in super::super) fn read_or_make(file: &Path) -> Result<Token, String> {
    let found = || {
        let private = match read(file)? {
            (_, Some(token)) => return Ok(token),
            (private, None) => private,
        };
        private.create(new_token()?.as_bytes()).map_err(words)?;
        read(file)?.1.ok_or_else(|| "was removed after it was created".to_owned())
    };
    found().map_err(|problem| at(file, &problem))
}

/// The file in its directory, and the token if the file exists.
fn read(file: &Path) -> Result<(PrivateFile, Option<Token>), String> {
    let private = PrivateFile::locate(file).map_err(words)?;
    let content = private.read(MAX_TOKEN_BYTES).map_err(words)?;
    let token = content.map(|content| {
        let text = std::str::from_utf8(&content).map_err(|_| "is not text")?;
        Token::new(text).map_err(|error| error.to_string())
    });
    Ok((private, token.transpose()?))
}

fn at(file: &Path, problem: &str) -> String {
    format!("{}: {problem}", file.display())
}

fn new_token() -> Result<String, String> {
    let bytes = random_bytes::<32>().map_err(|error| error.to_string())?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat() + "\n")
}

/// Describes a problem with a file of tokens.
pub(super) fn words(error: PrivateFileError) -> String {
    problem("file", error)
}

/// Describes a problem with a file that has a secret.
pub(super) fn problem(secret: &str, error: PrivateFileError) -> String {
    match error {
        PrivateFileError::Io(error) => error.to_string(),
        PrivateFileError::NotPrivate(problem) => format!("the {secret} {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_created_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/http-token");
        read_or_make(&file).unwrap();
        let made = std::fs::read_to_string(&file).unwrap();
        assert_eq!(made.trim().len(), 64);
        read_or_make(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), made);
    }

    #[test]
    fn a_readable_or_short_token_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        for (content, mode, problem) in
            [("hunter2", 0o600, "at least 43"), (&"x".repeat(64), 0o644, "chmod 600")]
        {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let refusal = read_or_make(&file).unwrap_err();
            assert!(refusal.contains(problem), "{refusal}");
        }
    }
}
