//! Git configurations: a parsed file is parsed to its end, and writing its variables preserves them.

use toolcrib_policy::git_config::{Variable, parse, review};

pub(crate) fn git_config(input: &[u8]) -> String {
    let Ok(variables) = parse(input) else { return "refused".to_owned() };
    // If the input ended inside a construct, a variable after it would be part of that.
    let behind = [input, b"\n\n[behind]\nit"].concat();
    let longer = parse(&behind).expect("a parsed file can be continued");
    let (last, before) = longer.split_last().expect("there is one at least");
    assert_eq!(before, variables, "later text changes nothing");
    assert_eq!((last.section.as_str(), last.name.as_str()), ("behind", "it"));

    let is_cut = input.contains(&0);
    let same = review(Some(input), input, 1).expect("it was parsed before");
    assert_eq!(same.dangerous.len(), usize::from(is_cut), "an unchanged file is not dangerous");
    if !is_cut {
        let written: Vec<u8> = variables.iter().flat_map(write).collect();
        let again = parse(&written).expect("what we write is valid");
        let without_line = |variable: &Variable| Variable { line: 0, ..variable.clone() };
        let [again, variables] =
            [&again, &variables].map(|all| all.iter().map(without_line).collect::<Vec<_>>());
        assert_eq!(again, variables, "and means the same");
    }
    if review(None, input, 1).expect("it was parsed before").dangerous.is_empty() {
        "harmless".to_owned()
    } else {
        "dangerous".to_owned()
    }
}

/// Writes a variable below its own header, if it has one.
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
