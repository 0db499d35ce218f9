//! Spans and metrics in OTLP's JSON: ids in hexadecimal, 64-bit numbers as strings, enumerations as numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use toolcrib::{ErrorKind, Outcome, Record};

use crate::durations::{Attributes, BOUNDS, Durations, Histogram};
use crate::trace_parent::TraceParent;

/// The operation of the protocol.
const METHOD: &str = "tools/call";

/// The metric of the semantic conventions.
const DURATION: &str = "mcp.server.operation.duration";

/// The name of a tool that does not exist: names that callers invent would make any number of series.
const OTHER: &str = "_OTHER";

/// Kinds of spans.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;

/// The status of a failed span.
const ERROR: u64 = 2;

/// Values since the start of the program, not since the last export.
const CUMULATIVE: u64 = 2;

/// The maximum length of an attribute, in characters.
const MAX_CHARS: usize = 4_096;

/// A call, with what the exporter knows about it.
#[derive(Debug)]
pub(crate) struct CallSpan {
    pub(crate) record: Record,
    pub(crate) parent: Option<TraceParent>,
    /// Whether the tool exists.
    pub(crate) is_known: bool,
}

/// The name of a tool that is safe for a series.
fn tool_name(record: &Record, is_known: bool) -> &str {
    if is_known { &record.tool } else { OTHER }
}

/// Whether a call came over MCP.
pub(crate) fn is_mcp(record: &Record) -> bool {
    record.origin.protocol_version.is_some()
}

fn is_failed(record: &Record) -> Option<ErrorKind> {
    match &record.outcome {
        Outcome::Failed { kind, .. } => Some(*kind),
        _ => None,
    }
}

/// The attributes of the duration of a call.
pub(crate) fn duration_attributes(record: &Record, is_known: bool) -> Attributes {
    let mut attributes = vec![
        ("mcp.method.name", METHOD.to_owned()),
        ("gen_ai.operation.name", "execute_tool".to_owned()),
        ("gen_ai.tool.name", tool_name(record, is_known).to_owned()),
    ];
    let origin = &record.origin;
    attributes
        .extend(origin.protocol_version.clone().map(|version| ("mcp.protocol.version", version)));
    attributes
        .extend(origin.transport.map(|transport| ("network.transport", transport.to_owned())));
    attributes.extend(is_failed(record).map(|_| ("error.type", "tool_error".to_owned())));
    attributes
}

