//! The texts of elements in the answers of an object store. The answers are flat enough to be searched instead of parsed.

/// The text of the first element of this name.
pub(crate) fn element(xml: &[u8], name: &str) -> Option<String> {
    elements(xml, name).into_iter().next()
}

/// The texts of all elements of this name, which have no attributes and no elements in them.
pub(crate) fn elements(xml: &[u8], name: &str) -> Vec<String> {
    let xml = String::from_utf8_lossy(xml);
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = xml.as_ref();
    while let Some((_, after)) = rest.split_once(&open) {
        let Some((text, after)) = after.split_once(&close) else { break };
        found.push(unescape(text));
        rest = after;
    }
    found
}

fn unescape(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&#39;", "'").replace("&#34;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_order() {
        let xml = b"<?xml?><R><Contents><Key>a/1</Key></Contents><Contents><Key>a&amp;lt;2</Key></Contents><T>x</T>";
        assert_eq!(elements(xml, "Key"), ["a/1", "a&lt;2"]);
        assert_eq!(element(xml, "T").as_deref(), Some("x"));
        assert_eq!(element(xml, "Missing"), None);
        assert_eq!(elements(b"<Key>cut off", "Key"), [""; 0]);
    }
}
