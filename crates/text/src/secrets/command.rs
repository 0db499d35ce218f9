//! Secrets in the words of a shell command: assignments and options with a telling name, and the options of programs that
//! take a password as an argument. Only commands are examined for them: in other texts such names are ordinary.
//!
//! The words are split like a shell does, without expanding anything. A quoted text with several words is examined as a
//! command, too, as in `sh -c '…'`.

use std::ops::Range;

use super::shape::{is_word_byte, prefix_len};

/// The text that replaces a value.
const PASSWORD: &str = "password";
const TOKEN: &str = "token";

/// A masked value has this. It is not masked again.
const MASKED: &[u8] = b"[masked:";

/// Quoted commands within quoted commands.
const MAX_DEPTH: usize = 3;

/// Longer names are not examined.
const MAX_NAME_BYTES: usize = 64;

/// Shorter values of a token are not masked: counters and flags have such names.
const MIN_TOKEN_BYTES: usize = 6;

/// Programs that take the password behind `-p`, in one word.
const MYSQL_PROGRAMS: &[&str] = &[
    "mysql",
    "mysqladmin",
    "mysqlbinlog",
    "mysqlcheck",
    "mysqldump",
    "mysqlimport",
    "mysqlpump",
    "mysqlshow",
    "mysqlslap",
    "mariadb",
    "mariadb-admin",
    "mariadb-backup",
    "mariadb-check",
    "mariadb-dump",
    "mariadb-import",
    "mariadb-show",
];

/// Options of curl without a value, which may stand before `u` in one word.
const CURL_FLAGS: &[u8] = b"#012346BGIJLMNOSafgijklnqsv";

/// The program that the next words belong to, as far as its options matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Curl,
    Mysql,
    Sshpass,
    Other,
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Any,
    /// The value of an option with this name, if it has the shape of one.
    Secret(SecretKind),
    /// The password of `sshpass -p`.
    Password,
    /// `user:password`.
    Login,
}

/// How certain a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretKind {
    Password,
    Token,
}

/// Passes the secrets in the words of a command to `found`, in order, with their names.
pub(super) fn for_each_argument(text: &str, found: &mut impl FnMut(Range<usize>, &'static str)) {
    let mut all = Vec::new();
    in_range(text.as_bytes(), 0..text.len(), MAX_DEPTH, &mut all);
    for (range, name) in all {
        // Words are split at ASCII characters only.
        if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
            found(range, name);
        }
    }
}

