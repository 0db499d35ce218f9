//! Two changes of one text, put together line by line.

/// Two changes that touch the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The line of `ours`, from 1, at which the first of them begins.
    pub line: u64,
    /// How many there are.
    pub count: usize,
}

/// Brings the change from `base` to `theirs` into `ours`, which has also come from `base`. Where the
/// two touch the same lines there is no answer, and nothing is guessed.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    diffy::merge_bytes(base, ours, theirs).map_err(|marked| conflict(&marked))
}

fn conflict(marked: &[u8]) -> Conflict {
    let is_mark = |line: &&[u8]| line.starts_with(b"<<<<<<<");
    let lines = || marked.split(|&byte| byte == b'\n');
    // Before the first mark, all lines are those of `ours`.
    let line = lines().take_while(|line| !is_mark(line)).count() as u64 + 1;
    Conflict { line, count: lines().filter(|line| is_mark(line)).count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_lines_go_together_and_of_the_same_do_not() {
        let base = b"1\n2\n3\n4\n5\n";
        let merged = merge(base, b"1\n2\n3\n4\nfive\n", b"one\n2\n3\n4\n5\n");
        assert_eq!(merged, Ok(b"one\n2\n3\n4\nfive\n".to_vec()));
        let conflict = merge(base, b"1\n2\nX\n4\n5\n", b"1\n2\nY\n4\n5\n").unwrap_err();
        assert_eq!(conflict, Conflict { line: 3, count: 1 });
    }

    #[test]
    fn bytes_of_any_encoding_survive() {
        let merged = merge(b"a\xe9\nb\nc\r\nd\n", b"a\xe9\nb\nc\r\nD\n", b"A\xe9\nb\nc\r\nd\n");
        assert_eq!(merged, Ok(b"A\xe9\nb\nc\r\nD\n".to_vec()));
    }
}
