//! Cache of the login environment, in a file of the state directory that only its owner can read.
//!
//! Values that look secret are not stored.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcrib_exec::Environment;
use toolcrib_fs::PrivateFile;
use toolcrib_text::Secrets;

use super::Variables;

/// More than an environment has.
const MAX_BYTES: u64 = 4 << 20;

/// First and last part of the file.
const BEGIN: &[u8] = b"toolcrib login 1";
const END: &[u8] = b"end";

/// Maximum age of a result. Files that the shell's own files include may have changed.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// A cached result.
pub(super) struct CachedLogin {
    pub(super) variables: Variables,
    /// The result is old, or secrets that must be masked were omitted: run the shell again.
    pub(super) run_again: bool,
}

pub(super) fn path(state: &Path) -> PathBuf {
    state.join("login-environment")
}

/// The cached result for this fingerprint.
pub(super) fn read(state: &Path, fingerprint: &str) -> Option<CachedLogin> {
    let content = PrivateFile::locate(&path(state)).ok()?.read(MAX_BYTES).ok()??;
    parse(&content, fingerprint)
}

/// Stores a result. If that fails, the shell runs again next time.
pub(super) fn write(state: &Path, fingerprint: &str, variables: &Variables) {
    let content = format(fingerprint, SystemTime::now(), variables);
    if let Ok(file) = PrivateFile::locate(&path(state)) {
        let _ = file.replace(&content);
    }
}

fn format(fingerprint: &str, now: SystemTime, variables: &Variables) -> Vec<u8> {
    let secrets =
        Environment::from_user(variables.clone(), |value| Secrets::default().are_in(value)).secrets;
    let has_secrets = if secrets.is_empty() { "0" } else { "1" };
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut parts = vec![
        BEGIN.to_vec(),
        fingerprint.as_bytes().to_vec(),
        seconds.to_string().into_bytes(),
        has_secrets.as_bytes().to_vec(),
    ];
    let plain = variables.iter().filter(|variable| !secrets.contains(variable));
    parts.extend(plain.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()));
    parts.push(END.to_vec());
    parts.join(&0)
}

fn parse(content: &[u8], fingerprint: &str) -> Option<CachedLogin> {
    let parts: Vec<&[u8]> = content.split(|&byte| byte == 0).collect();
    let [BEGIN, known, seconds, has_secrets, variables @ .., END] = parts.as_slice() else {
        return None;
    };
    if *known != fingerprint.as_bytes() {
        return None;
    }
    let seconds = std::str::from_utf8(seconds).ok()?.parse().ok()?;
    let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_secs(seconds));
    let is_old = age.map_or(true, |age| age > MAX_AGE);
    let variable = |entry: &&[u8]| {
        let equals = entry.iter().position(|&byte| byte == b'=')?;
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((text(entry.get(..equals)?), text(entry.get(equals + 1..)?)))
    };
    let variables = variables.iter().filter_map(variable).collect();
    Some(CachedLogin { variables, run_again: is_old || *has_secrets != b"0" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_round_trips_without_secrets() {
        let variables: Variables = vec![
            ("PATH".into(), "/nvm:/bin".into()),
            ("TWO".into(), "a\nb=c".into()),
            ("MY_TOKEN".into(), "hunter22hunter".into()),
        ];
        let content = format("a fingerprint", SystemTime::now(), &variables);
        assert!(!String::from_utf8_lossy(&content).contains("hunter22"));
        let kept = parse(&content, "a fingerprint").unwrap();
        assert_eq!(kept.variables, variables[..2]);
        assert!(kept.run_again, "for the secret to be masked");
        assert!(parse(&content, "another").is_none());
        assert!(parse(&content[..content.len() - 1], "a fingerprint").is_none(), "cut off");

        let plain = variables[..2].to_vec();
        let now = SystemTime::now();
        assert!(!parse(&format("f", now, &plain), "f").unwrap().run_again);
        assert!(parse(&format("f", now - 2 * MAX_AGE, &plain), "f").unwrap().run_again);
    }
}
