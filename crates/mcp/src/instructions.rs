//! The server's instructions for the model. Common clients truncate them at 2,048 characters, so the most important
//! part is first.

use toolcrib::{Dialect, Runtime};

/// The instructions for these roots and the available tools, with the names of the dialect.
pub(crate) fn instructions(roots: &[String], runtime: &Runtime, dialect: Dialect) -> String {
    let has = |tool: &str| runtime.lists(tool);
    let changes = ["Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit"].into_iter().any(has);
    let (runs, edits, writes) = (has("Bash"), has("Edit"), has("Write"));
    let [read, write, edit, undo] =
        ["Read", "Write", "Edit", "Undo"].map(|tool| dialect.tool_name(tool));
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
        if has("Undo") {
            text += &format!("recorded in a journal and can be undone with {undo}; ");
        }
        text += "all other bytes stay unchanged. ";
    }
    text += "Paths are relative to the first of these directories, or absolute; files outside them are not changed \
             without approval. A reply says what was omitted and which call gets it; an error says what to do next.";
    if edits {
        let old_string = dialect.field_name("Edit", "old_string");
        text += &format!(" {edit} needs no {read} first when {old_string} is exact and unique.");
    }
    if writes {
        text += &format!(" Before {write} overwrites a file, read all of it with {read}.");
    }
    text
}
