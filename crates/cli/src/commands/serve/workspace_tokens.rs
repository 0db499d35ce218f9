//! The file with a token for each workspace, which only its owner can read. It is read again when it has changed, so that
//! workspaces can be added and tokens replaced while the server runs.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use toolcrib::{PrivateFile, user_machine};
use toolcrib_mcp::{Token, WorkspaceId};

use super::file_version::{FileVersion, file_version};
use super::token;
use crate::output;

/// Larger than the tokens of any number of workspaces that one process serves.
const MAX_BYTES: u64 = 4 << 20;

/// The tokens in a file.
pub(super) struct WorkspaceTokens {
    file: PathBuf,
    read: Mutex<TokensRead>,
}

struct TokensRead {
    /// The version of the file.
    version: Option<FileVersion>,
    /// `None` if nobody has access, because the file cannot be used.
    tokens: Option<Vec<(WorkspaceId, Token)>>,
}

/// Why a file of tokens cannot be used.
#[derive(Debug)]
enum Problem {
    /// A mistake in the content. The earlier content stays valid, so that a typing error does not lock everybody out.
    Content(String),
    /// There is no such file, or others could read it, or it has no token. Nobody has access.
    File(String),
}

impl WorkspaceTokens {
    /// Reads the file. Fails if it is missing or invalid, or if its directory is not private.
    pub(super) fn read(file: PathBuf) -> Result<WorkspaceTokens, String> {
        check_directory(&file)?;
        let version = file_version(&file);
        let tokens =
            tokens(&file).map_err(|(Problem::Content(text) | Problem::File(text))| text)?;
        Ok(WorkspaceTokens { file, read: Mutex::new(TokensRead { version, tokens: Some(tokens) }) })
    }

    /// Whether a token is valid for a workspace; without one, whether it is valid for any.
    pub(super) fn admits(&self, workspace: Option<&WorkspaceId>, given: &[u8]) -> bool {
        let mut read = self.read.lock();
        read.update(&self.file);
        let of_workspace = |id: &WorkspaceId| workspace.is_none_or(|wanted| wanted == id);
        let candidates = read.tokens.iter().flatten().filter(|(id, _)| of_workspace(id));
        let given = Token::hash_of(given);
        // Without an early end, so that the time does not tell which one it is.
        candidates.fold(false, |found, (_, token)| token.has_hash(&given) | found)
    }

    /// Whether there are tokens to compare with.
    pub(super) fn are_known(&self) -> bool {
        let mut read = self.read.lock();
        read.update(&self.file);
        read.tokens.is_some()
    }
}

impl TokensRead {
    /// Reads the file again if it has changed. Reports a problem once for each change.
    fn update(&mut self, file: &Path) {
        let version = file_version(file);
        if version == self.version {
            return;
        }
        self.version = version;
        match tokens(file) {
            Ok(tokens) => self.tokens = Some(tokens),
            Err(Problem::Content(text)) if self.tokens.is_some() => output::warning(&format!(
                "the changes of the tokens do not apply, and the earlier tokens stay valid: {text}"
            )),
            Err(Problem::Content(text) | Problem::File(text)) => {
                self.tokens = None;
                output::warning(&format!("all requests are refused: {text}"));
            }
        }
    }
}

/// The directory of the tokens is hidden from commands, not only the file: a file that takes the place of another is not
/// hidden from commands that run already, and editors leave copies beside it.
pub(super) fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

fn check_directory(file: &Path) -> Result<(), String> {
    let directory = directory(file);
    let about = std::fs::metadata(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let is_home = user_machine::home().is_some_and(|home| home == directory);
    if is_home || about.mode() & 0o077 != 0 {
        let shown = directory.display();
        return Err(format!(
            "{shown}: the file of tokens needs a directory of its own with mode 0700, which no command sees: `mkdir -m 700 DIR`, move the file there, and name it with --workspace-tokens DIR/FILE"
        ));
    }
    Ok(())
}

/// Reads the tokens in a file.
fn tokens(file: &Path) -> Result<Vec<(WorkspaceId, Token)>, Problem> {
    let at = |problem: String| format!("{}: {problem}", file.display());
    let in_file = |problem: String| Problem::File(at(problem));
    let private = PrivateFile::locate(file).map_err(|error| in_file(token::words(error)))?;
    let content = private.read(MAX_BYTES + 1).map_err(|error| in_file(token::words(error)))?;
    let content = content.ok_or_else(|| in_file("the file does not exist".to_owned()))?;
    let tokens = parse(&content).map_err(|problem| Problem::Content(at(problem)))?;
    if tokens.is_empty() {
        return Err(in_file("the file has no token; a line is `ID TOKEN`".to_owned()));
    }
    Ok(tokens)
}

/// Parses the lines `ID TOKEN`. Empty lines and lines with `#` at the beginning are skipped.
fn parse(content: &[u8]) -> Result<Vec<(WorkspaceId, Token)>, String> {
    if content.len() as u64 > MAX_BYTES {
        return Err(format!("a file of tokens has at most {MAX_BYTES} bytes"));
    }
    let text = std::str::from_utf8(content).map_err(|_| "the file is not text")?;
    let mut first_lines: HashMap<&str, usize> = HashMap::new();
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (id, token) =
            token_line(line).map_err(|problem| format!("line {number}: {problem}"))?;
        // The client of one workspace would have access to another.
        if let Some(first) = first_lines.insert(token, number) {
            return Err(format!(
                "line {number}: line {first} has the same token; each workspace needs a token of its own"
            ));
        }
        let parsed = Token::new(token).map_err(|error| format!("line {number}: {error}"))?;
        tokens.push((id, parsed));
    }
    Ok(tokens)
}

