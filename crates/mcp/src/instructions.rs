//! What the server says of itself to the model. Common clients cut it at 2,048 characters, so what
//! matters stands first.

/// The text, for a workspace of these roots.
pub(crate) fn instructions(roots: &[String]) -> String {
    format!(
        "Files and commands of this workspace ({}): prefer these tools to the client's own for reading, \
         searching and changing files and for running commands. Every change is atomic, kept in a journal and can be taken back with Undo; bytes that \
         were not meant to change do not. Paths are relative to the first of these directories, or \
         absolute; the file tools reach nothing outside them. A reply says what was left out and which call \
         gets it; an error says what to do next. Edit needs no Read first when old_string is exact and \
         unique; Write over a file needs all of it to have been read.",
        roots.join(", ")
    )
}
