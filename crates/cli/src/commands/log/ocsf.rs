//! Records of the audit log as API Activity events of the Open Cybersecurity Schema Framework (class 6003).

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::{AuditEvent, CallRecord, CommandEndRecord};

/// The version of the schema: the first in which this class has the profile. Later ones have the same members.
const VERSION: &str = "1.4.0";

/// The class and its category, Application Activity.
const CLASS: u64 = 6003;
const CATEGORY: u64 = 6;

/// Activities of the class.
const READ: u64 = 2;
const UPDATE: u64 = 3;
const OTHER: u64 = 99;

#[derive(Deserialize)]
struct Link {
    hash: String,
    prev: String,
    seq: u64,
}

/// The event of a line. `None` if the line is not a record.
pub(super) fn event(line: &[u8], host: &str) -> Option<Value> {
    let link: Link = serde_json::from_slice(line).ok()?;
    let mut event = match serde_json::from_slice(line).ok()? {
        AuditEvent::Call { user, process, client, principal, call } => {
            let mut event = of_call(&call);
            event["actor"] = json!({
                "user": {"uid": user.to_string()},
                "process": {"pid": process},
                "session": {"uid": session_uid(&call)},
            });
            if let Some(principal) = principal {
                let server_user = event["actor"]["user"].take();
                event["actor"]["process"]["user"] = server_user;
                event["actor"]["user"] = json!({"uid": principal.subject});
                event["actor"]["idp"] = json!({"name": principal.issuer});
            }
            if let Some(client) = client {
                event["actor"]["app_name"] = client.into();
            }
            event
        }
        AuditEvent::CommandEnd(end) => of_command_end(&end),
        AuditEvent::OldestRemoved { last, last_hash, time_ms } => {
            let message = format!(
                "The log was over its limit, so that the records up to {last} were removed"
            );
            let mut event =
                of_log_change(time_ms, "OldestRemoved", "Oldest records removed", &message);
            event["unmapped"] = json!({"last": last, "last_hash": last_hash});
            event
        }
        AuditEvent::TornLineRemoved { bytes, time_ms } => {
            let message =
                format!("A crash had left an incomplete line of {bytes} bytes, which was removed");
            of_log_change(time_ms, "TornLineRemoved", "Log repaired", &message)
        }
    };
    let activity = event["activity_id"].as_u64().unwrap_or(OTHER);
    event["class_uid"] = CLASS.into();
    event["category_uid"] = CATEGORY.into();
    event["type_uid"] = (CLASS * 100 + activity).into();
    if event["actor"].is_null() {
        event["actor"] = json!({"app_name": "toolcrib"});
    }
    event["src_endpoint"] = if host.is_empty() {
        json!({"svc_name": "toolcrib"})
    } else {
        json!({"hostname": host, "svc_name": "toolcrib"})
    };
    event["metadata"] = json!({
        "version": VERSION,
        "product": {"name": "Toolcrib", "vendor_name": "Toolcrib", "version": env!("CARGO_PKG_VERSION")},
        "profiles": ["security_control"],
        "log_name": "audit",
        "uid": link.hash,
        "sequence": link.seq,
    });
    event["unmapped"]["prev"] = link.prev.into();
    Some(event)
}

/// A session has a number in its server, whose id begins the ids of its calls and is unique.
fn session_uid(call: &CallRecord) -> String {
    let server = call.id.rsplit_once('-').map_or(call.id.as_str(), |(server, _)| server);
    format!("{server}/{}", call.session)
}

fn of_call(call: &CallRecord) -> Value {
    let has = |effect: &str| call.accesses.iter().any(|(other, _)| other == effect);
    let (activity, name) = if has("command") || has("reach") {
        (OTHER, "Execute")
    } else if has("write") || call.change.is_some() {
        (UPDATE, "Update")
    } else if has("read") {
        (READ, "Read")
    } else {
        (OTHER, "Call")
    };
    let is_denied = call.outcome == "denied";
    let is_failed = is_denied || call.outcome == "failed";
    let (action, disposition) = match (call.decision.as_deref(), &call.answered) {
        _ if is_denied => (2, 2),
        (None, _) => (0, 0),
        (_, Some(_)) => (1, 8),
        _ => (1, 1),
    };
    let resource = |(effect, text): &(String, String)| json!({"name": text, "type": effect});
    let mut event = json!({
        "time": call.time_ms,
        "activity_id": activity,
        "activity_name": name,
        "severity_id": if is_denied { 2 } else { 1 },
        "status_id": if is_failed { 2 } else { 1 },
        "action_id": action,
        "disposition_id": disposition,
        "message": format!("{}: {}", call.tool, call.outcome),
        "api": {
            "operation": call.tool,
            "service": {"name": "toolcrib"},
            "request": {"uid": call.id, "data": call.arguments},
        },
        "resources": call.accesses.iter().map(resource).collect::<Vec<_>>(),
        "unmapped": {
            "workspace": call.workspace,
            "duration_ms": call.ms,
            "dry_run": call.dry_run,
            "description": call.description,
            "change": call.change,
            "files_changed": call.files_changed,
            "answered": call.answered,
            "refusals": call.refusals,
        },
    });
    if call.arguments.is_null() {
        event["api"]["request"] = json!({"uid": call.id});
    }
    if let Some(rule) = &call.rule {
        event["policy"] = json!({"name": rule});
    }
    if let Some(kind) = &call.error_kind {
        event["status_code"] = kind.as_str().into();
        event["api"]["response"] = json!({"error": kind, "error_message": call.message});
    }
    if let Some(message) = &call.message {
        event["status_detail"] = message.as_str().into();
    }
    event
}

