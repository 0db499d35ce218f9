//! Decides on requests of HTTP to hosts for which a rule names methods or paths.

use super::{Part, PartDecision, Policy};
use crate::approval_subject::ApprovalScope;
use crate::command::CommandAnalysis;
use crate::contacted_hosts::{contacted_hosts, target};
use crate::decision::Decision;
use crate::new_rule::NewRule;
use crate::rule::{RequestSubject, Rule};

/// The rule of a request that was allowed with its connection.
const ANSWER: &str = "answer";

/// The decision on a request. It is never to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestVerdict {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// The rule that decided.
    pub rule: String,
    /// The reason of that rule.
    pub why: String,
    /// How an operator can allow the request, as an imperative; empty if it is allowed.
    pub remedy: String,
}

impl Policy {
    /// Whether requests to a host are decided one by one.
    pub fn inspects(&self, host: &str, port: u16) -> bool {
        self.rules.for_requests_to(host, Some(port)).next().is_some()
    }

    /// Decides on a request. The connection was allowed before: by a rule for the whole host, by a rule for some of its
    /// requests, or by an answer.
    pub fn decide_request(
        &self,
        host: &str,
        port: u16,
        request: &RequestSubject<'_>,
    ) -> RequestVerdict {
        let whole = self.rules.for_host(host, Some(port));
        // After an upgrade, requests are no longer seen. A host with rules for requests needs a rule with `upgrade`.
        let hides_requests = request.is_upgrade && self.inspects(host, port);
        let whole = whole.filter(|rule| !hides_requests || rule.decision != Decision::Allow);
        let matching: Vec<&Rule> = self
            .rules
            .for_requests_to(host, Some(port))
            .filter(|rule| rule.matches_request(request))
            .collect();
        let denial =
            matching.iter().copied().chain(whole).find(|rule| rule.decision == Decision::Deny);
        if let Some(rule) = denial.or_else(|| matching.first().copied()).or(whole) {
            return RequestVerdict::by(rule, host, port);
        }
        let mut some = self.rules.for_requests_to(host, Some(port));
        if hides_requests || some.any(|rule| rule.decision == Decision::Allow) {
            return self.not_allowed(host, port, request);
        }
        let why = "the connection was allowed";
        RequestVerdict {
            is_allowed: true,
            rule: ANSWER.to_owned(),
            why: why.to_owned(),
            remedy: String::new(),
        }
    }

    /// The decisions on requests to the hosts that a script names and that are inspected.
    pub(super) fn request_decisions_of(&self, script: &CommandAnalysis) -> Vec<PartDecision> {
        let hosts = script.commands.iter().flat_map(contacted_hosts);
        let mut hosts: Vec<(String, u16)> =
            hosts.filter_map(|host| Some((host.name, host.port?))).collect();
        hosts.sort();
        hosts.dedup();
        let decisions = |(host, port): (String, u16)| {
            let target = target(&host, Some(port));
            let named = move |one: PartDecision| PartDecision {
                subject: format!("{} on {target}", one.subject),
                ..one
            };
            self.request_decisions(&host, port).into_iter().map(named).collect::<Vec<_>>()
        };
        hosts.into_iter().flat_map(decisions).collect()
    }

    /// The decisions of rules on requests to a host, with the methods and the paths that each names. Empty if requests
    /// are not inspected.
    pub fn request_decisions(&self, host: &str, port: u16) -> Vec<PartDecision> {
        let mut decisions: Vec<PartDecision> = self
            .rules
            .for_requests_to(host, Some(port))
            .filter_map(|rule| {
                let subject = rule.requests.as_ref()?.to_string();
                Some(part(rule, host, port).about(subject).into_decision())
            })
            .collect();
        let whole = self.rules.for_host(host, Some(port));
        if decisions.is_empty() {
            return decisions;
        }
        let subject = "other requests".to_owned();
        let is_allowed_in_part = decisions.iter().any(|one| one.decision == Decision::Allow);
        decisions.push(match whole {
            Some(rule) => part(rule, host, port).about(subject).into_decision(),
            None if is_allowed_in_part => {
                let why = format!("no rule allows them on {}", target(host, Some(port)));
                Part::new(Decision::Deny, "network:list", why, "").about(subject).into_decision()
            }
            None => self.host_part(host, Some(port)).about(subject).into_decision(),
        });
        decisions
    }

    /// The verdict on a request to a host of which rules allow other requests.
    fn not_allowed(&self, host: &str, port: u16, request: &RequestSubject<'_>) -> RequestVerdict {
        let target = target(host, Some(port));
        let RequestSubject { method, path, is_upgrade, .. } = request;
        let protocol = if *is_upgrade { " with an upgrade" } else { "" };
        let rule = NewRule {
            methods: vec![(*method).to_owned()],
            request_paths: vec![(*path).to_owned()],
            upgrade: *is_upgrade,
            file: self.rules_file.clone(),
            ..NewRule::new(Decision::Allow, "network", target.clone())
        };
        RequestVerdict {
            is_allowed: false,
            rule: "network:list".to_owned(),
            why: format!("no rule allows {method} {path}{protocol} on {target}"),
            remedy: format!("run `{}`", rule.command()),
        }
    }
}

impl RequestVerdict {
    fn by(rule: &Rule, host: &str, port: u16) -> RequestVerdict {
        let verdict = part(rule, host, port).into_verdict();
        RequestVerdict {
            is_allowed: rule.decision != Decision::Deny,
            rule: verdict.rule,
            why: verdict.why,
            remedy: verdict.remedy,
        }
    }
}

fn part<'p>(rule: &'p Rule, host: &str, port: u16) -> Part<'p> {
    Part::from_rule(rule, || ApprovalScope::Host(target(host, Some(port))))
}
