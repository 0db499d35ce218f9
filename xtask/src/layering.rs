//! `cargo xtask layering`: checks which crate depends on which, and which module uses which.
//!
//! Leaf crates are independent of each other, the core crate depends on the leaves, and the front ends
//! depend on the core crate. Most of the rules forbid a dependency, and a forbidden dependency appears sooner
//! or later unless a check prevents it.

mod imports;
mod module_order;

use std::collections::BTreeSet;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, workspace};

/// The dependencies of one of our crates on others, outside tests.
struct CrateRule {
    name: &'static str,
    may_use: &'static [&'static str],
    reason: &'static str,
}

const CRATE_RULES: &[CrateRule] = &[
    CrateRule {
        name: "toolcrib-text",
        may_use: &[],
        reason: "a leaf: values in, values out, no I/O",
    },
    CrateRule {
        name: "toolcrib-policy",
        may_use: &[],
        reason: "a leaf: values in, a decision out, no I/O",
    },
    CrateRule {
        name: "toolcrib-media",
        may_use: &[],
        reason: "a leaf: bytes in, pages, cells and pixels out, no I/O",
    },
    CrateRule {
        name: "toolcrib-fs",
        may_use: &[],
        reason: "a leaf: the only one that opens files",
    },
    CrateRule {
        name: "toolcrib-search",
        may_use: &["toolcrib-fs"],
        reason: "a leaf that walks and matches, and reads through fs",
    },
    CrateRule {
        name: "toolcrib-syntax",
        may_use: &[],
        reason: "a leaf: bytes in, definitions and syntax errors out, no I/O",
    },
    CrateRule {
        name: "toolcrib-lsp",
        may_use: &[],
        reason: "a leaf: bytes of a language server in, errors of texts out, no I/O",
    },
    CrateRule {
        name: "toolcrib-exec",
        may_use: &[],
        reason: "a leaf: the only one that starts processes",
    },
    CrateRule {
        name: "toolcrib-net",
        may_use: &[],
        reason: "a leaf: the only one that connects to hosts",
    },
    CrateRule {
        name: "toolcrib",
        may_use: &[
            "toolcrib-text",
            "toolcrib-policy",
            "toolcrib-media",
            "toolcrib-fs",
            "toolcrib-search",
            "toolcrib-syntax",
            "toolcrib-lsp",
            "toolcrib-exec",
            "toolcrib-net",
        ],
        reason: "the core crate: depends on the leaves, not on a front end",
    },
    CrateRule { name: "toolcrib-http", may_use: &[], reason: "a leaf: what HTTP servers share" },
    CrateRule {
        name: "toolcrib-identity",
        may_use: &["toolcrib-net"],
        reason: "tokens in, their owners out; reads keys through the crate that connects to hosts",
    },
    CrateRule {
        name: "toolcrib-monitor",
        may_use: &["toolcrib"],
        reason: "what a front end shows to the user's other programs",
    },
    CrateRule {
        name: "toolcrib-telemetry",
        may_use: &["toolcrib", "toolcrib-net"],
        reason: "what a front end sends to the user's collector, through the crate that connects to hosts",
    },
    CrateRule {
        name: "toolcrib-backup",
        may_use: &["toolcrib", "toolcrib-fs", "toolcrib-net", "toolcrib-search"],
        reason: "what a front end copies to the operator's object store, through the crate that connects to hosts; it reads and makes files through fs",
    },
    CrateRule {
        name: "toolcrib-store",
        may_use: &["toolcrib", "toolcrib-fs", "toolcrib-net"],
        reason: "what a front end keeps in the operator's database, through the crate that connects to hosts; its tests write logs with fs",
    },
    CrateRule {
        name: "toolcrib-mcp",
        may_use: &["toolcrib", "toolcrib-http", "toolcrib-monitor"],
        reason: "a front end: MCP",
    },
    CrateRule {
        name: "toolcrib-page",
        may_use: &["toolcrib", "toolcrib-http", "toolcrib-monitor"],
        reason: "a front end: the page for people, which answers questions and undoes changes",
    },
    CrateRule {
        name: "toolcrib-sandboxd",
        may_use: &["toolcrib", "toolcrib-http", "toolcrib-monitor"],
        reason: "a front end: the runtime interface of Kubernetes' agent-sandbox",
    },
    CrateRule {
        name: "toolcrib-cli",
        may_use: &[
            "toolcrib",
            "toolcrib-backup",
            "toolcrib-identity",
            "toolcrib-mcp",
            "toolcrib-monitor",
            "toolcrib-page",
            "toolcrib-sandboxd",
            "toolcrib-store",
            "toolcrib-telemetry",
        ],
        reason: "a front end: the command line, which also starts the servers and the page",
    },
    CrateRule {
        name: TESTKIT,
        may_use: &["toolcrib"],
        reason: "for tests only: a dev-dependency of the others",
    },
    CrateRule {
        name: "toolcrib-fuzz",
        may_use: &[
            "toolcrib",
            "toolcrib-devtools",
            "toolcrib-fs",
            "toolcrib-lsp",
            "toolcrib-mcp",
            "toolcrib-media",
            "toolcrib-monitor",
            "toolcrib-net",
            "toolcrib-policy",
            "toolcrib-search",
            "toolcrib-syntax",
            "toolcrib-text",
        ],
        reason: "fuzzes the crates that parse untrusted input, and the core crate; no crate uses it",
    },
    CrateRule {
        name: "toolcrib-devtools",
        may_use: &[],
        reason: "runs the product as a process, like any user, and links none of it",
    },
    CrateRule {
        name: "toolcrib-torture",
        may_use: &["toolcrib-devtools"],
        reason: "stress-tests the product as a process, and links none of it",
    },
    CrateRule {
        name: "toolcrib-bench",
        may_use: &["toolcrib-devtools"],
        reason: "measures the product as a process, and links none of it",
    },
    CrateRule {
        name: "toolcrib-dist",
        may_use: &["toolcrib-devtools"],
        reason: "ships the product as a process, and links none of it",
    },
    CrateRule {
        name: "xtask",
        may_use: &["toolcrib-devtools"],
        reason: "checks the product as a process, and links none of it",
    },
];

