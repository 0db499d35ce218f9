//! The settings, from the standard variables of OpenTelemetry.

use std::path::PathBuf;
use std::time::Duration;

use toolcrib_net::HttpTarget;

/// Limits of the settings, so that a typing error does not fill the memory.
const MAX_QUEUE: usize = 100_000;
const MAX_ATTRIBUTES: usize = 64;

/// Where spans and metrics are sent, and what they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub(crate) traces: Option<Receiver>,
    pub(crate) metrics: Option<Receiver>,
    /// Attributes of the program.
    pub(crate) resource: Vec<(String, String)>,
    /// Whether spans have arguments and messages.
    pub(crate) has_content: bool,
    /// The number of spans that may wait.
    pub(crate) queue: usize,
    /// The time between two exports of spans, and of metrics.
    pub(crate) span_delay: Duration,
    pub(crate) metric_interval: Duration,
}

/// The receiver of one kind of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) target: HttpTarget,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) authorities: Option<PathBuf>,
}

impl Settings {
    /// Reads the variables. `None` if no receiver is configured.
    ///
    /// # Errors
    ///
    /// Fails with the reason if a variable has a value that cannot be used.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
        version: &str,
    ) -> Result<Option<Settings>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_true =
            |name: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_true("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let traces = receiver(&variable, "TRACES", "v1/traces")?;
        let metrics = receiver(&variable, "METRICS", "v1/metrics")?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let milliseconds =
            |name: &str, usual| number(&variable, name, usual).map(Duration::from_millis);
        let queue = number(&variable, "OTEL_BSP_MAX_QUEUE_SIZE", 2_048)?;
        Ok(Some(Settings {
            traces,
            metrics,
            resource: resource(&variable, version),
            has_content: is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
            queue: usize::try_from(queue).unwrap_or(MAX_QUEUE).clamp(1, MAX_QUEUE),
            span_delay: milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5_000)?,
            metric_interval: milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?,
        }))
    }
}

/// The receiver of a kind of data, with its own variables before the common ones.
fn receiver(
    variable: &impl Fn(&str) -> Option<String>,
    kind: &str,
    path: &str,
) -> Result<Option<Receiver>, String> {
    if variable(&format!("OTEL_{kind}_EXPORTER")).is_some_and(|name| name == "none") {
        return Ok(None);
    }
    let own = |name: &str| variable(&format!("OTEL_EXPORTER_OTLP_{kind}_{name}"));
    let either = |name: &str| own(name).or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")));
    let target = match (own("ENDPOINT"), variable("OTEL_EXPORTER_OTLP_ENDPOINT")) {
        (Some(url), _) => HttpTarget::parse(url.trim())?,
        (None, Some(url)) => HttpTarget::parse(url.trim())?.below(path),
        (None, None) => return Ok(None),
    };
    if either("PROTOCOL").is_some_and(|protocol| protocol.trim() == "grpc") {
        return Err("OTEL_EXPORTER_OTLP_PROTOCOL is grpc; only http/json is supported, usually at port 4318".to_owned());
    }
    let timeout = match either("TIMEOUT") {
        Some(text) => text
            .trim()
            .parse()
            .map_err(|_| "OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds")?,
        None => 10_000,
    };
    Ok(Some(Receiver {
        target,
        headers: either("HEADERS").map_or(Ok(Vec::new()), |text| headers(&text))?,
        timeout: Duration::from_millis(timeout),
        authorities: either("CERTIFICATE").map(PathBuf::from),
    }))
}

/// `name=value,name=value`, with percent signs as in addresses.
fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    // The value may be a secret, so messages do not have it.
    let wrong = "OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value,name=value";
    let is_name = |name: &str| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && name.bytes().all(is_token)
    };
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty()).take(MAX_ATTRIBUTES);
    let parsed = pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), decode(value.trim())?);
        let is_usable = is_name(name) && !value.chars().any(char::is_control);
        is_usable.then(|| (name.to_owned(), value))
    });
    parsed.collect::<Option<Vec<_>>>().ok_or_else(|| wrong.to_owned())
}

/// The attributes of the program. Those of the user win.
fn resource(variable: &impl Fn(&str) -> Option<String>, version: &str) -> Vec<(String, String)> {
    let mut all = vec![
        ("service.name".to_owned(), "toolcrib".to_owned()),
        ("service.version".to_owned(), version.to_owned()),
        ("process.pid".to_owned(), std::process::id().to_string()),
    ];
    let mut set = |name: &str, value: String| match all.iter_mut().find(|(known, _)| known == name)
    {
        Some((_, known)) => *known = value,
        None => all.push((name.to_owned(), value)),
    };
    let users = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let pairs = users.split(',').filter_map(|pair| pair.split_once('=')).take(MAX_ATTRIBUTES);
    for (name, value) in pairs {
        if let Some(value) = decode(value.trim()) {
            set(name.trim(), value);
        }
    }
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        set("service.name", name);
    }
    all
}

fn number(
    variable: &impl Fn(&str) -> Option<String>,
    name: &str,
    usual: u64,
) -> Result<u64, String> {
    let Some(text) = variable(name) else { return Ok(usual) };
    text.trim().parse().map_err(|_| format!("{name} is not a number"))
}

/// A text with `%41` for `A`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::from_variables(variable, "1.0")
    }

    #[test]
    fn nothing_is_sent_unless_it_is_configured() {
        let here = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        assert_eq!(settings(&[]), Ok(None));
        assert_eq!(settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(None));
        assert_eq!(settings(&[here, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        let none = [here, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
        assert_eq!(settings(&none), Ok(None));
        let only_traces = settings(&[here, ("OTEL_METRICS_EXPORTER", "none")]).unwrap().unwrap();
        assert!(only_traces.traces.is_some() && only_traces.metrics.is_none());
        assert!(!only_traces.has_content);
    }

    #[test]
    fn a_kind_of_data_has_its_own_variables() {
        let settings = settings(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1/x"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://b/y"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, other=c=d"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "m=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=x%2Cy,service.name=z,broken"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "9999999"),
        ]);
        let settings = settings.unwrap().unwrap();
        let (traces, metrics) = (settings.traces.unwrap(), settings.metrics.unwrap());
        assert_eq!(traces.target, HttpTarget::parse("http://a:1/x/v1/traces").unwrap());
        assert_eq!(metrics.target, HttpTarget::parse("https://b/y").unwrap());
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(traces.headers, [header("api-key", "a b"), header("other", "c=d")]);
        assert_eq!(metrics.headers, [header("m", "1")]);
        assert_eq!(traces.timeout, Duration::from_millis(1_500));
        assert!(settings.resource.contains(&header("service.name", "mine")));
        assert!(settings.resource.contains(&header("team", "x,y")));
        assert_eq!(settings.queue, MAX_QUEUE);
    }

    #[test]
    fn unusable_values_are_refused_without_showing_secrets() {
        let here = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x=secret%0d%0ay: z"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
        ] {
            let problem = settings(&[here, (name, value)]).unwrap_err();
            assert!(!problem.contains("secret"), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn any_headers_have_an_answer(text in "\\PC{0,100}") {
            for (name, value) in headers(&text).unwrap_or_default() {
                prop_assert!(!name.is_empty() && !value.chars().any(char::is_control));
            }
        }
    }
}