fn in_range(
    text: &[u8],
    range: Range<usize>,
    depth: usize,
    found: &mut Vec<(Range<usize>, &'static str)>,
) {
    let (mut program, mut expected) = (Program::Other, Expected::Any);
    let mut is_script = false;
    let mut at = range.start;
    while at < range.end {
        let byte = text[at];
        if matches!(byte, b' ' | b'\t' | b'\r') {
            at += 1;
        } else if is_operator(byte) {
            (program, expected) = (Program::Other, Expected::Any);
            at += 1;
        } else {
            let word = at..word_end(text, at, range.end);
            at = word.end;
            let inner = unquoted(text, word.clone());
            let bytes = &text[inner.clone()];
            let has_words = bytes.iter().any(u8::is_ascii_whitespace);
            let secret = if has_words && is_script {
                None
            } else {
                secret_in(bytes, inner.start, has_words, (&mut program, &mut expected))
            };
            is_script = precedes_script(bytes);
            if let Some((secret, name)) = secret {
                found.push((unquoted(text, secret), name));
            } else if depth > 0 && has_words {
                in_range(text, inner, depth - 1, found);
            }
        }
    }
}

/// The secret in a word at an offset, by the words before it. In a quoted text with several words, a name counts only at
/// its beginning: elsewhere it is a word of its own.
fn secret_in(
    bytes: &[u8],
    at: usize,
    has_words: bool,
    (program, expected): (&mut Program, &mut Expected),
) -> Option<(Range<usize>, &'static str)> {
    let word = at..at + bytes.len();
    let is_option = bytes.first() == Some(&b'-');
    match std::mem::replace(expected, Expected::Any) {
        Expected::Secret(kind) if !is_option && is_value(kind, bytes) => {
            return Some((word, kind.name()));
        }
        Expected::Password if is_value(SecretKind::Password, bytes) => {
            *program = Program::Other;
            return Some((word, PASSWORD));
        }
        Expected::Login => return login(bytes, word.start, 0),
        _ => {}
    }
    if let Some(named) = next_program(bytes) {
        *program = named;
        return None;
    }
    if let Some(found) = named_value(bytes, word.start, has_words) {
        return Some(found);
    }
    if is_option {
        if let Some(name) = bytes.strip_prefix(b"--")
            && let Some(kind) = kind_of(name, true)
        {
            *expected = Expected::Secret(kind);
            return None;
        }
        return option_of(*program, bytes, word.start, expected);
    }
    if *program == Program::Sshpass {
        // The command that gets the password.
        *program = Program::Other;
    }
    None
}

/// The secret in an option of a program. If it is the next word, `expected` says so.
fn option_of(
    program: Program,
    option: &[u8],
    at: usize,
    expected: &mut Expected,
) -> Option<(Range<usize>, &'static str)> {
    match program {
        Program::Mysql => {
            let password = option.strip_prefix(b"-p")?;
            let is_secret = is_value(SecretKind::Password, password);
            is_secret.then(|| (at + 2..at + option.len(), PASSWORD))
        }
        Program::Sshpass => match option.strip_prefix(b"-p")? {
            b"" => {
                *expected = Expected::Password;
                None
            }
            password if is_value(SecretKind::Password, password) => {
                Some((at + 2..at + option.len(), PASSWORD))
            }
            _ => None,
        },
        Program::Curl => {
            if matches!(option, b"--user" | b"--proxy-user") {
                *expected = Expected::Login;
                return None;
            }
            for name in [&b"--user="[..], b"--proxy-user="] {
                if option.starts_with(name) {
                    return login(option, at, name.len());
                }
            }
            let flags = prefix_len(option.get(1..)?, |byte| CURL_FLAGS.contains(byte));
            if !matches!(option.get(1 + flags), Some(b'u' | b'U')) {
                return None;
            }
            if option.len() == flags + 2 {
                *expected = Expected::Login;
                return None;
            }
            login(option, at, flags + 2)
        }
        Program::Other => None,
    }
}

/// The password of `user:password`, which begins at an offset of a word.
fn login(word: &[u8], at: usize, from: usize) -> Option<(Range<usize>, &'static str)> {
    let colon = word[from..].iter().position(|byte| *byte == b':')? + from;
    let is_secret = is_value(SecretKind::Password, &word[colon + 1..]);
    is_secret.then(|| (at + colon + 1..at + word.len(), PASSWORD))
}

/// The value behind `NAME=`, wherever in a word that is, or only at its beginning.
fn named_value(word: &[u8], at: usize, only_first: bool) -> Option<(Range<usize>, &'static str)> {
    let is_name = |byte: &u8| is_word_byte(byte) || *byte == b'.';
    let signs = word.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(sign, _)| sign);
    for sign in signs.take(if only_first { 1 } else { usize::MAX }) {
        let before = &word[sign.saturating_sub(MAX_NAME_BYTES)..sign];
        let length = before.iter().rev().take_while(|byte| is_name(byte)).count();
        let name = &before[before.len() - length..];
        if only_first && length < sign {
            return None;
        }
        let is_option = name.starts_with(b"-");
        let Some(kind) = kind_of(name, is_option) else { continue };
        let in_query = (sign - length).checked_sub(1).is_some_and(|at| b"?&".contains(&word[at]));
        let value = &word[sign + 1..];
        let value =
            if in_query { &value[..prefix_len(value, |byte| *byte != b'&')] } else { value };
        if is_value(kind, value) {
            let from = at + sign + 1;
            return Some((from..from + value.len(), kind.name()));
        }
    }
    None
}

/// The kind of secret that a name announces. The name of an option may be one word.
fn kind_of(name: &[u8], is_option: bool) -> Option<SecretKind> {
    let name = name.get(prefix_len(name, |byte| *byte == b'-')..)?.to_ascii_lowercase();
    let mut parts = name.split(|byte| b"_.-".contains(byte)).rev();
    let last = parts.next()?;
    let before = parts.next();
    if [&b"password"[..], b"passwd", b"passphrase"].iter().any(|end| last.ends_with(end)) {
        return Some(SecretKind::Password);
    }
    match (last, before) {
        // `PWD` is a directory, and `pass` a counter.
        (b"pass" | b"pwd" | b"pw", Some(_)) => Some(SecretKind::Password),
        (b"token" | b"secret", Some(_)) => Some(SecretKind::Token),
        (b"token" | b"secret" | b"apikey", _) if is_option => Some(SecretKind::Token),
        (b"key", Some(b"api" | b"secret" | b"access" | b"private")) => Some(SecretKind::Token),
        _ => None,
    }
}

