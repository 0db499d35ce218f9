//! What a reply says about the hosts that a command tried to reach.

use serde_json::{Value, json};
use toolcrib_text::visible_name;

use crate::metadata_fields::MetadataField;
use crate::phrases::counted;

/// Lines about hosts in a reply.
const MAX_LINES: usize = 8;

/// A host that a command tried to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostNote {
    /// `host:port`.
    pub(super) target: String,
    /// The method and the path of a request, if it is about one.
    pub(super) request: Option<String>,
    pub(super) outcome: HostOutcome,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostOutcome {
    Allowed {
        rule: String,
    },
    Refused {
        rule: String,
        why: String,
        remedy: String,
    },
    /// Allowed by name, and refused or failed later.
    Failed {
        why: String,
        remedy: String,
    },
}

/// Metadata of a reply about a command that tried to reach hosts.
pub(crate) const HOSTS: &[MetadataField] = &[
    MetadataField::new(
        "hosts",
        "array of object",
        "`network` is list, and the command tried to reach a host",
        "The hosts.",
    ),
    MetadataField::new("hosts[].host", "string", "with its object", "The host and the port."),
    MetadataField::new(
        "hosts[].request",
        "string",
        "a request to the host was refused",
        "The method and the path.",
    ),
    MetadataField::new(
        "hosts[].decision",
        "string",
        "with its object",
        "`allowed`, `refused`, or `failed` after it was allowed.",
    ),
    MetadataField::new("hosts[].rule", "string", "unless it failed", "The rule that decided."),
    MetadataField::new("hosts[].why", "string", "unless it was allowed", "The reason."),
];

/// One line for each host, at most [`MAX_LINES`], refusals first.
pub(crate) fn lines(notes: &[HostNote]) -> Vec<String> {
    let is_allowed = |note: &&HostNote| matches!(note.outcome, HostOutcome::Allowed { .. });
    let (allowed, others): (Vec<&HostNote>, Vec<&HostNote>) = notes.iter().partition(is_allowed);
    // A host that failed was allowed before, which is not worth a line.
    let failed = |note: &&HostNote| {
        others.iter().any(|other| other.target == note.target && other.request.is_none())
    };
    let allowed: Vec<&HostNote> = allowed.into_iter().filter(|note| !failed(note)).collect();
    let all: Vec<&HostNote> = others.iter().copied().chain(allowed).collect();
    let mut lines: Vec<String> = all.iter().take(MAX_LINES).map(|note| line(note)).collect();
    let more = all.len().saturating_sub(MAX_LINES);
    if more > 0 {
        lines.push(format!("network: {}", counted(more as u64, "more host")));
    }
    lines
}

/// The same, for programs.
pub(crate) fn facts(notes: &[HostNote]) -> Option<Value> {
    let fact = |note: &HostNote| {
        let host = visible_name(note.target.as_bytes());
        let mut fact = match &note.outcome {
            HostOutcome::Allowed { rule } => {
                json!({"host": host, "decision": "allowed", "rule": rule})
            }
            HostOutcome::Refused { rule, why, .. } => {
                json!({"host": host, "decision": "refused", "rule": rule, "why": why})
            }
            HostOutcome::Failed { why, .. } => {
                json!({"host": host, "decision": "failed", "why": visible_name(why.as_bytes())})
            }
        };
        if let Some(request) = &note.request {
            fact["request"] = visible_name(request.as_bytes()).into();
        }
        fact
    };
    (!notes.is_empty()).then(|| notes.iter().map(fact).collect())
}

fn line(note: &HostNote) -> String {
    let target = match &note.request {
        Some(request) => visible_name(format!("{request} on {}", note.target).as_bytes()),
        None => visible_name(note.target.as_bytes()),
    };
    match &note.outcome {
        HostOutcome::Allowed { rule } => format!("network: {target} allowed by {rule}"),
        HostOutcome::Refused { rule, why, remedy } if remedy.is_empty() => {
            format!("network: {target} refused: {why} ({rule})")
        }
        HostOutcome::Refused { rule, why, remedy } => {
            format!("network: {target} refused: {why} ({rule}); ask the operator to {remedy}")
        }
        HostOutcome::Failed { why, remedy } if remedy.is_empty() => {
            format!("network: {}", visible_name(why.as_bytes()))
        }
        HostOutcome::Failed { why, remedy } => {
            format!("network: {}; ask the operator to {remedy}", visible_name(why.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(target: &str, outcome: HostOutcome) -> HostNote {
        HostNote { target: target.to_owned(), request: None, outcome }
    }

    #[test]
    fn refusals_come_first_and_lines_are_bounded() {
        let allowed = HostOutcome::Allowed { rule: "rule:registries".to_owned() };
        let refused = HostOutcome::Refused {
            rule: "network:list".to_owned(),
            why: "no rule allows b:443".to_owned(),
            remedy: "add it".to_owned(),
        };
        let failed = HostOutcome::Failed {
            why: "c:80 cannot be resolved".to_owned(),
            remedy: String::new(),
        };
        let private = HostOutcome::Failed {
            why: "d:80 has the private address 10.0.0.1".to_owned(),
            remedy: "run `x`".to_owned(),
        };
        let request = HostNote {
            request: Some("POST /x".to_owned()),
            ..note(
                "a:443",
                HostOutcome::Refused {
                    rule: "rule:read".to_owned(),
                    why: "it writes".to_owned(),
                    remedy: String::new(),
                },
            )
        };
        assert_eq!(facts(std::slice::from_ref(&request)).unwrap()[0]["request"], "POST /x");
        let notes = [
            note("a:443", allowed.clone()),
            request,
            note("b:443", refused),
            note("c:80", allowed.clone()),
            note("c:80", failed),
            note("d:80", private),
        ];
        assert_eq!(
            lines(&notes),
            [
                "network: POST /x on a:443 refused: it writes (rule:read)",
                "network: b:443 refused: no rule allows b:443 (network:list); ask the operator to add it",
                "network: c:80 cannot be resolved",
                "network: d:80 has the private address 10.0.0.1; ask the operator to run `x`",
                "network: a:443 allowed by rule:registries",
            ]
        );
        let many: Vec<HostNote> =
            (0..20).map(|number| note(&number.to_string(), allowed.clone())).collect();
        assert_eq!(lines(&many).len(), MAX_LINES + 1);
        assert_eq!(lines(&many)[MAX_LINES], "network: 12 more hosts");
        assert_eq!(facts(&[]), None);
    }
}
