//! `traceparent` of W3C Trace Context.

/// The span that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    /// Whether the caller records its spans.
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// Parses `VERSION-TRACE-SPAN-FLAGS`. `None` if it is not valid: then a call begins its own trace.
    pub(crate) fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.trim().split('-');
        let mut part = |length: usize| parts.next().filter(|part| is_hex(part, length));
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // Later versions may have more parts.
        let is_known = version != "ff" && (version != "00" || parts.next().is_none());
        let is_zero = |id: &str| id.bytes().all(|byte| byte == b'0');
        if !is_known || is_zero(trace_id) || is_zero(span_id) {
            return None;
        }
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        Some(TraceParent { trace_id: trace_id.to_owned(), span_id: span_id.to_owned(), is_sampled })
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_parents_are_parsed_and_others_are_not() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let parsed = |flags: &str| TraceParent::parse(&format!("00-{trace}-{span}-{flags}"));
        let expected = |is_sampled| {
            Some(TraceParent { trace_id: trace.to_owned(), span_id: span.to_owned(), is_sampled })
        };
        assert_eq!(
            (parsed("01"), parsed("00"), parsed("03")),
            (expected(true), expected(false), expected(true))
        );
        assert_eq!(TraceParent::parse(&format!("01-{trace}-{span}-01-more")), expected(true));
        for text in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}x-{span}-01"),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in "\\PC{0,80}") {
            let _ = TraceParent::parse(&text);
        }
    }
}