impl SecretKind {
    fn name(self) -> &'static str {
        match self {
            SecretKind::Password => PASSWORD,
            SecretKind::Token => TOKEN,
        }
    }
}

/// Whether this is a value, and not what a shell or a template puts one in for. A token is longer and has letters; paths
/// are the names of files with a token.
fn is_value(kind: SecretKind, value: &[u8]) -> bool {
    let value = &value[prefix_len(value, |byte| b"\"'".contains(byte))..];
    let Some(first) = value.first().filter(|byte| !b"$`<{%*".contains(byte)) else { return false };
    let is_token = || {
        value.len() >= MIN_TOKEN_BYTES
            && value.iter().any(u8::is_ascii_alphabetic)
            && !b"/.~".contains(first)
    };
    let is_masked = value.windows(MASKED.len()).any(|part| part == MASKED);
    !is_masked && (kind == SecretKind::Password || is_token())
}

/// Whether the next word is a script: it follows `-c`, as for shells, or `eval`.
fn precedes_script(word: &[u8]) -> bool {
    let flags = word.strip_prefix(b"-").and_then(|flags| flags.strip_suffix(b"c"));
    word == b"eval" || flags.is_some_and(|flags| flags.iter().all(u8::is_ascii_lowercase))
}

/// The program that a word names, if its options matter.
fn next_program(word: &[u8]) -> Option<Program> {
    let name = word.rsplit(|byte| *byte == b'/').next()?;
    match name {
        b"curl" => Some(Program::Curl),
        b"sshpass" => Some(Program::Sshpass),
        _ if MYSQL_PROGRAMS.iter().any(|known| known.as_bytes() == name) => Some(Program::Mysql),
        _ => None,
    }
}

/// Ends a simple command.
fn is_operator(byte: u8) -> bool {
    b";|&()<>`\n".contains(&byte)
}

