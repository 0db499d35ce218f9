//! `cargo xtask layering`: which crate may use which, as the design has it.
//!
//! Leaves are strangers to each other, the trunk knows the leaves, the doors know the trunk. Most of
//! it are absences, and an absence nobody checks is gone within the year.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Result, no_arguments};
use crate::metadata;

/// What one crate of ours may use of the others, outside of tests.
struct Place {
    name: &'static str,
    may_use: &'static [&'static str],
    reason: &'static str,
}

const PLACES: &[Place] = &[
    Place { name: "toolcrib-text", may_use: &[], reason: "a leaf: values in, values out, no I/O" },
    Place {
        name: "toolcrib-policy",
        may_use: &[],
        reason: "a leaf: values in, a decision out, no I/O",
    },
    Place {
        name: "toolcrib-media",
        may_use: &[],
        reason: "a leaf: bytes in, pages, cells and pixels out, no I/O",
    },
    Place { name: "toolcrib-fs", may_use: &[], reason: "a leaf: the only one that opens files" },
    Place {
        name: "toolcrib-search",
        may_use: &["toolcrib-fs"],
        reason: "a leaf that walks and matches, and reads through fs",
    },
    Place {
        name: "toolcrib-exec",
        may_use: &[],
        reason: "a leaf: the only one that starts processes",
    },
    Place {
        name: "toolcrib",
        may_use: &[
            "toolcrib-text",
            "toolcrib-policy",
            "toolcrib-media",
            "toolcrib-fs",
            "toolcrib-search",
            "toolcrib-exec",
        ],
        reason: "the trunk: knows the leaves, and no door",
    },
    Place {
        name: "toolcrib-mcp",
        may_use: &["toolcrib"],
        reason: "a door: MCP, on top of the trunk alone",
    },
    Place {
        name: "toolcrib-cli",
        may_use: &["toolcrib", "toolcrib-mcp"],
        reason: "a door: the command line, which also starts the MCP server",
    },
    Place {
        name: TESTKIT,
        may_use: &["toolcrib"],
        reason: "for tests only: a dev-dependency of the others",
    },
    Place {
        name: "toolcrib-fuzz",
        may_use: &[
            "toolcrib",
            "toolcrib-fs",
            "toolcrib-mcp",
            "toolcrib-media",
            "toolcrib-policy",
            "toolcrib-search",
            "toolcrib-text",
        ],
        reason: "tries the crates that take a stranger's bytes, and the trunk; nobody uses it",
    },
    Place {
        name: "xtask",
        may_use: &[],
        reason: "runs the product as a process, like any user, and links none of it",
    },
];

const TESTKIT: &str = "toolcrib-testkit";

/// Crates of others that only some of ours may use, outside of tests.
struct Absence {
    crates: &'static [&'static str],
    only_in: &'static [&'static str],
    reason: &'static str,
}

const ABSENCES: &[Absence] = &[
    Absence {
        crates: &["tokio", "rmcp"],
        only_in: &["toolcrib-mcp", "toolcrib-cli"],
        reason: "only the doors know async, and only they know MCP",
    },
    Absence {
        crates: &["rustix", "libc"],
        only_in: &["toolcrib-fs", "toolcrib-exec", "toolcrib-search", "xtask"],
        reason: "only the leaves that touch the machine make system calls, and who tortures them",
    },
    Absence {
        crates: &["clap"],
        only_in: &["toolcrib-cli"],
        reason: "only the command line parses a command line",
    },
];

/// A crate of the workspace, as far as this check needs to know it.
struct Member {
    name: String,
    uses: Vec<Use>,
}

struct Use {
    name: String,
    only_in_tests: bool,
}

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("layering", arguments)?;
    check()
}

/// Fails, naming each edge, if a crate uses what the design keeps from it.
pub(crate) fn check() -> Result<()> {
    let members = members(&metadata::of_members()?)?;
    let problems = problems(&members);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{} crates, every edge as designed", members.len());
        Ok(())
    } else {
        Err("the crates do not keep to the layers; the table is in xtask/src/layering.rs".into())
    }
}

fn problems(members: &[Member]) -> Vec<String> {
    let ours: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in members {
        let Some(place) = PLACES.iter().find(|place| place.name == member.name) else {
            problems.push(format!(
                "{} has no place in the layers: add it to the table with its reason",
                member.name
            ));
            continue;
        };
        for used in &member.uses {
            let problem = if ours.contains(used.name.as_str()) {
                inner_problem(place, used)
            } else {
                outer_problem(place, used)
            };
            problems.extend(problem);
        }
    }
    problems
}

/// What is wrong with one crate of ours using another.
fn inner_problem(place: &Place, used: &Use) -> Option<String> {
    let for_tests = used.only_in_tests && used.name == TESTKIT && place.name != TESTKIT;
    if for_tests || place.may_use.contains(&used.name.as_str()) {
        return None;
    }
    let edge = edge(place, used);
    if used.name == TESTKIT && !used.only_in_tests {
        return Some(format!("{edge}: the testkit is for tests; make it a dev-dependency"));
    }
    let allowed = match place.may_use {
        [] => "nothing of ours".to_owned(),
        names => names.join(", "),
    };
    Some(format!("{edge}: may use {allowed} ({})", place.reason))
}

