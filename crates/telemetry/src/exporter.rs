//! The queue of ended calls, and the thread that sends them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use toolcrib::{Record, Recorder, random_bytes};
use toolcrib_net::{HttpPost, post};

use crate::durations::Durations;
use crate::otlp::{self, CallSpan};
use crate::settings::{Receiver, Settings};
use crate::trace_parent::TraceParent;

/// The maximum number of spans in a request.
const MAX_BATCH: usize = 512;

/// The time that the end of the program waits for the last export.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// Sends the calls of a runtime to the collector. Dropping it sends what is left, within a few seconds.
pub struct Telemetry {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    /// The names of the tools. Until they are known, every tool counts as known.
    tools: OnceLock<(String, BTreeSet<String>)>,
    state: Mutex<State>,
    changed: Condvar,
    /// Takes the first problem after a success.
    notice: Box<dyn Fn(&str) + Send + Sync>,
    since: SystemTime,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<CallSpan>,
    durations: Durations,
    dropped: u64,
    is_ending: bool,
    has_ended: bool,
    has_problem: bool,
}

/// The result of an export.
enum Sent {
    Accepted { rejected: u64 },
    TryLater(String),
    Refused(String),
}

impl Telemetry {
    /// Starts the thread. `notice` gets a sentence when exports begin to fail.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn start(
        settings: Settings,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Telemetry> {
        let shared = Arc::new(Shared {
            settings,
            tools: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
            notice: Box::new(notice),
            since: SystemTime::now(),
        });
        let thread = shared.clone();
        std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || thread.run())?;
        Ok(Telemetry { shared })
    }

    /// The recorder of its calls.
    pub fn recorder(&self) -> impl Recorder + use<> {
        let shared = self.shared.clone();
        move |record: Record| shared.record(record)
    }

    /// Names the server, which begins the ids of its calls, and its tools.
    pub fn describe(&self, server: &str, tools: impl IntoIterator<Item = String>) {
        let _ = self.shared.tools.set((server.to_owned(), tools.into_iter().collect()));
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_EXPORT;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

impl Shared {
    /// Puts a call into the queue. Never waits for the collector.
    fn record(&self, record: Record) {
        let is_known = self.tools.get().is_none_or(|(_, tools)| tools.contains(&record.tool));
        let parent = record.origin.trace_parent.as_deref().and_then(TraceParent::parse);
        let is_sampled = parent.as_ref().is_none_or(|parent| parent.is_sampled);
        let mut state = self.state.lock();
        if self.settings.metrics.is_some() && otlp::is_mcp(&record) {
            let attributes = otlp::duration_attributes(&record, is_known);
            state.durations.add(attributes, record.duration.as_secs_f64());
        }
        if self.settings.traces.is_none() || !is_sampled {
            return;
        }
        if state.waiting.len() >= self.settings.queue {
            state.dropped += 1;
            return;
        }
        state.waiting.push_back(CallSpan { record, parent, is_known });
        if state.waiting.len() == MAX_BATCH.min(self.settings.queue) {
            self.changed.notify_all();
        }
    }

    fn run(&self) {
        let mut next_metrics = Instant::now() + self.settings.metric_interval;
        loop {
            let is_ending = self.wait(next_metrics);
            self.export_spans(is_ending);
            if is_ending || Instant::now() >= next_metrics {
                self.export_metrics();
                next_metrics = Instant::now() + self.settings.metric_interval;
            }
            if is_ending {
                self.state.lock().has_ended = true;
                self.changed.notify_all();
                return;
            }
        }
    }

    /// Waits until something is to be sent. Returns whether the program ends.
    fn wait(&self, next_metrics: Instant) -> bool {
        let until = (Instant::now() + self.settings.span_delay).min(next_metrics);
        let mut state = self.state.lock();
        let enough = MAX_BATCH.min(self.settings.queue);
        while !state.is_ending && (state.waiting.len() < enough || state.has_problem) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.is_ending
    }

    /// Sends the spans that wait, in batches.
    fn export_spans(&self, is_ending: bool) {
        let Some(receiver) = &self.settings.traces else { return };
        loop {
            let spans: Vec<CallSpan> = {
                let mut state = self.state.lock();
                let count = state.waiting.len().min(MAX_BATCH);
                state.waiting.drain(..count).collect()
            };
            if spans.is_empty() {
                return;
            }
            let Settings { resource, has_content, .. } = &self.settings;
            let server = self.tools.get().map_or("", |(server, _)| server.as_str());
            let id = || random_bytes().unwrap_or_default();
            let body = otlp::traces(resource, &spans, *has_content, server, id);
            let count = spans.len() as u64;
            match self.send(receiver, &body) {
                Sent::Accepted { rejected } => {
                    let mut state = self.state.lock();
                    state.has_problem = false;
                    state.dropped += rejected.min(count);
                }
                Sent::Refused(why) => {
                    self.state.lock().dropped += count;
                    self.problem(&why);
                }
                Sent::TryLater(why) => {
                    self.put_back(spans, is_ending);
                    self.problem(&why);
                    return;
                }
            }
        }
    }

    /// Puts spans back as far as there is room. Without a later export they are dropped.
    fn put_back(&self, spans: Vec<CallSpan>, is_ending: bool) {
        let mut state = self.state.lock();
        let room =
            if is_ending { 0 } else { self.settings.queue.saturating_sub(state.waiting.len()) };
        // The oldest are dropped first.
        let dropped = spans.len().saturating_sub(room);
        state.dropped += dropped as u64;
        for span in spans.into_iter().skip(dropped).rev() {
            state.waiting.push_front(span);
        }
    }

    fn export_metrics(&self) {
        let Some(receiver) = &self.settings.metrics else { return };
        let (durations, dropped) = {
            let state = self.state.lock();
            (state.durations.clone(), state.dropped)
        };
        let times = (self.since, SystemTime::now());
        let body = otlp::metrics(&self.settings.resource, &durations, dropped, times);
        // Metrics are cumulative: the next export has what this one had.
        match self.send(receiver, &body) {
            Sent::Accepted { .. } => {}
            Sent::TryLater(why) | Sent::Refused(why) => self.problem(&why),
        }
    }

    fn send(&self, receiver: &Receiver, body: &Value) -> Sent {
        let body = body.to_string();
        let response = post(
            &receiver.target,
            &HttpPost {
                headers: &receiver.headers,
                content_type: "application/json",
                body: body.as_bytes(),
                timeout: receiver.timeout,
                authorities: receiver.authorities.as_ref(),
            },
        );
        match response {
            Err(why) => Sent::TryLater(why),
            Ok(response) => match response.status {
                200..=299 => Sent::Accepted { rejected: rejected(&response.body) },
                status @ (429 | 502..=504) => Sent::TryLater(format!("HTTP status {status}")),
                status => Sent::Refused(format!("HTTP status {status}")),
            },
        }
    }

    /// Tells the first problem after a success.
    fn problem(&self, why: &str) {
        let is_new = !std::mem::replace(&mut self.state.lock().has_problem, true);
        if is_new {
            (self.notice)(&format!("telemetry cannot be exported: {why}"));
        }
    }
}

/// The number of spans that the receiver did not take.
fn rejected(body: &[u8]) -> u64 {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let rejected = &body["partialSuccess"]["rejectedSpans"];
    // A 64-bit number is a string in this format.
    rejected.as_str().and_then(|text| text.parse().ok()).or_else(|| rejected.as_u64()).unwrap_or(0)
}