/// The end of the word that begins at `at`. Quotes that are not closed reach to the end.
fn word_end(text: &[u8], mut at: usize, end: usize) -> usize {
    let mut quote = None;
    while at < end {
        match (quote, text[at]) {
            (None, byte) if byte.is_ascii_whitespace() || is_operator(byte) => return at,
            (None, byte @ (b'\'' | b'"')) => quote = Some(byte),
            (None | Some(b'"'), b'\\') => at += 1,
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        at += 1;
    }
    end
}

/// The range without the quotes around it.
fn unquoted(text: &[u8], word: Range<usize>) -> Range<usize> {
    let bytes = &text[word.clone()];
    match bytes {
        [open @ (b'\'' | b'"'), .., close] if open == close => word.start + 1..word.end - 1,
        [b'\'' | b'"', ..] => word.start + 1..word.end,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Secrets;

    fn masked(command: &str) -> String {
        Secrets::default().mask_command(command).into_owned()
    }

    #[test]
    fn passwords_in_commands_are_masked() {
        for (command, expected) in [
            ("PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=[masked: password] psql -h db"),
            ("export MYSQL_PWD=hunter2; make", "export MYSQL_PWD=[masked: password]; make"),
            ("DB_PASSWORD='a b' ./run", "DB_PASSWORD='[masked: password]' ./run"),
            ("env DB_PASS=\"x&y\" ./run", "env DB_PASS=\"[masked: password]\" ./run"),
            ("docker run -e DB_PASSWORD=é x", "docker run -e DB_PASSWORD=[masked: password] x"),
            ("docker run \"-eA_PASSWORD=a b\"", "docker run \"-eA_PASSWORD=[masked: password]\""),
            ("java -Ddb.password=geheim -jar x", "java -Ddb.password=[masked: password] -jar x"),
            ("API_TOKEN=abc123def make", "API_TOKEN=[masked: token] make"),
            ("curl -u me:hunter2 https://x", "curl -u me:[masked: password] https://x"),
            ("curl -su 'me:a b' https://x", "curl -su 'me:[masked: password]' https://x"),
            ("/usr/bin/curl -ume:pw x", "/usr/bin/curl -ume:[masked: password] x"),
            ("curl x --user me:hunter2", "curl x --user me:[masked: password]"),
            ("curl --user=me:hunter2 x", "curl --user=me:[masked: password] x"),
            (
                "curl 'https://x/?password=a1&b=2'",
                "curl 'https://x/?password=[masked: password]&b=2'",
            ),
            ("x --password=hunter2 y", "x --password=[masked: password] y"),
            ("x --password hunter2 y", "x --password [masked: password] y"),
            ("x --db-password \"hun ter\" y", "x --db-password \"[masked: password]\" y"),
            ("x --token abc123def", "x --token [masked: token]"),
            ("x --api-key=abc123def", "x --api-key=[masked: token]"),
            ("mysql -u root -phunter2 db", "mysql -u root -p[masked: password] db"),
            ("mysql -p'a b' db", "mysql -p'[masked: password]' db"),
            ("cat a | sudo mysqldump -phunter2", "cat a | sudo mysqldump -p[masked: password]"),
            ("docker exec db mysql -pabc", "docker exec db mysql -p[masked: password]"),
            ("sshpass -p hunter2 ssh -p 2222 h", "sshpass -p [masked: password] ssh -p 2222 h"),
            ("sshpass -phunter2 scp -P 22 a h:", "sshpass -p[masked: password] scp -P 22 a h:"),
            ("sh -c 'mysql -phunter2 db'", "sh -c 'mysql -p[masked: password] db'"),
            ("bash -c \"A_PASSWORD='x y' z\"", "bash -c \"A_PASSWORD='[masked: password]' z\""),
            ("sh -c 'make A_PASSWORD=x all'", "sh -c 'make A_PASSWORD=[masked: password] all'"),
            ("env \"DB_PASSWORD=a b\" make", "env \"DB_PASSWORD=[masked: password]\" make"),
            ("a\nPGPASSWORD=x psql\nb", "a\nPGPASSWORD=[masked: password] psql\nb"),
            ("PGPASSWORD='not closed", "PGPASSWORD='[masked: password]"),
        ] {
            assert_eq!(masked(command), expected);
            assert_eq!(masked(expected), expected, "masking is idempotent");
        }
    }

    #[test]
    fn other_arguments_are_not_masked() {
        for command in [
            "docker run -p 8080:80 mysql",
            "docker run -p8080:80 --user 1000:1000 nginx",
            "ssh -p 2222 me@host",
            "mkdir -p a/b && cp -p a b",
            "mysql -u root -p db",
            "mysql -P3306 --port=3307",
            "sshpass -f file ssh -p 2222 host",
            "sshpass -e ssh -p 2222 host",
            "curl -u me https://x; git push -u origin:main",
            "curl -o out:put -X PUT x",
            "PGPASSWORD=$SECRET psql; A_PASSWORD=\"$(cat f)\" x; B_PASSWORD=${X} y",
            "docker login --password-stdin < file",
            "x --password",
            "x --password --verbose",
            "x --password-file=/run/secret --token-file t",
            "PWD=/src OLDPWD=/ make; pass=0; fail=1; token=3",
            "grep -rn password= src; grep -rn 'password=' src",
            "train --max_tokens=1000 --pad_token=7 --pass 2",
            "API_KEY=/run/key x; NPM_TOKEN=~/token y",
            "if [ \"$password\" = x ]; then echo no password: none; fi",
            "",
        ] {
            assert_eq!(masked(command), command);
        }
    }

    #[test]
    fn values_of_known_formats_are_masked_as_elsewhere() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(masked(&format!("echo {token}")), "echo [masked: GitHub token]");
        assert_eq!(masked(&format!("x --password {token}")), "x --password [masked: password]");
    }

    proptest! {
        #[test]
        fn masking_any_command_is_idempotent(
            command in "((PGPASSWORD=|--password |curl -u a:|mysql -p|sshpass -p)|[ -~é\n]{0,8}){0,6}"
        ) {
            let once = masked(&command);
            prop_assert_eq!(masked(&once), once.clone());
        }
    }

    /// Does not measure time: a quadratic scan would not finish.
    #[test]
    fn many_words_take_linear_time() {
        for piece in ["=", "a_password=", "--password ", "'", "\"a ", "'\"", "mysql -p", "\\"] {
            let _ = masked(&piece.repeat(400_000 / piece.len()));
        }
    }
}
