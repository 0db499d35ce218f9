//! Credentials that requests get, and that commands never have.

use super::*;

const SECRET: &str = "r3al-s3cret-0f-the-operator";

fn injection(host: &str, placeholder: Option<&str>) -> Injection {
    Injection {
        host: host.to_owned(),
        port: 443,
        header: "Authorization".to_owned(),
        format: "Bearer {}".to_owned(),
        secret: SECRET.to_owned(),
        placeholder: placeholder.map(str::to_owned),
    }
}

fn with_credential() -> Inspected {
    let injections = vec![injection("api.ok.test", Some("API_TOKEN"))];
    let variables = vec![("API_TOKEN", SECRET), ("PLAIN_NAME", SECRET), ("OTHER", "kept")];
    Inspected::with(CREDENTIAL_RULES, injections, HashMap::new(), variables)
}

fn authorizations(inspected: &Inspected) -> Vec<String> {
    let of = |headers: &Vec<(String, String)>| {
        let found = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        found.map(|(_, value)| value.clone()).collect::<Vec<_>>().join("|")
    };
    inspected.arrived().iter().map(|(_, headers)| of(headers)).collect()
}

#[test]
fn the_secret_is_sent_and_never_inside() {
    let inspected = with_credential();
    let reply = inspected.bash(
        "curl -sS https://api.ok.test/a; curl -sS -H 'Authorization: Bearer mine' -H 'Authorization: Basic bWU6' https://api.ok.test/b; \
         curl -sS -H \"Authorization: token $API_TOKEN\" https://api.ok.test/c; curl -sS -u \"me:$API_TOKEN\" https://api.ok.test/d; \
         curl -sS -X DELETE https://api.ok.test/e",
    );
    assert!(reply.contains("GET /a\n") && reply.contains("DELETE /e\n"), "{reply}");
    let basic = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(format!("me:{SECRET}"))
    };
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(
        authorizations(&inspected),
        [
            bearer.clone(),
            bearer.clone(),
            format!("token {SECRET}"),
            format!("Basic {basic}"),
            bearer
        ]
    );
    let seen = inspected.bash(
        "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat /run/toolcrib/* 2>/dev/null | head -c 1000; echo $OTHER",
    );
    assert!(!seen.contains(SECRET) && seen.contains("kept"), "{seen}");
    // Also unmasked: the command looks for it itself.
    let found = inspected.bash(&format!(
        "s=$(echo {} | rev); env | grep -c \"$s\"; cat /proc/*/environ 2>/dev/null | grep -ac \"$s\"; grep -ac \"$s\" -r /run /etc/ssl/certs 2>/dev/null | grep -vc ':0$'",
        SECRET.chars().rev().collect::<String>()
    ));
    assert!(found.starts_with("0\n0\n0\n"), "{found}");
    let state = inspected.top.path().join("state");
    let grep = Command::new("grep").args(["-rac", SECRET]).arg(state).output().unwrap();
    let counts = String::from_utf8_lossy(&grep.stdout).into_owned();
    assert!(counts.lines().all(|line| line.ends_with(":0")), "{counts}");
}

/// A server that sends the secret back shows it to the command, but not to the model.
#[test]
fn the_placeholder_is_swapped_only_towards_its_host() {
    let inspected = with_credential();
    let reply = inspected.bash(
        "echo $API_TOKEN | cut -c1-11; curl -sS --cacert @CA@ -H \"Authorization: Bearer $API_TOKEN\" https://open.ok.test/a; \
         curl -sS -H \"X-Other: $API_TOKEN\" https://api.ok.test/b; curl -sS -H \"Authorization: Bearer $API_TOKEN\" http://api.ok.test/c",
    );
    assert!(reply.starts_with("placeholder\n") || reply.contains("GET /a"), "{reply}");
    let arrived = inspected.arrived();
    let header = |at: usize, wanted: &str| -> String {
        let (_, headers) = &arrived[at];
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert!(header(0, "authorization").starts_with("Bearer placeholder-"), "{arrived:?}");
    assert!(header(1, "x-other").starts_with("placeholder-"), "only in its own header");
    assert_eq!(header(1, "authorization"), format!("Bearer {SECRET}"));
    assert!(header(2, "authorization").starts_with("Bearer placeholder-"), "not without TLS");
}

#[test]
fn rules_decide_before_a_credential_is_added() {
    let injections = vec![injection("api.ok.test", None)];
    let inspected = Inspected::with(RULES, injections, HashMap::new(), Vec::new());
    let reply = inspected
        .bash("curl -sS https://api.ok.test/v1/x; curl -sS -X DELETE https://api.ok.test/v1/x");
    assert!(reply.contains("GET /v1/x\n") && reply.contains("Toolcrib refused DELETE"), "{reply}");
    assert_eq!(authorizations(&inspected), [format!("Bearer {SECRET}")]);
}

#[test]
fn an_invalid_credential_is_an_error_without_the_secret() {
    let top = crate::command_directory();
    let injection = Injection { format: "Bearer".to_owned(), ..injection("api.ok.test", None) };
    let built = Runtime::builder()
        .root(top.path())
        .sandbox(SandboxSettings { network: Network::List, ..SandboxSettings::default() })
        .inspection(InspectionSettings { injections: vec![injection], roots: None })
        .build();
    let error = built.err().unwrap().to_string();
    assert!(error.contains("inject for api.ok.test") && !error.contains(SECRET), "{error}");
}
