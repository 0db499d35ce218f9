//! What this machine can enforce on commands, by trying.

use std::io::{self, Write};

use serde_json::{Value, json};
use toolcrib::Checkup;

/// Whether commands are run, and nothing got out that should not.
pub(super) fn is_well(checkup: &Checkup) -> bool {
    // Below the highest level some of them get out, and that is said; it is no surprise.
    let surprised = checkup.level == 4 && checkup.attempts.iter().any(|attempt| !attempt.held);
    checkup.enough && !surprised
}

pub(super) fn print_table(checkup: &Checkup) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "\nSandbox level {} of 4: {}.", checkup.level, checkup.means)?;
    if !checkup.enough {
        writeln!(stdout, "Commands are refused: level 2 is needed, or profile = \"open\".")?;
    }
    for attempt in &checkup.attempts {
        let outcome = if attempt.held { "refused" } else { "GOT OUT" };
        let said = attempt.said.lines().next().unwrap_or_default();
        writeln!(stdout, "  {outcome}  {:<36} {said}", attempt.what)?;
    }
    for (title, sentences) in
        [("Not enforced:", &checkup.missing), ("Why not more:", &checkup.reasons)]
    {
        if !sentences.is_empty() {
            writeln!(stdout, "{title}")?;
        }
        for sentence in sentences {
            writeln!(stdout, "  {sentence}")?;
        }
    }
    if !checkup.left_out.is_empty() {
        writeln!(stdout, "Variables that commands do not get: {}.", checkup.left_out.join(", "))?;
    }
    Ok(())
}

pub(super) fn object(checkup: &Checkup) -> Value {
    let attempts = checkup
        .attempts
        .iter()
        .map(|attempt| json!({"what": attempt.what, "held": attempt.held, "said": attempt.said}));
    json!({
        "level": checkup.level,
        "means": checkup.means,
        "enough": checkup.enough,
        "missing": checkup.missing,
        "reasons": checkup.reasons,
        "attempts": attempts.collect::<Vec<_>>(),
        "environment_left_out": checkup.left_out,
    })
}
