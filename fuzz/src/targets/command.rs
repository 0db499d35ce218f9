//! Shell commands: any text is taken, and what is understood is understood to its end.

use toolcrib_policy::{Surroundings, understand};

pub(crate) fn command(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let around = Surroundings {
        directory: "/w/ws".into(),
        home: Some("/home/me".into()),
        roots: vec!["/w/ws".into()],
    };
    let understood = understand(&text, &around);
    assert_eq!(understood, understand(&text, &around), "the same text, the same answer");
    if let Some(why_not) = &understood.why_not {
        return format!("{:?}", why_not.trouble);
    }
    // Were its end inside of something, a command behind it would be part of that.
    let longer = understand(&format!("{text}\nls behind-it"), &around);
    if longer.is_whole() {
        let last = longer.commands.last().map(|command| command.shown().join(" "));
        assert_eq!(last.as_deref(), Some("ls behind-it"), "a command behind it is seen");
        assert_eq!(longer.commands.len(), understood.commands.len() + 1, "and is one more");
    }
    "understood".to_owned()
}
