//! An object of which single members are changed; all others stay to the byte.

use super::json;
use super::whitespace::Frame;

/// An object with its layout.
#[derive(Debug, Clone)]
pub(super) struct Object {
    frame: Frame,
    /// Between key and value.
    colon: String,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    key: String,
    /// The key as it stands there, up to the value.
    head: String,
    value: String,
    /// The blanks before it, where they are its own.
    lead: Option<String>,
    /// The blanks behind it, up to the comma.
    trail: String,
}

impl Object {
    /// Takes an object apart; nothing, if it is none.
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
            // What stands before the bracket belongs to the bracket.
            last.trail = String::new();
        }
        let next = members.get(1).and_then(|member| member.lead.as_deref());
        Some(Object {
            frame: Frame::new(first, next, end, colon),
            colon: colon.to_owned(),
            members,
        })
    }

    /// An object with nothing in it, to be filled in this layout.
    pub(super) fn empty(frame: Frame, colon: &str) -> Object {
        Object { frame, colon: colon.to_owned(), members: Vec::new() }
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(super) fn colon(&self) -> &str {
        &self.colon
    }

    /// The value of a key, as JSON.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.members.iter().rev().find(|member| member.key == key).map(|member| &*member.value)
    }

    /// Gives a key a value. A new one comes where the alphabet has it, if the others are sorted as
    /// Jupyter sorts them, and at the end otherwise.
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

    /// The same where the key is not there yet.
    pub(super) fn set_missing(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.members.retain(|member| member.key != key);
    }

    /// Brings the members into the order that they have in another, those it does not have behind.
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
                0 => text += &self.frame.first,
                _ => {
                    text.push(',');
                    text += member.lead.as_deref().unwrap_or(&self.frame.next);
                }
            }
            text += &member.head;
            text += &member.value;
            if at + 1 < self.members.len() {
                text += &member.trail;
            }
        }
        if !self.members.is_empty() {
            text += &self.frame.end;
        }
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_stays() {
        for text in
            ["{}", "{\"a\":1}", "{ \"b\" : 1 , \"a\": [2]\n }", "{\n\t\"a\" :1,  \"a\":2\n}"]
        {
            assert_eq!(Object::parse(text).unwrap().write(), text);
        }
    }

    #[test]
    fn a_member_comes_and_goes_in_the_layout_of_the_others() {
        let mut object = Object::parse("{\n  \"a\": 1,\n  \"c\": 3\n }").unwrap();
        object.set("b", "2");
        object.set("d", "4");
        assert_eq!(object.write(), "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4\n }");
        object.remove("a");
        object.remove("d");
        assert_eq!(object.write(), "{\n  \"b\": 2,\n  \"c\": 3\n }");
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_counts() {
        let mut object = Object::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
        object.set("a", "3");
        assert_eq!(object.write(), r#"{"a":1,"a":3}"#);
    }
}