const TESTKIT: &str = "toolcrib-testkit";

/// Dependencies between leaves that are allowed in tests.
const TESTED_TOGETHER: &[(&str, &str)] = &[
    // The gateway is tested in the namespaces that it serves.
    ("toolcrib-exec", "toolcrib-net"),
    // The store is tested with the logs that it sends.
    ("toolcrib-store", "toolcrib-fs"),
];

/// Third-party crates that only some of our crates may use, outside tests.
struct RestrictedCrates {
    crates: &'static [&'static str],
    only_in: &'static [&'static str],
    reason: &'static str,
}

const RESTRICTED_CRATES: &[RestrictedCrates] = &[
    RestrictedCrates {
        crates: &["rmcp"],
        only_in: &["toolcrib-mcp", "toolcrib-cli"],
        reason: "only the front ends use MCP",
    },
    RestrictedCrates {
        crates: &["tokio"],
        only_in: &[
            "toolcrib-http",
            "toolcrib-identity",
            "toolcrib-mcp",
            "toolcrib-page",
            "toolcrib-sandboxd",
            "toolcrib-cli",
            "toolcrib-net",
        ],
        reason: "only the front ends and inspected connections use async, and requests that wait for keys",
    },
    RestrictedCrates {
        crates: &["rustls", "tokio-rustls"],
        only_in: &["toolcrib-http", "toolcrib-net"],
        reason: "only inspected connections and HTTP servers use TLS",
    },
    RestrictedCrates {
        crates: &["rcgen"],
        only_in: &["toolcrib-net", TESTKIT],
        reason: "only inspected connections make certificates",
    },
    RestrictedCrates {
        crates: &["jsonwebtoken"],
        only_in: &["toolcrib-identity", TESTKIT],
        reason: "only one crate checks tokens",
    },
    RestrictedCrates {
        crates: &["ring"],
        only_in: &["toolcrib-backup", "toolcrib-identity", TESTKIT],
        reason: "only one crate checks tokens, and one signs requests",
    },
    RestrictedCrates {
        crates: &["rustix", "libc"],
        only_in: &[
            "toolcrib-fs",
            "toolcrib-exec",
            "toolcrib-net",
            "toolcrib-search",
            "toolcrib-monitor",
            "toolcrib-store",
            "toolcrib-devtools",
            "toolcrib-torture",
            "toolcrib-bench",
        ],
        reason: "only the leaves that access the machine, the monitor socket and the clock of leases make system calls, and their stress tests",
    },
    RestrictedCrates {
        crates: &["clap"],
        only_in: &[
            "toolcrib-cli",
            "toolcrib-bench",
            "toolcrib-dist",
            "toolcrib-fuzz",
            "toolcrib-torture",
            "xtask",
        ],
        reason: "only programs parse a command line",
    },
];

/// A crate of the workspace.
struct Member {
    name: String,
    uses: Vec<Dependency>,
}

struct Dependency {
    name: String,
    only_in_tests: bool,
}

/// Fails if a crate or a module has a forbidden dependency, and prints each one.
pub(crate) fn check() -> Result<()> {
    let packages = metadata::of_members()?;
    let members = members(&packages)?;
    let mut problems = problems(&members);
    problems.extend(module_order::problems(workspace::root(), &packages)?);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{} crates, all dependencies as designed", members.len());
        Ok(())
    } else {
        Err("the layers are broken; crates are in xtask/src/layering.rs, modules in xtask/module-order.toml".into())
    }
}

fn problems(members: &[Member]) -> Vec<String> {
    let ours: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in members {
        let Some(rule) = CRATE_RULES.iter().find(|rule| rule.name == member.name) else {
            problems.push(format!(
                "{} has no rule in the layers: add it to the table with its reason",
                member.name
            ));
            continue;
        };
        for used in &member.uses {
            let problem = if ours.contains(used.name.as_str()) {
                internal_problem(rule, used)
            } else {
                third_party_problem(rule, used)
            };
            problems.extend(problem);
        }
    }
    problems
}

