//! A span for each call, and the durations of calls, for OpenTelemetry.
//!
//! # How it works
//!
//! [`Telemetry`] is a [`toolcrib::Recorder`]. It puts the record of a call that has ended into a bounded queue, and a thread of its
//! own sends what is in the queue as OTLP over HTTP, in JSON. A call never waits for the collector: if the queue is full, the
//! record is dropped and counted. [`Settings`] come from the standard variables of OpenTelemetry.
//!
//! Spans and metrics have the names of the semantic conventions for MCP and generative AI. Without the user's setting they have no
//! arguments, paths and messages; with it, secrets are masked in them as in the log of calls.

mod durations;
mod exporter;
mod otlp;
mod settings;
mod trace_parent;

pub use exporter::Telemetry;
pub use settings::Settings;
