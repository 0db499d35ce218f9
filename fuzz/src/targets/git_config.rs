//! Git configurations: a parsed file is parsed to its end, and its variables survive being written.

use toolcrib_policy::git_config::{Variable, judge, parse};

pub(crate) fn git_config(input: &[u8]) -> String {
    let Ok(variables) = parse(input) else { return "refused".to_owned() };
    // Were the end of the input inside of something, a variable behind it would be part of that.
    let behind = [input, b"\n\n[behind]\nit"].concat();
    let longer = parse(&behind).expect("what is parsed can be continued");
    let (last, before) = longer.split_last().expect("there is one at least");
    assert_eq!(before, variables, "what follows changes nothing");
    assert_eq!((last.section.as_str(), last.name.as_str()), ("behind", "it"));

    let is_cut = input.contains(&0);
    let same = judge(Some(input), input, 1).expect("it was parsed before");
    assert_eq!(same.dangerous.len(), usize::from(is_cut), "the same file is no danger");
    if !is_cut {
        let written: Vec<u8> = variables.iter().flat_map(write).collect();
        let again = parse(&written).expect("what we write is valid");
        let without_line = |variable: &Variable| Variable { line: 0, ..variable.clone() };
        let [again, variables] =
            [&again, &variables].map(|all| all.iter().map(without_line).collect::<Vec<_>>());
        assert_eq!(again, variables, "and means the same");
    }
    match judge(None, input, 1).expect("it was parsed before").dangerous.is_empty() {
        true => "harmless".to_owned(),
        false => "dangerous".to_owned(),
    }
}

/// A variable below its own header, if it has one.
fn write(variable: &Variable) -> Vec<u8> {
    let mut text = Vec::new();
    if !variable.section.is_empty() || variable.subsection.is_some() {
        text.push(b'[');
        text.extend(variable.section.as_bytes());
        if let Some(subsection) = &variable.subsection {
            text.extend(b" \"");
            text.extend(subsection.iter().flat_map(|byte| [b'\\', *byte]));
            text.push(b'"');
        }
        text.extend(b"]\n");
    }
    text.extend(variable.name.as_bytes());
    if let Some(value) = &variable.value {
        text.extend(b" = \"");
        for byte in value {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'"' | b'\\' => text.extend([b'\\', *byte]),
                byte => text.push(*byte),
            }
        }
        text.push(b'"');
    }
    text.push(b'\n');
    text
}