/// What is wrong with one crate of ours using somebody else's. Tests may use what they like.
fn outer_problem(place: &Place, used: &Use) -> Option<String> {
    if used.only_in_tests {
        return None;
    }
    let absence = ABSENCES.iter().find(|absence| absence.crates.contains(&used.name.as_str()))?;
    if absence.only_in.contains(&place.name) {
        return None;
    }
    let only_in = absence.only_in.join(", ");
    Some(format!("{}: only in {only_in} ({})", edge(place, used), absence.reason))
}

fn edge(place: &Place, used: &Use) -> String {
    let kind = if used.only_in_tests { " (in tests)" } else { "" };
    format!("{} → {}{kind}", place.name, used.name)
}

fn members(metadata: &Value) -> Result<Vec<Member>> {
    metadata::list(metadata, "packages")?.iter().map(member).collect()
}

fn member(package: &Value) -> Result<Member> {
    let uses = metadata::list(package, "dependencies")?;
    let uses = uses.iter().map(|dependency| {
        Ok(Use {
            name: metadata::text(dependency, "name")?.to_owned(),
            // `null` is a normal dependency; one for the build script counts as normal.
            only_in_tests: dependency.get("kind").and_then(Value::as_str) == Some("dev"),
        })
    });
    Ok(Member {
        name: metadata::text(package, "name")?.to_owned(),
        uses: uses.collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member_with(name: &str, normal: &[&str], dev: &[&str]) -> Member {
        let used = |names: &[&str], only_in_tests| -> Vec<Use> {
            names.iter().map(|&name| Use { name: name.to_owned(), only_in_tests }).collect()
        };
        let uses = used(normal, false).into_iter().chain(used(dev, true)).collect();
        Member { name: name.to_owned(), uses }
    }

    /// All crates of the table without an edge, one of them replaced.
    fn problems_with(changed: Member) -> Vec<String> {
        let mut members: Vec<Member> = PLACES
            .iter()
            .filter(|place| place.name != changed.name)
            .map(|place| member_with(place.name, &[], &[]))
            .collect();
        members.push(changed);
        problems(&members)
    }

    #[test]
    fn what_the_design_has_is_fine() {
        for place in PLACES {
            let dev: &[&str] = if place.name == TESTKIT { &[] } else { &[TESTKIT] };
            let member = member_with(place.name, place.may_use, dev);
            assert_eq!(problems_with(member), [] as [&str; 0]);
        }
        assert_eq!(
            problems_with(member_with("toolcrib-cli", &["clap", "tokio"], &["rustix"])),
            [] as [&str; 0]
        );
    }

    #[test]
    fn an_edge_between_leaves_fails() {
        assert_eq!(
            problems_with(member_with("toolcrib-policy", &["toolcrib-fs"], &[])),
            ["toolcrib-policy → toolcrib-fs: may use nothing of ours \
              (a leaf: values in, a decision out, no I/O)"]
        );
    }

    #[test]
    fn an_edge_between_leaves_fails_in_tests_too() {
        let problems = problems_with(member_with("toolcrib-text", &[], &["toolcrib-fs"]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("toolcrib-text → toolcrib-fs (in tests): "));
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert_eq!(
            problems_with(member_with("toolcrib-mcp", &[TESTKIT], &[])),
            ["toolcrib-mcp → toolcrib-testkit: the testkit is for tests; make it a dev-dependency"]
        );
        assert_eq!(problems_with(member_with(TESTKIT, &[], &["toolcrib-cli"])).len(), 1);
    }

    #[test]
    fn an_outside_crate_in_the_wrong_place_fails() {
        assert_eq!(
            problems_with(member_with("toolcrib", &["tokio", "serde"], &[])),
            ["toolcrib → tokio: only in toolcrib-mcp, toolcrib-cli \
              (only the doors know async, and only they know MCP)"]
        );
    }

    #[test]
    fn a_crate_without_a_place_fails() {
        assert_eq!(
            problems_with(member_with("toolcrib-core", &[], &[])),
            ["toolcrib-core has no place in the layers: add it to the table with its reason"]
        );
    }

    #[test]
    fn metadata_is_understood() {
        let metadata = serde_json::json!({"packages": [{
            "name": "toolcrib-fs",
            "dependencies": [
                {"name": "rustix", "kind": null},
                {"name": "tempfile", "kind": "dev"},
                {"name": "cc", "kind": "build"},
            ],
        }]});
        let members = members(&metadata).unwrap();
        let uses: Vec<(&str, bool)> =
            members[0].uses.iter().map(|used| (used.name.as_str(), used.only_in_tests)).collect();
        assert_eq!(uses, [("rustix", false), ("tempfile", true), ("cc", false)]);
    }
}