/// The body of a request with spans. `id` makes random bytes.
pub(crate) fn traces(
    resource: &[(String, String)],
    spans: &[CallSpan],
    has_content: bool,
    server: &str,
    mut id: impl FnMut() -> [u8; 16],
) -> Value {
    let spans: Vec<Value> =
        spans.iter().map(|span| of_call(span, has_content, server, &mut id)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes_of(resource)},
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

fn of_call(
    span: &CallSpan,
    has_content: bool,
    server: &str,
    id: &mut impl FnMut() -> [u8; 16],
) -> Value {
    let CallSpan { record, parent, is_known } = span;
    let (origin, tool) = (&record.origin, tool_name(record, *is_known));
    let is_mcp = is_mcp(record);
    let mut attributes = Vec::new();
    let mut add = |name: &str, value: Value| attributes.push(json!({"key": name, "value": value}));
    if is_mcp {
        add("mcp.method.name", text(METHOD));
    }
    add("gen_ai.operation.name", text("execute_tool"));
    add("gen_ai.tool.name", text(tool));
    for (name, value) in [
        ("mcp.protocol.version", origin.protocol_version.as_deref()),
        ("jsonrpc.request.id", origin.request_id.as_deref()),
        ("network.transport", origin.transport),
        ("toolcrib.client", origin.client.as_deref()),
        ("toolcrib.decision", record.decision.as_ref().map(|(decision, _)| decision.name())),
    ] {
        if let Some(value) = value {
            add(name, text(value));
        }
    }
    add("toolcrib.call.id", text(&format!("{server}-{}", record.call)));
    add("toolcrib.session", number(record.session));
    for (name, value) in
        [("toolcrib.change", record.change), ("toolcrib.files_changed", record.files_changed)]
    {
        if let Some(value) = value {
            add(name, number(value));
        }
    }
    if record.dry_run {
        add("toolcrib.dry_run", json!({"boolValue": true}));
    }
    let mut status = json!({});
    if let Outcome::Failed { kind, message } = &record.outcome {
        add("error.type", text("tool_error"));
        add("toolcrib.error.kind", text(kind.name()));
        status = json!({"code": ERROR, "message": if has_content { message } else { kind.name() }});
    }
    if has_content {
        add("gen_ai.tool.call.arguments", text(&record.arguments.to_string()));
        if let Some(description) = &record.description {
            add("toolcrib.description", text(description));
        }
    }
    let operation = if is_mcp { METHOD } else { "execute_tool" };
    let trace_id = parent.as_ref().map_or_else(|| hex(&id()), |parent| parent.trace_id.clone());
    let mut fields = Map::new();
    fields.insert("traceId".to_owned(), trace_id.into());
    fields.insert("spanId".to_owned(), hex(&id()[..8]).into());
    if let Some(parent) = parent {
        fields.insert("parentSpanId".to_owned(), parent.span_id.as_str().into());
        fields.extend(
            origin.trace_state.clone().map(|state| ("traceState".to_owned(), state.into())),
        );
    }
    fields.insert("name".to_owned(), format!("{operation} {tool}").into());
    fields.insert("kind".to_owned(), if is_mcp { SERVER } else { INTERNAL }.into());
    fields.insert("startTimeUnixNano".to_owned(), nanoseconds(record.started).into());
    fields
        .insert("endTimeUnixNano".to_owned(), nanoseconds(record.started + record.duration).into());
    fields.insert("attributes".to_owned(), attributes.into());
    fields.insert("status".to_owned(), status);
    Value::Object(fields)
}

/// The body of a request with metrics.
pub(crate) fn metrics(
    resource: &[(String, String)],
    durations: &Durations,
    dropped: u64,
    (since, now): (SystemTime, SystemTime),
) -> Value {
    let times = (nanoseconds(since), nanoseconds(now));
    let points: Vec<Value> = durations
        .series
        .iter()
        .map(|(attributes, histogram)| point(attributes, histogram, &times))
        .collect();
    let mut all = vec![json!({
        "name": "toolcrib.telemetry.dropped_spans",
        "description": "Spans that were not exported",
        "unit": "{span}",
        "sum": {
            "aggregationTemporality": CUMULATIVE,
            "isMonotonic": true,
            "dataPoints": [{
                "startTimeUnixNano": times.0, "timeUnixNano": times.1, "asInt": dropped.to_string(),
            }],
        },
    })];
    if !points.is_empty() {
        all.push(json!({
            "name": DURATION,
            "description": "The duration of calls as the server observed it",
            "unit": "s",
            "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
        }));
    }
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes_of(resource)},
        "scopeMetrics": [{"scope": scope(), "metrics": all}],
    }]})
}

fn point(attributes: &Attributes, histogram: &Histogram, times: &(String, String)) -> Value {
    let attributes: Vec<Value> =
        attributes.iter().map(|(name, value)| json!({"key": name, "value": text(value)})).collect();
    json!({
        "attributes": attributes,
        "startTimeUnixNano": times.0,
        "timeUnixNano": times.1,
        "count": histogram.counts.iter().sum::<u64>().to_string(),
        "sum": histogram.sum,
        "min": histogram.min,
        "max": histogram.max,
        "bucketCounts": histogram.counts.map(|count| count.to_string()),
        "explicitBounds": BOUNDS,
    })
}

fn scope() -> Value {
    json!({"name": "toolcrib", "version": env!("CARGO_PKG_VERSION")})
}

fn attributes_of(pairs: &[(String, String)]) -> Vec<Value> {
    pairs.iter().map(|(name, value)| json!({"key": name, "value": text(value)})).collect()
}

fn text(value: &str) -> Value {
    match value.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => json!({"stringValue": format!("{}…", &value[..end])}),
        None => json!({"stringValue": value}),
    }
}

fn number(value: u64) -> Value {
    json!({"intValue": value.to_string()})
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
