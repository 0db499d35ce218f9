//! What observes the calls of a server: its monitor, with the socket for `toolcrib page` and `toolcrib watch`, and telemetry;
//! and what decides whether they may change the workspace.

use std::sync::{Arc, OnceLock};

use toolcrib::{Runtime, RuntimeBuilder, WriteGate, now_ms, user_machine};
use toolcrib_monitor::protocol::Server;
use toolcrib_monitor::{ListeningSocket, Monitor, RuleStore};
use toolcrib_telemetry::Telemetry;

use super::both_recorders::BothRecorders;
use super::telemetry;
use crate::args::Common;
use crate::config::Config;
use crate::{output, rules};

/// The monitor of a server. Without a socket it only arbitrates the answers of the server's own client.
pub(crate) struct MonitorSocket {
    monitor: Arc<Monitor>,
    is_on: bool,
    /// Sends what is left when the server ends.
    telemetry: Option<Telemetry>,
    /// Decides whether the workspace may be changed.
    gate: Option<Arc<dyn WriteGate>>,
    /// Removed when the server ends.
    socket: OnceLock<ListeningSocket>,
}

impl MonitorSocket {
    /// A monitor whose socket is not open yet.
    pub(crate) fn new(
        common: &Common,
        program: &str,
        is_off: bool,
    ) -> Result<MonitorSocket, String> {
        let config = Config::of(common)?;
        let rules_file = rules::file_for_additions(common);
        let roots = common.roots();
        let absolute = roots.iter().map(|root| {
            let path = root.directory.canonicalize();
            path.unwrap_or_else(|_| root.directory.clone()).display().to_string()
        });
        let server = Server {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: program.to_owned(),
            started: now_ms(),
            roots: absolute.collect(),
            profile: config.profile(common)?.name().to_owned(),
            network: config.network_name().to_owned(),
            sandbox: String::new(),
            client: None,
            rules_file: rules_file.as_ref().map(|file| file.display().to_string()),
        };
        let store = rules_file
            .map(|file| -> RuleStore { Box::new(move |rules| rules::add(&file, rules).map(drop)) });
        let is_on = config.has_monitor() && !is_off;
        let monitor = Monitor::new(server, store);
        let (telemetry, socket) = (telemetry::start(), OnceLock::new());
        Ok(MonitorSocket { monitor, is_on, telemetry, gate: None, socket })
    }

    /// The same for a server that changes the workspace only if this allows it.
    pub(crate) fn gated(self, gate: Option<Arc<dyn WriteGate>>) -> MonitorSocket {
        MonitorSocket { gate, ..self }
    }

    /// The monitor.
    pub(crate) fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Makes a runtime report its calls.
    pub(crate) fn observe(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let gate = self.gate.iter().cloned();
        let builder = gate.fold(builder, RuntimeBuilder::write_gate);
        match (self.is_on, &self.telemetry) {
            (false, None) => builder,
            (true, None) => builder.recorder(self.monitor.recorder()),
            (false, Some(telemetry)) => builder.recorder(telemetry.recorder()),
            (true, Some(telemetry)) => {
                builder.recorder(BothRecorders(self.monitor.recorder(), telemetry.recorder()))
            }
        }
    }

    /// Opens the socket. Without it the server works as with one, so a failure is only a warning.
    pub(crate) fn open(&self, runtime: &Runtime) {
        if let Some(telemetry) = &self.telemetry {
            let tools = runtime.tools().map(|tool| tool.name.to_owned());
            telemetry.describe(runtime.server_id(), tools);
        }
        let directory = user_machine::socket_directory().filter(|_| self.is_on);
        if let Some(directory) = directory {
            self.monitor.describe_sandbox(runtime.sandbox_summary());
            self.monitor.set_id(runtime.server_id());
            match self.monitor.listen(&directory) {
                Ok(socket) => drop(self.socket.set(socket)),
                Err(error) => output::warning(&format!(
                    "toolcrib page and toolcrib watch cannot see this server: {}: {error}",
                    directory.display()
                )),
            }
        }
    }
}
