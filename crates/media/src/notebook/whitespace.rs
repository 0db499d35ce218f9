//! The whitespace around the items of a list or an object, so that new items have the same layout.

use super::json;

/// The whitespace of one list or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Between the opening bracket and the first item.
    pub(super) first: String,
    /// Between a comma and the next item.
    pub(super) next: String,
    /// Between the last item and the closing bracket.
    pub(super) end: String,
}

impl Layout {
    /// The layout of a list. `None` if it is empty. `colon` is the text between key and value nearby: a space
    /// after a colon implies one after a comma.
    pub(super) fn of_list(list: &str, colon: &str) -> Option<Layout> {
        let items = json::items(list)?;
        let start = |item: &str| json::offset(list, item);
        let (head, tail) = (items.first()?, items.last()?);
        let first = &list[1..start(head)];
        let next = items.get(1).map(|next| {
            let between = &list[start(head) + head.len()..start(next)];
            between.trim_start_matches(|c| c != ',').trim_start_matches(',')
        });
        let end = &list[start(tail) + tail.len()..list.len() - 1];
        Some(Layout::new(first, next, end, colon))
    }

    pub(super) fn new(first: &str, next: Option<&str>, end: &str, colon: &str) -> Layout {
        let next = next.unwrap_or(if first.contains('\n') { first } else { after_comma(colon) });
        Layout { first: first.to_owned(), next: next.to_owned(), end: end.to_owned() }
    }

    /// The layout of a list or object within an item.
    pub(super) fn deeper(&self) -> Layout {
        if !self.first.contains('\n') {
            let none = String::new();
            return Layout { first: none.clone(), next: self.next.clone(), end: none };
        }
        let step = self.first.strip_prefix(&self.end).unwrap_or_default();
        let first = format!("{}{step}", self.first);
        Layout { next: first.clone(), first, end: self.first.clone() }
    }

    /// A list of items, each given as JSON.
    pub(super) fn list(&self, items: &[String]) -> String {
        if items.is_empty() {
            return "[]".to_owned();
        }
        let joined = items.join(&format!(",{}", self.next));
        format!("[{}{joined}{}]", self.first, self.end)
    }
}

fn after_comma(colon: &str) -> &'static str {
    if colon.ends_with(' ') { " " } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_layout() {
        for list in ["[\n  1,\n  2\n ]", "[1,2]", "[1, 2]", "[ 1, 2 ]", "[\r\n\t1,\r\n\t2\r\n]"] {
            let layout = Layout::of_list(list, ":").unwrap();
            assert_eq!(layout.list(&["1".to_owned(), "2".to_owned()]), list);
        }
        assert_eq!(Layout::of_list("[]", ":"), None);
    }

    #[test]
    fn a_nested_layout_is_one_step_deeper() {
        let layout = Layout::of_list("[\n  1\n ]", ": ").unwrap();
        assert_eq!(layout.deeper().list(&["1".to_owned()]), "[\n   1\n  ]");
        let layout = Layout::of_list("[1]", ": ").unwrap();
        assert_eq!(layout.deeper().list(&["1".to_owned(), "2".to_owned()]), "[1, 2]");
    }
}
