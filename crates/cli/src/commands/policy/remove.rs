//! `toolcrib policy remove`: removes a rule from the user's rules file. All other bytes stay.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::Rules;

use super::list::{ListedRule, in_force};
use crate::args::Common;
use crate::config::{self, Config};
use crate::{output, rules};

/// Removes the rule with this number, this name or these words.
pub(crate) fn remove(common: &Common, given: &[String]) -> Result<ExitCode, String> {
    let config = Config::of(common)?;
    let listed = in_force(common, &config)?;
    let rule = find(&listed, given, &rules::flag(common))?;
    let (file, text) = rules::user_text(common)?;
    let shown = file.display();
    match &rule.file {
        None => {
            return Err(format!(
                "`{}` comes from network_presets; `{}` removes a preset",
                rule.words(),
                config::hints(common).command(&["remove", "network_presets", "NAME"])
            ));
        }
        Some(other) if *other != file => {
            return Err(format!(
                "`{}` is a rule of the project; edit {} by hand",
                rule.words(),
                rule.from()
            ));
        }
        Some(_) => {}
    }
    let (first, last) = (rule.rule.first_line, rule.rule.last_line);
    let new = Rules::without_lines(&text, first, last);
    let new = new.map_err(|problem| format!("{shown}: {problem}"))?;
    if !common.dry_run && !rules::replace_if_unchanged(&file, &text, &new)? {
        return Err(format!("{shown}: another program changed the file; try again"));
    }
    let removed: String =
        text.split_inclusive('\n').skip(first - 1).take(last + 1 - first).collect();
    if !output::for_people(common) {
        let object = json!({
            "file": shown.to_string(), "rule": removed, "removed": !common.dry_run,
        });
        output::line(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let removed = removed.trim_end();
    output::answer(&if common.dry_run {
        format!("This would be removed from {shown}:\n\n{removed}\n\nNothing was written.")
    } else {
        format!(
            "Removed from {shown}:\n\n{removed}\n\nRunning servers apply this at the first call at least one second from now."
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// The name of a rule in its file, without the prefix that replies add.
fn own_name(shown: &str) -> &str {
    shown.strip_prefix("rule:").unwrap_or(shown)
}

/// The rule with this number, this name, these words or these patterns.
fn find<'a>(
    listed: &'a [ListedRule],
    given: &[String],
    flag: &str,
) -> Result<&'a ListedRule, String> {
    let number = match given {
        [one] => one.parse::<usize>().ok(),
        _ => None,
    };
    if let Some(number) = number {
        let rule = number.checked_sub(1).and_then(|at| listed.get(at));
        return rule.ok_or_else(|| {
            let count = listed.len();
            format!("there is no rule {number}; `toolcrib policy list{flag}` lists {count}")
        });
    }
    let given = given.join(" ");
    let is_it = |rule: &ListedRule| {
        let (words, name) = (rule.words(), &rule.rule.name);
        let spaced = words.replace(", ", " ");
        let patterns = rule.rule.patterns.join(" ");
        [&words, &spaced, &patterns, name].contains(&&given) || own_name(name) == given
    };
    let found: Vec<usize> = (0..listed.len()).filter(|at| is_it(&listed[*at])).collect();
    match found.as_slice() {
        [one] => Ok(&listed[*one]),
        [] => Err(format!(
            "no rule is `{given}`; `toolcrib policy list{flag}` lists the rules with their numbers"
        )),
        several => {
            let numbers: Vec<String> = several.iter().map(|at| (at + 1).to_string()).collect();
            Err(format!("several rules are `{given}`; give the number: {}", numbers.join(" or ")))
        }
    }
}
