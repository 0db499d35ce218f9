//! Telemetry of a server, by the standard variables of OpenTelemetry.

use toolcrib_telemetry::{Settings, Telemetry};

use crate::output;

/// Starts it if a collector is configured. The server works without it, so a problem is only a warning.
pub(super) fn start() -> Option<Telemetry> {
    let variable = |name: &str| std::env::var(name).ok();
    let settings = Settings::from_variables(variable, env!("CARGO_PKG_VERSION"));
    let started = settings.and_then(|settings| {
        let started = settings.map(|settings| Telemetry::start(settings, output::warning));
        started.transpose().map_err(|error| error.to_string())
    });
    started.unwrap_or_else(|problem| {
        output::warning(&format!("no telemetry is sent: {problem}"));
        None
    })
}
