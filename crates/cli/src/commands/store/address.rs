//! The address of the store, with a password from where other users cannot see it.

use std::path::{Path, PathBuf};

use toolcrib::user_machine;
use toolcrib_store::StoreUrl;

/// An address, and the files that the password may be in.
pub(crate) struct StoreAddress {
    pub(crate) url: StoreUrl,
    pub(crate) files: Vec<PathBuf>,
}

/// The address in an argument: itself, or the path of a file with it.
pub(crate) fn url(argument: &str) -> Result<StoreAddress, String> {
    let words = |error: toolcrib_store::StoreError| error.to_string();
    let (url, mut files) = if StoreUrl::is_url(argument) {
        let url = StoreUrl::parse(argument).map_err(words)?;
        if url.has_password() {
            return Err(
                "other users can see a password in an argument: keep the address in a file that only you can read, and give its path; \
                 or leave the password out and use PGPASSFILE or PGPASSWORD"
                    .to_owned(),
            );
        }
        (url, Vec::new())
    } else if argument.contains("://") {
        return Err("the address of the store must begin with postgres://".to_owned());
    } else {
        let file = std::path::absolute(Path::new(argument));
        let file = file.map_err(|error| format!("{argument}: {error}"))?;
        if !file.exists() {
            return Err(format!(
                "{}: there is no such file with the address of a store",
                file.display()
            ));
        }
        (StoreUrl::read(&file).map_err(words)?, vec![file])
    };
    let mut url = url.or_password(std::env::var("PGPASSWORD").ok());
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let usual = || user_machine::home().map(|home| home.join(".pgpass"));
    if let Some(file) = named.or_else(usual).filter(|file| !url.has_password() && file.exists()) {
        url = url.or_password_in(&file).map_err(words)?;
        files.push(file);
    }
    Ok(StoreAddress { url, files })
}
