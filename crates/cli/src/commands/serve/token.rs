//! The file with the token: its owner's alone.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use toolcrib::random_bytes;
use toolcrib_mcp::Token;

/// More than any token has.
const MAX_TOKEN_BYTES: u64 = 4_096;

/// The token in a file; if there is none, one that nobody can guess is put there.
pub(super) fn read_or_make(file: &Path) -> Result<Token, String> {
    let found = || match read(file)? {
        Some(token) => Ok(token),
        None => {
            make(file)?;
            read(file)?.ok_or_else(|| "is gone again".to_owned())
        }
    };
    found().map_err(|problem: String| format!("{}: {problem}", file.display()))
}

fn read(file: &Path) -> Result<Option<Token>, String> {
    let opened = match OpenOptions::new().read(true).open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let meta = opened.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("is no file".to_owned());
    }
    if meta.mode() & 0o077 != 0 {
        return Err(
            "others may read or write it, and so have the token; `chmod 600` it, or remove \
             it for a new token"
                .to_owned(),
        );
    }
    let mut text = String::new();
    let read = opened.take(MAX_TOKEN_BYTES).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Token::new(&text).map(Some).map_err(|error| error.to_string())
}

/// Makes the file whole, or finds that somebody else just did.
fn make(file: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let hex = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
    let token = random_bytes::<32>().map(hex).map_err(|error| error.to_string())?;
    if let Some(directory) = file.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(text)?;
    }
    let draft = file.with_extension(format!("{}.draft", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut draft| draft.write_all(format!("{token}\n").as_bytes()))
        .and_then(|()| std::fs::hard_link(&draft, file));
    let _ = std::fs::remove_file(&draft);
    match written {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/http-token");
        read_or_make(&file).unwrap();
        let made = std::fs::read_to_string(&file).unwrap();
        assert_eq!(made.trim().len(), 64);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        read_or_make(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), made);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_can_read_or_guess_is_none() {
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
