//! What runs and waits now, in all servers, and the events of the last minutes.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolcrib::now_ms;

/// Limits of the stored events: their number, and the bytes of their data.
const MAX_EVENTS: usize = 4_096;
const MAX_EVENT_BYTES: usize = 8 << 20;

/// Waiting questions and running calls of one server that are listed.
const MAX_LISTED: usize = 512;

/// Questions whose server is remembered.
const MAX_ASKED: usize = 1_024;

/// An event of the stream.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// JSON.
    pub(crate) data: String,
}

/// The state of all servers, and the events that changed it.
pub(crate) struct Live {
    state: Mutex<State>,
    newest: watch::Sender<u64>,
}

struct State {
    servers: BTreeMap<String, LiveServer>,
    /// The last questions, each with its server.
    asked: VecDeque<(String, String)>,
    ring: VecDeque<Event>,
    bytes: usize,
    newest: u64,
}

#[derive(Default)]
struct LiveServer {
    info: Value,
    waiting: Vec<Value>,
    running: Vec<Value>,
}

/// The events after an id.
pub(crate) enum Following {
    /// These, oldest first.
    Events(Vec<Event>),
    /// Some of them are no longer stored: this many, as far as that is known.
    Missed(u64),
}

impl Live {
    pub(crate) fn new() -> Live {
        // Ids of an earlier process are older than all ids of this one.
        let first = now_ms().saturating_mul(1_000);
        let state = State {
            servers: BTreeMap::new(),
            asked: VecDeque::new(),
            ring: VecDeque::new(),
            bytes: 0,
            newest: first,
        };
        Live { state: Mutex::new(state), newest: watch::Sender::new(first) }
    }

    /// A server was found, with its waiting questions and running calls.
    pub(crate) fn join(
        &self,
        server: &str,
        mut info: Value,
        waiting: Vec<Value>,
        running: Vec<Value>,
    ) {
        info["server"] = server.into();
        let mut state = self.state.lock();
        let known = state.servers.entry(server.to_owned()).or_default();
        known.info = info.clone();
        known.waiting.clear();
        known.running.clear();
        state.push(&self.newest, "server_joined", &info);
        let waiting = waiting.into_iter().map(|question| ("question_opened", question));
        let running = running.into_iter().map(|call| ("call_begun", call));
        for (name, value) in waiting.chain(running) {
            state.apply(&self.newest, server, name, value);
        }
    }

    /// A server has ended.
    pub(crate) fn leave(&self, server: &str) {
        let mut state = self.state.lock();
        if state.servers.remove(server).is_some() {
            state.push(&self.newest, "server_left", &json!({"server": server}));
        }
    }

    /// A server reported an event.
    pub(crate) fn report(&self, server: &str, name: &str, event: Value) {
        self.state.lock().apply(&self.newest, server, name, event);
    }

    /// Everything that waits and runs, as of an event.
    pub(crate) fn snapshot(&self, missed: u64) -> Event {
        let state = self.state.lock();
        let servers: Vec<&Value> = state.servers.values().map(|server| &server.info).collect();
        let mut waiting: Vec<&Value> =
            state.servers.values().flat_map(|server| &server.waiting).collect();
        waiting.sort_by_key(|question| question["opened"].as_u64());
        let running: Vec<&Value> =
            state.servers.values().flat_map(|server| &server.running).collect();
        let data = json!({
            "servers": servers, "waiting": waiting, "running": running, "missed": missed,
        });
        Event { id: state.newest, name: "state".to_owned(), data: data.to_string() }
    }

    /// The events after an id, up to a number of them.
    pub(crate) fn after(&self, id: u64, most: usize) -> Following {
        let state = self.state.lock();
        let oldest = state.newest - state.ring.len() as u64;
        if id < oldest || id > state.newest {
            return Following::Missed(oldest.saturating_sub(id));
        }
        let skipped = usize::try_from(id - oldest).unwrap_or(usize::MAX);
        Following::Events(state.ring.iter().skip(skipped).take(most).cloned().collect())
    }

    /// Tells when there are new events.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Events of a server are lost: calls that seem to run may have ended. All streams begin again.
    pub(crate) fn miss(&self, server: &str) {
        let mut state = self.state.lock();
        if let Some(known) = state.servers.get_mut(server) {
            known.running.clear();
        }
        state.ring.clear();
        state.bytes = 0;
        state.newest += 1;
        self.newest.send_replace(state.newest);
    }

    /// The waiting questions of all servers.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        let state = self.state.lock();
        state.servers.values().flat_map(|known| &known.waiting).cloned().collect()
    }

    /// Whether a server runs.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        self.state.lock().servers.contains_key(server)
    }

    /// A waiting question.
    pub(crate) fn question(&self, id: &str) -> Option<Value> {
        let state = self.state.lock();
        let mut all = state.servers.values().flat_map(|known| &known.waiting);
        all.find(|question| question["id"] == id).cloned()
    }

    /// The server of a question that waits or was settled a short time ago.
    pub(crate) fn server_of_question(&self, id: &str) -> Option<String> {
        let state = self.state.lock();
        let found = state.asked.iter().find(|(question, _)| question == id);
        found.map(|(_, server)| server.clone())
    }
}