fn token_line(line: &str) -> Result<(WorkspaceId, &str), String> {
    let (id, token) = line.split_once([' ', '\t']).ok_or("a line is `ID TOKEN`")?;
    let id = WorkspaceId::parse(id).ok_or(
        "the name of a workspace has 1 to 64 letters, digits, `-`, `_` or `.`, and no `.` first",
    )?;
    Ok((id, token.trim()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn private_directory() -> tempfile::TempDir {
        let private = std::fs::Permissions::from_mode(0o700);
        tempfile::Builder::new().permissions(private).tempdir().unwrap()
    }

    fn write(file: &Path, text: &str, mode: u32) {
        std::fs::write(file, text).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_token_is_valid_for_its_workspace_only() {
        let directory = private_directory();
        let file = directory.path().join("tokens");
        let [one, two, three] = ["1", "2", "3"].map(|digit| digit.repeat(64));
        write(&file, &format!("# tokens\n\na {one}\nb\t{two}\nb {three}\n"), 0o600);
        let tokens = WorkspaceTokens::read(file.clone()).unwrap();
        let is = |id: Option<&str>, token: &str| {
            let id = id.map(|id| WorkspaceId::parse(id).unwrap());
            tokens.admits(id.as_ref(), token.as_bytes())
        };
        assert!(is(Some("a"), &one) && is(Some("b"), &two) && is(Some("b"), &three));
        assert!(!is(Some("a"), &two) && !is(Some("b"), &one) && !is(Some("c"), &one));
        assert!(!is(Some("A"), &one) && !is(Some("a"), "") && !is(None, "x"));
        assert!(is(None, &one) && is(None, &three));
        // Changes apply at once.
        write(&file, &format!("c {one}\n"), 0o600);
        assert!(!is(Some("a"), &one) && is(Some("c"), &one));
        // A mistake in the file changes nothing.
        write(&file, &format!("a {two}\nc\n"), 0o600);
        assert!(!is(Some("a"), &two) && is(Some("c"), &one) && tokens.are_known());
        write(&file, &format!("a {two}\nc {two}\n"), 0o600);
        assert!(!is(Some("a"), &two) && is(Some("c"), &one) && tokens.are_known());
        // A file that is not private, or is missing or empty, admits nobody.
        write(&file, &format!("c {one}\n"), 0o644);
        assert!(!is(Some("c"), &one) && !is(None, &one) && !tokens.are_known());
        write(&file, "c\n", 0o600);
        assert!(!is(Some("c"), &one) && !tokens.are_known());
        write(&file, &format!("c {one}\n"), 0o600);
        assert!(is(Some("c"), &one) && tokens.are_known());
        write(&file, "# none\n", 0o600);
        assert!(!is(Some("c"), &one) && !tokens.are_known());
        std::fs::remove_file(&file).unwrap();
        assert!(!is(Some("c"), &one) && !tokens.are_known());
        write(&file, &format!("c {one}\n"), 0o600);
        assert!(is(Some("c"), &one) && tokens.are_known());
    }

    #[test]
    fn an_invalid_file_is_refused() {
        let directory = private_directory();
        let file = directory.path().join("tokens");
        let refusal = || WorkspaceTokens::read(file.clone()).err().unwrap();
        assert!(refusal().contains("does not exist"), "{}", refusal());
        let token = "1".repeat(64);
        for (text, mode, problem) in [
            (format!("\n{token}\n"), 0o600, "line 2: a line is `ID TOKEN`"),
            (format!("../a {token}\n"), 0o600, "line 1: the name of a workspace"),
            ("a short\n".to_owned(), 0o600, "line 1: a token has at least 43"),
            (format!("a {token} b\n"), 0o600, "line 1: a token has at least 43"),
            (
                format!("a {token}\n"),
                0o640,
                "the file can be read or written by other users; run `chmod 600`",
            ),
            (String::new(), 0o600, "has no token"),
            ("# a\n".to_owned(), 0o600, "has no token"),
            (format!("a {token}\n\nb  {token}\n"), 0o600, "line 3: line 1 has the same token"),
            (format!("a {token}\na {token}\n"), 0o600, "line 2: line 1 has the same token"),
        ] {
            write(&file, &text, mode);
            assert!(refusal().contains(problem), "{}", refusal());
        }
    }
}
