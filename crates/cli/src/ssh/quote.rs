//! Quotes words for the login shell of another machine, which may be any: POSIX shells, fish and csh.

/// A word that every shell reads as exactly this text. It must not have control characters.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,=".contains(&byte);
    // zsh replaces a word that begins with `=`.
    if !word.is_empty() && !word.starts_with('=') && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("'");
    for letter in word.chars() {
        match letter {
            // Outside quotes, because fish reads backslashes inside them, and POSIX shells do not.
            '\'' => quoted.push_str("'\\''"),
            '\\' => quoted.push_str("'\\\\'"),
            // csh reads it inside quotes too.
            '!' => quoted.push_str("'\\!'"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('\'');
    quoted
}

/// The path of a program. `~/` at its beginning stays the home directory.
pub(crate) fn quote_program(path: &str) -> String {
    match path.strip_prefix("~/") {
        Some(below) => format!("~/{}", quote(below)),
        None => quote(path),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Every shell of this machine reads the words as they are.
    #[test]
    fn shells_read_quoted_words_as_they_are() {
        let words = [
            "",
            "plain-word/x.y:z",
            "a b",
            "=ls",
            "--root=a,b",
            "~",
            "~/x",
            "it's",
            "back\\slash",
            "\\'",
            "'\\",
            "$(id) `id` $HOME ${x}",
            "a;b|c&d>e<f(g)h{i,j}k[l]m*n?o!p#q%r^s",
            "!x !! !$",
            "\"double\"",
            "é ∀ 日本",
            "-n",
            "trailing\\",
        ];
        let mut shells = 0;
        for shell in ["sh", "bash", "dash", "zsh", "fish", "tcsh", "csh", "ksh"] {
            let line = words.map(quote).join(" ");
            let output =
                Command::new(shell).arg("-c").arg(format!("printf '<%s>\\n' {line}")).output();
            let Ok(output) = output else { continue };
            let expected: String = words.iter().map(|word| format!("<{word}>\n")).collect();
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{shell}: {output:?}");
            shells += 1;
        }
        assert!(shells > 0);
    }

    #[test]
    fn only_the_home_directory_of_a_program_is_expanded() {
        assert_eq!(quote_program("~/.local/bin/toolcrib"), "~/.local/bin/toolcrib");
        assert_eq!(quote_program("~/a b"), "~/'a b'");
        assert_eq!(quote_program("~x/$y"), "'~x/$y'");
    }
}
