//! An object whose members can be changed one by one. All others keep their bytes.

use super::json;
use super::whitespace::Layout;

/// An object with its layout.
#[derive(Debug, Clone)]
pub(super) struct Object {
    layout: Layout,
    /// The text between key and value.
    colon: String,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    key: String,
    /// The key and the colon, as in the document.
    head: String,
    value: String,
    /// The whitespace before it, if it is its own.
    lead: Option<String>,
    /// The whitespace after it, up to the comma.
    trail: String,
}

impl Object {
    /// Parses an object. `None` if it is not an object.
    pub(super) fn parse(text: &str) -> Option<Object> {
        let found = json::members(text).ok()?;
        let mut members: Vec<Member> = Vec::new();
        let (mut at, mut first, mut end, mut colon) = (1, "", "", ": ");
        for (key, value) in found {
            let key_at = json::offset(text, key);
            let value_at = json::offset(text, value);
            let value_end = value_at + value.len();
            let trail_length = text[value_end..].find([',', '}'])?;
            let trail = &text[value_end..value_end + trail_length];
            if members.is_empty() {
                first = &text[at..key_at];
                colon = &text[key_at + key.len()..value_at];
            }
            members.push(Member {
                key: json::string(key)?,
                head: text[key_at..value_at].to_owned(),
                value: value.to_owned(),
                lead: (!members.is_empty()).then(|| text[at..key_at].to_owned()),
                trail: trail.to_owned(),
            });
            end = trail;
            at = value_end + trail_length + 1;
        }
        if let Some(last) = members.last_mut() {
            // Whitespace before the closing bracket belongs to the bracket.
            last.trail = String::new();
        }
        let next = members.get(1).and_then(|member| member.lead.as_deref());
        Some(Object {
            layout: Layout::new(first, next, end, colon),
            colon: colon.to_owned(),
            members,
        })
    }

    /// An empty object with this layout.
    pub(super) fn empty(layout: Layout, colon: &str) -> Object {
        Object { layout, colon: colon.to_owned(), members: Vec::new() }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn colon(&self) -> &str {
        &self.colon
    }

    /// The value of a key, as JSON.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.members.iter().rev().find(|member| member.key == key).map(|member| &*member.value)
    }

    /// Sets the value of a key. A new key is inserted alphabetically if the others are sorted, as Jupyter
    /// does, and otherwise at the end.
    pub(super) fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        if let Some(member) = self.members.iter_mut().rev().find(|member| member.key == key) {
            member.value = value;
            return;
        }
        let sorted = self.members.is_sorted_by(|one, next| one.key <= next.key);
        let later = |member: &Member| sorted && *member.key > *key;
        let at = self.members.iter().position(later).unwrap_or(self.members.len());
        let member = Member {
            key: key.to_owned(),
            head: json::quote(key, true) + &self.colon,
            value,
            lead: None,
            trail: String::new(),
        };
        self.members.insert(at, member);
    }

    /// Sets the value of a key unless the key exists.
    pub(super) fn set_missing(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.members.retain(|member| member.key != key);
    }

    /// Orders the members like those of another object. Members that it lacks come last.
    pub(super) fn order_like(&mut self, other: &Object) {
        let place = |member: &Member| {
            let same = |known: &Member| known.key == member.key;
            other.members.iter().position(same).unwrap_or(usize::MAX)
        };
        if !other.members.is_sorted_by(|one, next| one.key <= next.key) {
            self.members.sort_by_key(place);
        }
    }

    /// The object as JSON.
    pub(super) fn write(&self) -> String {
        let mut text = "{".to_owned();
        for (at, member) in self.members.iter().enumerate() {
            match at {
                0 => text += &self.layout.first,
                _ => {
                    text.push(',');
                    text += member.lead.as_deref().unwrap_or(&self.layout.next);
                }
            }
            text += &member.head;
            text += &member.value;
            if at + 1 < self.members.len() {
                text += &member.trail;
            }
        }
        if !self.members.is_empty() {
            text += &self.layout.end;
        }
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_object_keeps_its_bytes() {
        for text in
            ["{}", "{\"a\":1}", "{ \"b\" : 1 , \"a\": [2]\n }", "{\n\t\"a\" :1,  \"a\":2\n}"]
        {
            assert_eq!(Object::parse(text).unwrap().write(), text);
        }
    }

    #[test]
    fn added_and_removed_members_follow_the_layout() {
        let mut object = Object::parse("{\n  \"a\": 1,\n  \"c\": 3\n }").unwrap();
        object.set("b", "2");
        object.set("d", "4");
        assert_eq!(object.write(), "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4\n }");
        object.remove("a");
        object.remove("d");
        assert_eq!(object.write(), "{\n  \"b\": 2,\n  \"c\": 3\n }");
    }

    #[test]
    fn the_last_of_duplicate_keys_counts() {
        let mut object = Object::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
        object.set("a", "3");
        assert_eq!(object.write(), r#"{"a":1,"a":3}"#);
    }
}
