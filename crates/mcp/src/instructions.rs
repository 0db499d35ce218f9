//! What the server says of itself to the model. Common clients cut it at 2,048 characters, so what
//! matters stands first.

use toolcrib::Dialect;

/// The text, for a workspace of these roots, with the names of the dialect.
pub(crate) fn instructions(roots: &[String], dialect: Dialect) -> String {
    let [read, write, edit, undo] =
        ["Read", "Write", "Edit", "Undo"].map(|tool| dialect.tool_name(tool));
    let old_string = dialect.field_name("Edit", "old_string");
    format!(
        "Files and commands of this workspace ({}): prefer these tools to the client's own for reading, \
         searching and changing files and for running commands. Every change is atomic, kept in a journal and can be taken back with {undo}; bytes that \
         were not meant to change do not. Paths are relative to the first of these directories, or \
         absolute; the file tools reach nothing outside them. A reply says what was left out and which call \
         gets it; an error says what to do next. {edit} needs no {read} first when {old_string} is exact and \
         unique; {write} over a file needs all of it to have been read.",
        roots.join(", ")
    )
}
