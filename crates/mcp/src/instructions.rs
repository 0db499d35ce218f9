//! What the server says of itself to the model. Common clients cut it at 2,048 characters, so what
//! matters stands first.

use toolcrib::Runtime;

/// The text, for a workspace of these roots and the tools that are listed.
pub(crate) fn instructions(roots: &[String], runtime: &Runtime) -> String {
    let has = |tool: &str| runtime.tools().any(|listed| listed.name == tool);
    let changes = ["Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit"].into_iter().any(has);
    let (runs, edits, writes) = (has("Bash"), has("Edit"), has("Write"));
    let mut text = String::new();
    text += if runs { "Files and commands" } else { "Files" };
    text += &format!(
        " of this workspace ({}): prefer these tools to the client's own for reading",
        roots.join(", ")
    );
    text += match (changes, runs) {
        (true, true) => ", searching and changing files and for running commands. ",
        (true, false) => ", searching and changing files. ",
        (false, true) => " and searching files and for running commands. ",
        (false, false) => " and searching files. ",
    };
    if changes {
        text += "Every change is atomic, ";
        text +=
            if has("Undo") { "recorded in a journal and can be reverted with Undo; " } else { "" };
        text += "all other bytes stay unchanged. ";
    }
    text += "Paths are relative to the first of these directories, or absolute; files outside them are not changed without approval. A reply says what was omitted and which call gets it; an error says what to do next.";
    text +=
        if edits { " Edit needs no Read first when old_string is exact and unique." } else { "" };
    text += if writes { " Read a whole file before overwriting it with Write." } else { "" };
    text
}
