//! The sandbox section of `doctor`: level and escape attempts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::{Checkup, EscapeAttempt, visible_name};

use super::level_advice;

/// Whether commands can run, and no escape attempt succeeded. This applies at every level: a lower level makes the
/// same promises.
pub(super) fn is_ok(checkup: &Checkup) -> bool {
    checkup.enough && checkup.attempts.iter().all(|attempt| attempt.blocked)
}

pub(super) fn print_table(checkup: &Checkup, verbose: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match checkup.outer {
        None => writeln!(stdout, "\nSandbox level {} of 4: {}.", checkup.level, checkup.means)?,
        Some(wall) => writeln!(
            stdout,
            "\nThis system is in {wall}, as declared. It alone confines commands: our sandbox has level {} of 4.",
            checkup.level
        )?,
    }
    if !checkup.enough && checkup.outer.is_some() {
        writeln!(
            stdout,
            "Commands are refused: the network cannot be switched off; limit it outside, and set network = \"all\"."
        )?;
    } else if !checkup.enough {
        writeln!(stdout, "Commands are refused: level 2 is needed, or profile = \"open\".")?;
    }
    let escaped = checkup.attempts.iter().filter(|attempt| !attempt.blocked).count();
    if escaped > 0 {
        writeln!(
            stdout,
            "NOT CONFINED: {escaped} of {} escape attempts succeeded.",
            checkup.attempts.len()
        )?;
    }
    if escaped == 0 && !verbose && !checkup.attempts.is_empty() {
        writeln!(
            stdout,
            "  {} escape attempts were blocked; --verbose lists them.",
            checkup.attempts.len()
        )?;
    }
    let is_shown = |attempt: &&EscapeAttempt| verbose || !attempt.blocked;
    let width = checkup.attempts.iter().map(|attempt| attempt.description.chars().count()).max();
    let width = width.unwrap_or_default();
    for attempt in checkup.attempts.iter().filter(is_shown) {
        let outcome = if attempt.blocked { "blocked" } else { "ESCAPED" };
        let said = attempt.output.lines().next().unwrap_or_default();
        let said = visible_name(said.as_bytes());
        writeln!(stdout, "  {outcome}  {:<width$}  {said}", attempt.description)?;
    }
    if !checkup.limits.is_empty() {
        writeln!(stdout, "Limits of a command:")?;
    }
    for (setting, value) in &checkup.limits {
        writeln!(stdout, "  {setting}: {value}")?;
    }
    let advice = level_advice::advice(Path::new("/"), checkup.level);
    for (title, sentences) in [
        ("Not enforced:", &checkup.missing),
        ("Why no higher level:", &checkup.reasons),
        ("For a higher level:", &advice),
    ] {
        if !sentences.is_empty() {
            writeln!(stdout, "{title}")?;
        }
        for sentence in sentences {
            writeln!(stdout, "  {}", visible_name(sentence.as_bytes()))?;
        }
    }
    if !checkup.left_out.is_empty() {
        writeln!(
            stdout,
            "Variables withheld from commands: {}.",
            visible_name(checkup.left_out.join(", ").as_bytes())
        )?;
    }
    Ok(())
}

pub(super) fn object(checkup: &Checkup) -> Value {
    let attempts = checkup
        .attempts
        .iter()
        .map(|attempt| json!({"what": attempt.description, "held": attempt.blocked, "said": attempt.output}));
    let limits = checkup.limits.iter().map(|(setting, value)| (*setting, value.as_str()));
    json!({
        "limits": limits.collect::<BTreeMap<_, _>>(),
        "level": checkup.level,
        "outer": checkup.outer,
        "means": checkup.means,
        "enough": checkup.enough,
        "held": is_ok(checkup),
        "missing": checkup.missing,
        "reasons": checkup.reasons,
        "advice": level_advice::advice(Path::new("/"), checkup.level),
        "attempts": attempts.collect::<Vec<_>>(),
        "environment_left_out": checkup.left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successful_escape_is_a_failure_at_any_level() {
        let attempt = |held| EscapeAttempt {
            description: "change the mode of the home",
            blocked: held,
            output: String::new(),
        };
        for level in [2, 3, 4] {
            let checkup = |held| Checkup {
                level,
                means: String::new(),
                enough: true,
                outer: None,
                missing: Vec::new(),
                reasons: Vec::new(),
                limits: Vec::new(),
                attempts: vec![attempt(true), attempt(held)],
                left_out: Vec::new(),
            };
            assert!(is_ok(&checkup(true)) && !is_ok(&checkup(false)));
            assert_eq!(object(&checkup(false))["held"], false);
        }
    }
}
