//! Parses the state that a shell reports at its end: exit codes, directory and exported variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::command::ShellState;

/// Variables of bash itself that are not passed on to the next shell.
const NOT_PASSED_ON: [&[u8]; 4] = [b"_", b"PWD", b"SHLVL", b"BASH_ENV"];

/// Parses the output of the prologue's exit trap: the exit codes of the last pipeline, its last command, `pwd
/// -P` and `declare -px`, separated by zero bytes. `None` if it is incomplete.
pub(crate) fn parse_shell_state(bytes: &[u8]) -> Option<ShellState> {
    let mut parts = bytes.splitn(4, |&byte| byte == 0);
    let (codes, command, directory, variables) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let codes = String::from_utf8_lossy(codes);
    let pipe_codes = codes.split_whitespace().map_while(|code| code.parse().ok()).collect();
    let last_command = String::from_utf8_lossy(command).into_owned();
    let directory = directory.strip_suffix(b"\n").unwrap_or(directory);
    let directory = (!directory.is_empty()).then(|| OsString::from_vec(directory.to_vec()).into());
    let directory: Option<PathBuf> = directory;
    let environment = parse_variables(variables);
    Some(ShellState { pipe_codes, last_command, directory, environment })
}

/// Parses a sequence of `declare -x NAME="value"`. Skips lines that it cannot parse.
fn parse_variables(mut rest: &[u8]) -> Vec<(OsString, OsString)> {
    let mut variables = Vec::new();
    while !rest.is_empty() {
        match parse_variable(rest) {
            Some((variable, after)) => {
                variables.extend(variable);
                rest = after;
            }
            None => {
                let end = rest.iter().position(|&byte| byte == b'\n');
                rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
            }
        }
    }
    variables
}

type Variable = (OsString, OsString);

/// Parses one variable. Returns it if it has a value that can be passed on, and the text after its line.
fn parse_variable(line: &[u8]) -> Option<(Option<Variable>, &[u8])> {
    let flags_and_name = line.strip_prefix(b"declare -")?;
    let blank = flags_and_name.iter().position(|&byte| byte == b' ')?;
    let (flags, rest) = flags_and_name.split_at(blank);
    let rest = rest.get(1..)?;
    let name_end = rest.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(name_end);
    let passed_on = |value: Vec<u8>| {
        let whole = flags.contains(&b'x') && !flags.iter().any(|flag| b"aA".contains(flag));
        (whole && !NOT_PASSED_ON.contains(&name))
            .then(|| (OsString::from_vec(name.to_vec()), OsString::from_vec(value)))
    };
    // Exported without a value: a child does not get it.
    if let Some(after) = rest.strip_prefix(b"\n") {
        return Some((None, after));
    }
    let (value, after) = match rest.strip_prefix(b"=")? {
        [b'"', quoted @ ..] => parse_double_quoted(quoted)?,
        [b'$', b'\'', quoted @ ..] => parse_ansi_quoted(quoted)?,
        _ => return None,
    };
    Some((passed_on(value), after.strip_prefix(b"\n").unwrap_or(after)))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn parse_double_quoted(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = quoted;
    loop {
        match rest {
            [b'"', after @ ..] => return Some((value, after)),
            [b'\\', escaped @ (b'"' | b'\\' | b'$' | b'`'), after @ ..] => {
                value.push(*escaped);
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn parse_ansi_quoted(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = quoted;
    loop {
        match rest {
            [b'\'', after @ ..] => return Some((value, after)),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                value.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            [b'\\', letter, after @ ..] => {
                value.push(unescaped(*letter));
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn unescaped(letter: u8) -> u8 {
    match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'E' | b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_exactly() {
        let output = b"1 0 \0tail -3\0/a b\n\0declare -x A=\"1 \\\"2\\\" \\$x \\\\\"\ndeclare -rx B=$'t\\tq\\'\\303\\244\\n'\n\
            declare -x NOTHING\ndeclare -ax LIST=([0]=\"1\")\ndeclare -x C=\"two\nlines\"\ndeclare -x SHLVL=\"2\"\n";
        let state = parse_shell_state(output).unwrap();
        assert_eq!((state.pipe_codes, state.last_command.as_str()), (vec![1, 0], "tail -3"));
        assert_eq!(state.directory, Some("/a b".into()));
        let expected = [("A", "1 \"2\" $x \\"), ("B", "t\tq'ä\n"), ("C", "two\nlines")];
        assert_eq!(state.environment, expected.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn incomplete_output_gives_none() {
        assert_eq!(parse_shell_state(b""), None);
        assert_eq!(parse_shell_state(b"0 \0x\0/a\n"), None);
        assert_eq!(parse_shell_state(b"0 \0\0\0").unwrap().directory, None);
        assert_eq!(parse_shell_state(b"0 \0x\0/x\n\0declare -x A=\"cut").unwrap().environment, []);
    }
}
