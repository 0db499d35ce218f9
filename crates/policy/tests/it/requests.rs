//! Decisions on requests to inspected hosts.

use toolcrib_policy::{Access, Decision, Policy, Profile, RequestSubject, Rules, SessionApprovals};

const RULES: &str = r#"
    [[rule]]
    name = "read"
    decision = "allow"
    kind = "network"
    hosts = ["api.example.com:443"]
    methods = ["GET"]
    paths = ["/v1/**"]

    [[rule]]
    name = "chat"
    decision = "allow"
    kind = "network"
    hosts = ["api.example.com:443"]
    methods = ["GET"]
    paths = ["/chat"]
    upgrade = true

    [[rule]]
    name = "private"
    decision = "deny"
    kind = "network"
    hosts = ["api.example.com"]
    paths = ["/v1/private"]
    why = "it is private"

    [[rule]]
    name = "mirror"
    decision = "allow"
    kind = "network"
    hosts = ["mirror.example.com"]

    [[rule]]
    name = "no-uploads"
    decision = "deny"
    kind = "network"
    hosts = ["*.example.com", "asked.test"]
    methods = ["PUT"]
"#;

fn policy() -> Policy {
    Policy::new(Profile::Workspace).rules(Rules::parse(RULES).unwrap()).network_by_name(true)
}

fn decided(host: &str, method: &str, path: &str) -> (bool, String) {
    let request = RequestSubject { method, path, query: None, is_upgrade: false };
    let verdict = policy().decide_request(host, 443, &request);
    (verdict.is_allowed, verdict.rule)
}

#[test]
fn each_request_is_decided_by_the_strictest_rule() {
    for (host, method, path, expected) in [
        ("api.example.com", "GET", "/v1/items", (true, "rule:read")),
        ("api.example.com", "GET", "/v1/private/x", (false, "rule:private")),
        ("api.example.com", "get", "/v1/items", (false, "network:list")),
        ("api.example.com", "POST", "/v1/items", (false, "network:list")),
        ("api.example.com", "GET", "/", (false, "network:list")),
        ("api.example.com", "PUT", "/v1/items", (false, "rule:no-uploads")),
        ("api.example.com", "put", "/v1/items", (false, "rule:no-uploads")),
        ("mirror.example.com", "POST", "/x", (true, "rule:mirror")),
        ("mirror.example.com", "PUT", "/x", (false, "rule:no-uploads")),
        // Allowed by an answer.
        ("asked.test", "POST", "/x", (true, "answer")),
        ("asked.test", "PUT", "/x", (false, "rule:no-uploads")),
    ] {
        let (is_allowed, rule) = decided(host, method, path);
        assert_eq!((is_allowed, rule.as_str()), expected, "{method} {host}{path}");
    }
}

#[test]
fn a_refused_request_says_what_would_allow_it() {
    let request = RequestSubject {
        method: "POST",
        path: "/v1/items",
        query: Some("token=x"),
        is_upgrade: false,
    };
    let verdict = policy().decide_request("api.example.com", 443, &request);
    assert_eq!(verdict.why, "no rule allows POST /v1/items on api.example.com:443");
    let remedy =
        "run `toolcrib policy allow network --method POST --path /v1/items api.example.com:443`";
    assert_eq!(verdict.remedy, remedy);
}

#[test]
fn an_upgrade_needs_a_rule_of_its_own() {
    let upgrade = |host: &str, path: &str| {
        let request = RequestSubject { method: "GET", path, query: None, is_upgrade: true };
        policy().decide_request(host, 443, &request).is_allowed
    };
    assert!(upgrade("api.example.com", "/chat"));
    assert!(!upgrade("api.example.com", "/v1/items"));
    assert!(!upgrade("mirror.example.com", "/chat"), "denied requests could follow it unseen");
}

#[test]
fn rules_for_requests_allow_to_connect_and_do_not_deny_it() {
    let policy = policy();
    let connect = |host: &str, port: u16| {
        let access = [Access::Connect(host.to_owned(), port)];
        policy.decide(&access, &SessionApprovals::new()).decision
    };
    assert_eq!(connect("api.example.com", 443), Decision::Allow);
    assert_eq!(connect("api.example.com", 80), Decision::Ask, "no rule allows this port");
    assert_eq!(connect("asked.test", 443), Decision::Ask);
    assert!(policy.inspects("api.example.com", 443) && policy.inspects("mirror.example.com", 1));
    assert!(!policy.inspects("other.test", 443));
    // A tool that reaches a host is not restricted to some requests.
    let reach = [Access::Reach("https://api.example.com/v1".to_owned())];
    assert_eq!(policy.decide(&reach, &SessionApprovals::new()).decision, Decision::Ask);
}

#[test]
fn the_rules_of_a_host_are_listed() {
    let listed: Vec<String> = policy()
        .request_decisions("api.example.com", 443)
        .into_iter()
        .map(|one| format!("{} {}: {}", one.decision.name(), one.subject, one.rule))
        .collect();
    assert_eq!(
        listed,
        [
            "allow GET /v1/**: rule:read",
            "allow GET /chat: rule:chat",
            "deny * /v1/private: rule:private",
            "deny PUT /**: rule:no-uploads",
            "deny other requests: network:list",
        ]
    );
    assert!(policy().request_decisions("other.test", 443).is_empty());
}
