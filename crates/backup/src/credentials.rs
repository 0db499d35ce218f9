//! The keys of an object store, from the variables and the files of Amazon's tools, which other servers use too.

use std::fmt;

use crate::error::BackupError;

/// The keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) key_id: String,
    pub(crate) secret: String,
    pub(crate) session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.key_id)
    }
}

impl Credentials {
    /// The keys in variables. `None` if they are not set.
    ///
    /// # Errors
    ///
    /// Fails if a value cannot be one.
    pub fn in_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Credentials>, BackupError> {
        let (id, secret) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"));
        match (id, secret) {
            (Some(key_id), Some(secret)) => {
                let session_token = variable("AWS_SESSION_TOKEN");
                Credentials { key_id, secret, session_token }.checked().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The keys of a profile in the text of a credentials file. `None` if it has none.
    ///
    /// # Errors
    ///
    /// Fails if a value cannot be one.
    pub fn in_file(text: &str, profile: &str) -> Result<Option<Credentials>, BackupError> {
        let value = |key: &str| file_value(text, profile, key);
        match (value("aws_access_key_id"), value("aws_secret_access_key")) {
            (Some(key_id), Some(secret)) => {
                let session_token = value("aws_session_token");
                Credentials { key_id, secret, session_token }.checked().map(Some)
            }
            _ => Ok(None),
        }
    }

    fn checked(self) -> Result<Credentials, BackupError> {
        let is_text =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        let all = [Some(&self.key_id), Some(&self.secret), self.session_token.as_ref()];
        if all.into_iter().flatten().all(|text| is_text(text)) {
            Ok(self)
        } else {
            Err(BackupError::settings(
                "the keys of the object store have characters that keys cannot have",
            ))
        }
    }
}

/// The value of a key of a profile in a configuration or credentials file.
pub fn file_value(text: &str, profile: &str, key: &str) -> Option<String> {
    let mut is_inside = false;
    let mut found = None;
    for line in text.lines() {
        // The values of nested settings are indented.
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let name = section.trim();
            is_inside = name.strip_prefix("profile ").map_or(name, str::trim) == profile;
        } else if is_inside
            && !is_nested
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            found = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_variables_and_files() {
        let variable = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("id".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret".to_owned()),
            _ => None,
        };
        let keys = Credentials::in_variables(variable).unwrap().unwrap();
        assert_eq!((keys.key_id.as_str(), keys.secret.as_str()), ("id", "secret"));
        assert!(!format!("{keys:?}").contains("secret"));
        assert_eq!(Credentials::in_variables(|_| None).unwrap(), None);
        assert!(Credentials::in_variables(|_| Some("a\nb".to_owned())).is_err());
        let file = "[default]\naws_access_key_id = a\naws_secret_access_key=b\n# x\n[other]\naws_access_key_id=c\n";
        let keys = Credentials::in_file(file, "default").unwrap().unwrap();
        assert_eq!((keys.key_id.as_str(), keys.secret.as_str()), ("a", "b"));
        assert_eq!(Credentials::in_file(file, "other").unwrap(), None);
        let config = "[profile x]\ns3 =\n  region = no\nregion = eu-central-1\n[default]\nregion=z";
        assert_eq!(file_value(config, "x", "region").as_deref(), Some("eu-central-1"));
        assert_eq!(file_value(config, "default", "region").as_deref(), Some("z"));
    }
}