/// A change of the log itself.
fn of_log_change(time_ms: u64, operation: &str, activity: &str, message: &str) -> Value {
    json!({
        "time": time_ms,
        "activity_id": OTHER,
        "activity_name": activity,
        "severity_id": 2,
        "status_id": 1,
        "api": {"operation": operation, "service": {"name": "toolcrib"}},
        "message": message,
    })
}

fn of_command_end(end: &CommandEndRecord) -> Value {
    let mut event = json!({
        "time": end.time_ms,
        "activity_id": OTHER,
        "activity_name": "Command ended",
        "severity_id": 1,
        "status_id": if end.status == "completed" { 1 } else { 2 },
        "status_detail": end.status,
        "message": format!("A command of an earlier call ended: {}", end.status),
        "api": {
            "operation": "CommandEnd",
            "service": {"name": "toolcrib"},
            "request": {"uid": end.call},
        },
        "unmapped": {"refusals": end.refusals},
    });
    if let Some(code) = end.exit_code {
        event["status_code"] = code.to_string().into();
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members that the schema requires, and the values that it lists.
    fn assert_is_api_activity(event: &Value) {
        for key in ["activity_id", "category_uid", "class_uid", "severity_id", "time", "type_uid"] {
            assert!(event[key].is_u64(), "{key} in {event}");
        }
        assert_eq!((&event["class_uid"], &event["category_uid"]), (&json!(6003), &json!(6)));
        let activity = event["activity_id"].as_u64().unwrap();
        assert!([1, 2, 3, 4, 99].contains(&activity));
        assert_eq!(event["type_uid"], 600_300 + activity);
        assert!([1, 2].contains(&event["severity_id"].as_u64().unwrap()));
        assert!([1, 2].contains(&event["status_id"].as_u64().unwrap()));
        let metadata = &event["metadata"];
        assert!(metadata["version"].is_string() && metadata["product"]["name"].is_string());
        assert!(event["api"]["operation"].is_string());
        let request = &event["api"]["request"];
        assert!(request.is_null() || request["uid"].is_string(), "a request has a uid");
        let actor = event["actor"].as_object().unwrap();
        let known = ["process", "user", "session", "app_name"];
        assert!(!actor.is_empty() && actor.keys().all(|key| known.contains(&key.as_str())));
        assert!(event["src_endpoint"]["svc_name"].is_string());
        for resource in event["resources"].as_array().into_iter().flatten() {
            assert!(resource["name"].is_string(), "a resource has a name");
        }
    }

    #[test]
    fn records_become_api_activity() {
        let chain = |seq: u64| format!("{{\"hash\":\"h{seq}\",\"prev\":\"p\",\"seq\":{seq},");
        let call = |more: &str| {
            let call = "\"event\":\"call\",\"user\":1000,\"process\":7,\"client\":\"claude 2\",\"id\":\"7-a-1\",\"time_ms\":5,\
                        \"session\":1,\"workspace\":\"/w\",\"tool\":\"Bash\",\"ms\":3,";
            event(format!("{}{call}{more}}}", chain(1)).as_bytes(), "box").unwrap()
        };
        let done = call(
            "\"outcome\":\"done\",\"decision\":\"allow\",\"rule\":\"r\",\"accesses\":[[\"command\",\"make\"]],\"arguments\":{\"x\":1}",
        );
        assert_is_api_activity(&done);
        assert_eq!((&done["activity_name"], &done["action_id"]), (&json!("Execute"), &json!(1)));
        assert_eq!(done["actor"]["session"]["uid"], "7-a/1");
        assert_eq!(done["resources"], json!([{"name": "make", "type": "command"}]));
        assert_eq!(
            (&done["actor"]["app_name"], &done["metadata"]["uid"]),
            (&json!("claude 2"), &json!("h1"))
        );
        let denied = call(
            "\"outcome\":\"denied\",\"decision\":\"ask\",\"rule\":\"r\",\"error_kind\":\"denied\",\"message\":\"no\",\"accesses\":[[\"write\",\"/w/a\"]]",
        );
        assert_is_api_activity(&denied);
        assert_eq!((&denied["status_id"], &denied["disposition_id"]), (&json!(2), &json!(2)));
        assert_eq!(denied["activity_id"], 3);
        let asked = call(
            "\"outcome\":\"done\",\"decision\":\"ask\",\"answered\":[\"once\",\"user\"],\"accesses\":[[\"read\",\"/w/a\"]]",
        );
        assert_eq!((&asked["disposition_id"], &asked["activity_id"]), (&json!(8), &json!(2)));
        let unknown =
            call("\"outcome\":\"failed\",\"error_kind\":\"invalid\",\"message\":\"no such tool\"");
        assert_is_api_activity(&unknown);
        let end = "\"event\":\"command_end\",\"call\":\"7-a-1\",\"time_ms\":9,\"status\":\"failed\",\"exit_code\":2}";
        assert_is_api_activity(&event(format!("{}{end}", chain(2)).as_bytes(), "").unwrap());
        let torn = "\"event\":\"torn_line_removed\",\"bytes\":9,\"time_ms\":9}";
        assert_is_api_activity(&event(format!("{}{torn}", chain(3)).as_bytes(), "").unwrap());
        let removed = "\"event\":\"oldest_removed\",\"last\":3,\"last_hash\":\"h3\",\"time_ms\":9}";
        assert_is_api_activity(&event(format!("{}{removed}", chain(4)).as_bytes(), "").unwrap());
        assert!(event(b"{}", "").is_none() && event(b"nonsense", "").is_none());
    }
}
