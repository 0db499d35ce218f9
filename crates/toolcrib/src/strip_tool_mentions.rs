//! Removes mentions of tools that the model does not have from descriptions.

/// A description without the clauses that mention one of `tools`.
pub(crate) fn without_mentions(description: &str, tools: &[&str]) -> String {
    if !mentions(description, tools) {
        return description.to_owned();
    }
    let sentences = description.split_inclusive(". ");
    let kept: String = sentences.filter_map(|sentence| sentence_without(sentence, tools)).collect();
    kept.trim_end().to_owned()
}

/// A sentence without its last clauses that mention a tool; nothing, if its first clause does.
fn sentence_without(sentence: &str, tools: &[&str]) -> Option<String> {
    if !mentions(sentence, tools) {
        return Some(sentence.to_owned());
    }
    let body = sentence.trim_end().trim_end_matches('.');
    let ending = &sentence[body.len()..];
    let mut kept = String::new();
    for part in body.split_inclusive([';', ':']) {
        let whole = part.trim_end_matches([';', ':']);
        let text = match whole.rsplit_once(',') {
            Some((before, last)) if mentions(last, tools) => before,
            _ => whole,
        };
        if !mentions(text, tools) {
            kept.extend([text, &part[whole.len()..]]);
        } else if kept.is_empty() {
            return None;
        }
    }
    Some(format!("{}{ending}", kept.trim_end_matches([';', ':'])))
}

/// Whether one of the names is a word of the text.
fn mentions(text: &str, tools: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| tools.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_mentions_a_tool_is_left_out() {
        let text = "Runs it. It continues in the background: Out and Kill take its id. Long output is cut; Out has the \
                    rest. Files are named, for Undo. Notes are in brackets.";
        assert_eq!(without_mentions(text, &["Grep"]), text);
        assert_eq!(
            without_mentions(text, &["Out", "Undo"]),
            "Runs it. It continues in the background. Long output is cut. Files are named. Notes are in brackets."
        );
        assert_eq!(
            without_mentions(
                "Lists them, newest first, with ids for Undo; with id, one.",
                &["Undo"]
            ),
            "Lists them, newest first; with id, one."
        );
        assert_eq!(without_mentions("Writes. To do so, Read it, or not.", &["Read"]), "Writes.");
    }

    #[test]
    fn no_description_mentions_a_tool_that_is_left_out() {
        use crate::tool_table::Table;
        let names: Vec<&str> = Table::new(crate::tools::TOOLS).names().collect();
        for name in names {
            let mut table = Table::new(crate::tools::TOOLS);
            table.leave_out(|row| row.entry.name == name);
            table.omit_mentions();
            for row in table.rows() {
                let description = &row.schema().description;
                assert!(!mentions(description, &[name]), "{}: {description}", row.entry.name);
                assert!(description.len() > 20, "{}: {description}", row.entry.name);
            }
        }
    }
}