/// The problem with a dependency between two of our crates, if any.
fn internal_problem(rule: &CrateRule, used: &Dependency) -> Option<String> {
    let is_testkit = used.name == TESTKIT && rule.name != TESTKIT;
    let is_tested_with = TESTED_TOGETHER.contains(&(rule.name, used.name.as_str()));
    let for_tests = used.only_in_tests && (is_testkit || is_tested_with);
    if for_tests || rule.may_use.contains(&used.name.as_str()) {
        return None;
    }
    let edge = edge(rule, used);
    if used.name == TESTKIT && !used.only_in_tests {
        return Some(format!("{edge}: the testkit is for tests; make it a dev-dependency"));
    }
    let allowed = match rule.may_use {
        [] => "nothing of ours".to_owned(),
        names => names.join(", "),
    };
    Some(format!("{edge}: may use {allowed} ({})", rule.reason))
}

/// The problem with a third-party dependency of one of our crates, if any. Tests may use any crate.
fn third_party_problem(rule: &CrateRule, used: &Dependency) -> Option<String> {
    if used.only_in_tests {
        return None;
    }
    let restricted = RESTRICTED_CRATES
        .iter()
        .find(|restricted| restricted.crates.contains(&used.name.as_str()))?;
    if restricted.only_in.contains(&rule.name) {
        return None;
    }
    let only_in = restricted.only_in.join(", ");
    Some(format!("{}: only in {only_in} ({})", edge(rule, used), restricted.reason))
}

fn edge(rule: &CrateRule, used: &Dependency) -> String {
    let kind = if used.only_in_tests { " (in tests)" } else { "" };
    format!("{} → {}{kind}", rule.name, used.name)
}

fn members(metadata: &Value) -> Result<Vec<Member>> {
    metadata::list(metadata, "packages")?.iter().map(member).collect()
}

fn member(package: &Value) -> Result<Member> {
    let uses = metadata::list(package, "dependencies")?;
    let uses = uses.iter().map(|dependency| {
        Ok(Dependency {
            name: metadata::text(dependency, "name")?.to_owned(),
            // `null` is a normal dependency. A build dependency counts as normal.
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
        let used = |names: &[&str], only_in_tests| -> Vec<Dependency> {
            names.iter().map(|&name| Dependency { name: name.to_owned(), only_in_tests }).collect()
        };
        let uses = used(normal, false).into_iter().chain(used(dev, true)).collect();
        Member { name: name.to_owned(), uses }
    }

    /// The problems if one crate of the table has these dependencies and the others have none.
    fn problems_with(changed: Member) -> Vec<String> {
        let mut members: Vec<Member> = CRATE_RULES
            .iter()
            .filter(|rule| rule.name != changed.name)
            .map(|rule| member_with(rule.name, &[], &[]))
            .collect();
        members.push(changed);
        problems(&members)
    }

    #[test]
    fn accepts_the_designed_dependencies() {
        for rule in CRATE_RULES {
            let dev: &[&str] = if rule.name == TESTKIT { &[] } else { &[TESTKIT] };
            let member = member_with(rule.name, rule.may_use, dev);
            assert_eq!(problems_with(member), [] as [&str; 0]);
        }
        assert_eq!(
            problems_with(member_with("toolcrib-cli", &["clap", "tokio"], &["rustix"])),
            [] as [&str; 0]
        );
    }

    #[test]
    fn rejects_dependencies_between_leaves() {
        assert_eq!(
            problems_with(member_with("toolcrib-policy", &["toolcrib-fs"], &[])),
            ["toolcrib-policy → toolcrib-fs: may use nothing of ours \
              (a leaf: values in, a decision out, no I/O)"]
        );
    }

    #[test]
    fn rejects_dependencies_between_leaves_in_tests_too() {
        let problems = problems_with(member_with("toolcrib-text", &[], &["toolcrib-fs"]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("toolcrib-text → toolcrib-fs (in tests): "));
    }

    #[test]
    fn rejects_the_testkit_outside_tests() {
        assert_eq!(
            problems_with(member_with("toolcrib-mcp", &[TESTKIT], &[])),
            ["toolcrib-mcp → toolcrib-testkit: the testkit is for tests; make it a dev-dependency"]
        );
        assert_eq!(problems_with(member_with(TESTKIT, &[], &["toolcrib-cli"])).len(), 1);
    }

    #[test]
    fn rejects_a_restricted_third_party_crate() {
        let problems = problems_with(member_with("toolcrib", &["tokio", "serde"], &[]));
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("toolcrib → tokio: only in toolcrib-http, "),
            "{problems:?}"
        );
    }

    #[test]
    fn rejects_a_crate_without_a_rule() {
        assert_eq!(
            problems_with(member_with("toolcrib-core", &[], &[])),
            ["toolcrib-core has no rule in the layers: add it to the table with its reason"]
        );
    }

    #[test]
    fn parses_metadata() {
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