impl State {
    /// Changes the state of a server by an event, and stores the event.
    fn apply(&mut self, newest: &watch::Sender<u64>, server: &str, name: &str, mut event: Value) {
        let Some(known) = self.servers.get_mut(server) else { return };
        if event.is_object() {
            event["server"] = server.into();
        }
        let id = event["id"].clone();
        let add = |list: &mut Vec<Value>| {
            list.retain(|one| one["id"] != id);
            if list.len() < MAX_LISTED {
                list.push(event.clone());
            }
        };
        match name {
            "call_begun" => add(&mut known.running),
            // Its command may go on.
            "call_ended" if event["in_background"] == true => add(&mut known.running),
            "call_ended" | "command_ended" => known.running.retain(|call| call["id"] != id),
            "question_opened" => {
                add(&mut known.waiting);
                let id = id.as_str().unwrap_or_default();
                self.asked.push_back((id.to_owned(), server.to_owned()));
                if self.asked.len() > MAX_ASKED {
                    self.asked.pop_front();
                }
            }
            "question_time" => {
                for question in known.waiting.iter_mut().filter(|question| question["id"] == id) {
                    set_time_left(question, &event);
                }
            }
            "question_settled" => known.waiting.retain(|question| question["id"] != id),
            "client_named" => known.info = event.clone(),
            _ => {}
        }
        self.push(newest, name, &event);
    }

    fn push(&mut self, newest: &watch::Sender<u64>, name: &str, data: &Value) {
        self.newest += 1;
        let event = Event { id: self.newest, name: name.to_owned(), data: data.to_string() };
        self.bytes += event.data.len();
        self.ring.push_back(event);
        while self.ring.len() > MAX_EVENTS || self.bytes > MAX_EVENT_BYTES {
            let Some(dropped) = self.ring.pop_front() else { break };
            self.bytes -= dropped.data.len();
        }
        newest.send_replace(self.newest);
    }
}

/// Changes the time limits of a question, which an event has.
fn set_time_left(question: &mut Value, event: &Value) {
    if let Some(call) = event.get("call") {
        question["call"] = call.clone();
    }
    for field in ["call_waits_until", "call_ended", "denied_after", "expires"] {
        match event.get(field) {
            Some(limit) => question[field] = limit.clone(),
            None => {
                question.as_object_mut().and_then(|fields| fields.remove(field));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(following: Following) -> Vec<String> {
        match following {
            Following::Events(events) => events.into_iter().map(|event| event.name).collect(),
            Following::Missed(missed) => vec![format!("missed {missed}")],
        }
    }

    fn joined() -> Live {
        let live = Live::new();
        live.join("1-a", json!({"pid": 1}), vec![], vec![]);
        live
    }

    #[test]
    fn the_state_follows_the_events() {
        let live = joined();
        live.report("1-a", "question_opened", json!({"id": "q1", "opened": 5}));
        live.report("1-a", "call_begun", json!({"id": "1-a-1"}));
        let state: Value = serde_json::from_str(&live.snapshot(0).data).unwrap();
        assert_eq!(state["waiting"], json!([{"id": "q1", "opened": 5, "server": "1-a"}]));
        assert_eq!(state["running"][0]["server"], "1-a");
        assert_eq!(live.question("q1").unwrap()["opened"], 5);
        live.report("1-a", "question_settled", json!({"id": "q1", "settled": {}}));
        live.report("1-a", "call_ended", json!({"id": "1-a-1"}));
        assert_eq!(live.question("q1"), None);
        assert_eq!(live.server_of_question("q1").as_deref(), Some("1-a"), "to say who answered");
        let state: Value = serde_json::from_str(&live.snapshot(0).data).unwrap();
        assert_eq!((&state["waiting"], &state["running"]), (&json!([]), &json!([])));
        live.leave("1-a");
        live.leave("1-a");
        live.report("1-a", "call_begun", json!({"id": "late"}));
        let state: Value = serde_json::from_str(&live.snapshot(0).data).unwrap();
        assert_eq!((&state["servers"], &state["running"]), (&json!([]), &json!([])));
    }

    #[test]
    fn a_stream_resumes_or_learns_how_much_it_missed() {
        let live = joined();
        let first = live.snapshot(0).id;
        for number in 0..5 {
            live.report("1-a", "call_begun", json!({"id": number.to_string()}));
        }
        assert_eq!(names(live.after(first, 3)), ["call_begun"; 3]);
        assert_eq!(names(live.after(first + 5, 3)), [""; 0]);
        assert_eq!(names(live.after(first + 6, 3)), ["missed 0"]);
        for number in 0..MAX_EVENTS {
            live.report("1-a", "call_ended", json!({"id": number.to_string()}));
        }
        assert_eq!(names(live.after(first, 3)), ["missed 5"]);
        let large = "x".repeat(MAX_EVENT_BYTES / 3);
        for _ in 0..4 {
            live.report("1-a", "connection", json!({"host": large}));
        }
        let newest = live.snapshot(0).id;
        assert_eq!(names(live.after(newest - 2, 9)).len(), 2);
        assert!(names(live.after(newest - 4, 9))[0].starts_with("missed"));
    }
}
