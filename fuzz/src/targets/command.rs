//! Shell commands: any text is accepted, and a parsed command is parsed to its end.

use toolcrib_policy::{ShellContext, analyze_command};

pub(crate) fn command(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let context = ShellContext {
        directory: "/w/ws".into(),
        home: Some("/home/me".into()),
        roots: vec!["/w/ws".into()],
    };
    let analysis = analyze_command(&text, &context);
    assert_eq!(analysis, analyze_command(&text, &context), "the same text gives the same analysis");
    if let Some(why_not) = &analysis.unparsed {
        return format!("{:?}", why_not.kind);
    }
    // If the text ended inside a construct, a command after it would be part of that.
    let longer = analyze_command(&format!("{text}\nls after-it"), &context);
    if longer.is_complete() {
        let last = longer.commands.last().map(|command| command.shown().join(" "));
        assert_eq!(last.as_deref(), Some("ls after-it"), "a command after it is found");
        assert_eq!(longer.commands.len(), analysis.commands.len() + 1, "it is one more command");
    }
    "parsed".to_owned()
}
