//! One run with a seed: nodes, calls, faults, and the messages between nodes, database and object store.

use toolcrib_devtools::random::Random;

use super::database::{Commit, Database, Grant, Process};
use super::node::{Node, Place};
use super::object_store::{Object, ObjectStore};
use super::oracle;
use super::protocol::{LEASE, MAX_DRIFT, Protocol, RENEWAL, Time};
use super::timeline::Timeline;

/// How many faults a scenario has.
const FAULTS: u64 = 200;

/// The time without faults at the end: for late messages, the end of leases, and calls.
const QUIET: Time = 6 * LEASE;

/// How long a call takes from the check of the lease to its reply.
const MAX_CALL: Time = 20;

/// How late a message can be.
const MAX_DELAY: Time = 2 * LEASE;

/// The age of objects that a protocol without a safeguard removes.
const OLD: Time = 3 * LEASE / 2;

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) deaths: u64,
    pub(super) hangs: u64,
    pub(super) partitions: u64,
    pub(super) failovers: u64,
    pub(super) refused_commits: u64,
    pub(super) committed: u64,
    /// Acknowledged changes that were not copied before their node was lost.
    pub(super) lost_tail: u64,
    pub(super) events: u64,
    pub(super) violation: Option<String>,
}

enum Event {
    /// A process asks for a workspace without an owner.
    Poll(Process),
    Renew(Process),
    /// Asks for the files until they are there.
    Fetch(Place),
    Copy(Place),
    Call(Place),
    /// A call whose lease was checked at this time is carried out and answered.
    Answer(Place, Time),
    Arrive(Request),
    Reply(Process, Response),
    Fault,
    Restart(usize),
    /// Objects that are not needed are looked for, and removed.
    Collect(usize),
    Remove(Vec<Object>),
}

/// A message to the database or the object store. `asked` is the clock of the node.
enum Request {
    Renew { process: Process, asked: i64 },
    Acquire { process: Process, known: Vec<usize> },
    Put { place: Place, object: Object },
    Commit { place: Place, parent: usize, changes: Vec<Object> },
    Get { place: Place },
}

enum Response {
    Renewed { asked: i64, until: Option<Time> },
    Granted { grant: Grant },
    Stored { place: Place, object: Object },
    Committed { place: Place, head: usize, result: Commit },
    Got { place: Place },
}

/// A simulation.
pub(super) struct Scenario {
    protocol: Protocol,
    random: Random,
    timeline: Timeline<Event>,
    nodes: Vec<Node>,
    database: Database,
    store: ObjectStore,
    /// The mean time between faults.
    pace: Time,
    faults_left: u64,
    /// Whether messages may be lost or late.
    is_faulty: bool,
    slow_until: Time,
    next_change: u64,
    outcome: Outcome,
}

type Checked = Result<(), String>;

impl Scenario {
    pub(super) fn new(seed: u64, protocol: Protocol) -> Self {
        let mut random = Random::new(seed);
        let count = 2 + random.below(4) as usize;
        let workspaces = 1 + random.below(8) as usize;
        // One node can be missing.
        let capacity = workspaces.div_ceil(count - 1) + random.below(2) as usize;
        let pace = [300, 1_000, 3_000][random.below(3) as usize];
        let nodes = (0..count).map(|number| {
            let drift = random.below(2 * MAX_DRIFT + 1) as i64 - MAX_DRIFT as i64;
            let offset = random.below(60_001) as i64 - 30_000;
            Node::new(number, workspaces, drift, offset)
        });
        Scenario {
            protocol,
            nodes: nodes.collect(),
            timeline: Timeline::new(),
            database: Database::new(workspaces, count, capacity, protocol),
            store: ObjectStore::default(),
            pace,
            faults_left: FAULTS,
            is_faulty: true,
            slow_until: 0,
            next_change: 0,
            outcome: Outcome::default(),
            random,
        }
    }

    /// Runs to the end, or to the first violation.
    pub(super) fn run(mut self) -> Outcome {
        self.outcome.violation = self.simulate().err();
        self.outcome
    }

    fn simulate(&mut self) -> Checked {
        self.timeline.after(1, Event::Fault);
        for workspace in 0..self.database.rows.len() {
            self.timeline.after(1, Event::Collect(workspace));
        }
        for node in 0..self.nodes.len() {
            let first = self.nodes[node].process;
            self.begin(first);
        }
        while self.faults_left > 0 {
            let Some(event) = self.timeline.next(Time::MAX) else { break };
            self.happen(event)?;
        }
        self.heal();
        self.simulate_until(self.timeline.now() + QUIET)?;
        let heads: Vec<usize> = self.database.rows.iter().map(|row| row.history.len()).collect();
        self.simulate_until(self.timeline.now() + LEASE)?;
        let (nodes, now) = (&self.nodes, self.timeline.now());
        oracle::recovered(&self.database, &self.store, nodes, &heads, now, self.protocol)
    }

    fn simulate_until(&mut self, end: Time) -> Checked {
        while let Some(event) = self.timeline.next(end) {
            self.happen(event)?;
        }
        Ok(())
    }

    /// Ends all faults. Nodes that are down restart at their time.
    fn heal(&mut self) {
        (self.is_faulty, self.slow_until) = (false, 0);
        for node in &mut self.nodes {
            (node.hangs_until, node.cut_off_until) = (0, 0);
        }
    }

    fn happen(&mut self, event: Event) -> Checked {
        self.outcome.events += 1;
        let now = self.timeline.now();
        if let Some(process) = event.process() {
            let node = &self.nodes[process.node];
            if !node.is_process(process) {
                return Ok(());
            }
            if node.hangs_until > now {
                self.timeline.after(node.hangs_until - now, event);
                return Ok(());
            }
        }
        match event {
            Event::Poll(process) => self.poll(process),
            Event::Renew(process) => self.renew(process),
            Event::Fetch(place) => self.fetch(place),
            Event::Copy(place) => self.copy(place),
            Event::Call(place) => self.call(place),
            Event::Answer(place, checked) => return self.answer(place, checked),
            Event::Arrive(request) => return self.arrive(request),
            Event::Reply(process, response) => return self.reply(process, response),
            Event::Fault => self.fault(),
            Event::Restart(node) => {
                let process = self.nodes[node].start();
                self.begin(process);
            }
            Event::Collect(workspace) => self.collect(workspace),
            Event::Remove(objects) => {
                objects.iter().for_each(|object| self.store.remove(*object));
                return oracle::not_needed(&self.database, &objects);
            }
        }
        Ok(())
    }

    // Nodes.

    fn begin(&mut self, process: Process) {
        self.timeline.after(1, Event::Renew(process));
        self.timeline.after(1, Event::Poll(process));
    }

    fn poll(&mut self, process: Process) {
        let known = self.nodes[process.node].known();
        self.send(process, Request::Acquire { process, known });
        let pause = 300 + self.random.below(600);
        self.timeline.after(pause, Event::Poll(process));
    }

    fn renew(&mut self, process: Process) {
        let asked = self.nodes[process.node].clock(self.timeline.now());
        self.send(process, Request::Renew { process, asked });
        self.timeline.after(RENEWAL, Event::Renew(process));
    }

    fn fetch(&mut self, place: Place) {
        let held = self.nodes[place.process.node].held(place);
        if held.is_some_and(|held| !held.is_serving) {
            self.send(place.process, Request::Get { place });
            self.timeline.after(LEASE / 10, Event::Fetch(place));
        }
    }

    /// Stores the changes that are not stored, and commits those that are.
    fn copy(&mut self, place: Place) {
        let Some(held) = self.nodes[place.process.node].held(place) else { return };
        let (parent, changes) = (held.base, held.to_commit(self.protocol));
        let unstored = held.uncopied.iter().filter(|(_, is_stored)| !is_stored);
        let unstored: Vec<Object> = unstored.map(|(object, _)| *object).collect();
        for object in unstored {
            self.send(place.process, Request::Put { place, object });
        }
        if !changes.is_empty() {
            self.send(place.process, Request::Commit { place, parent, changes });
        }
        let pause = 100 + self.random.below(400);
        self.timeline.after(pause, Event::Copy(place));
    }

    fn call(&mut self, place: Place) {
        let (node, now) = (&self.nodes[place.process.node], self.timeline.now());
        if node.held(place).is_none() {
            return;
        }
        if node.accepts(place, now, self.protocol) {
            let duration = 1 + self.random.below(MAX_CALL);
            self.timeline.after(duration, Event::Answer(place, now));
        }
        let pause = 2 * MAX_CALL + self.random.below(1_000);
        self.timeline.after(pause, Event::Call(place));
    }

    fn answer(&mut self, place: Place, checked: Time) -> Checked {
        let Place { workspace, epoch, .. } = place;
        let Some(held) = self.nodes[place.process.node].held_mut(place) else { return Ok(()) };
        let was_held_up = self.timeline.now() - checked > MAX_CALL;
        oracle::not_stale(&self.database, workspace, epoch, was_held_up)?;
        self.next_change += 1;
        let object = Object { workspace, epoch, change: self.next_change };
        held.change(object);
        oracle::bounded_loss(held.uncopied.len())
    }

    fn reply(&mut self, process: Process, response: Response) -> Checked {
        let (now, protocol) = (self.timeline.now(), self.protocol);
        let node = &mut self.nodes[process.node];
        match response {
            Response::Renewed { asked, until: Some(until) } => {
                node.renewed(asked, until, protocol);
                for workspace in 0..self.database.rows.len() {
                    oracle::one_writer(&self.nodes, workspace, now, protocol)?;
                }
            }
            // The lease has ended. The node goes on like one that restarts.
            Response::Renewed { until: None, .. } => {
                node.die(false);
                let process = node.start();
                self.begin(process);
            }
            Response::Granted { grant } => {
                self.outcome.lost_tail += node.take(grant);
                let place = Place { process, workspace: grant.workspace, epoch: grant.epoch };
                self.timeline.after(1, Event::Fetch(place));
            }
            Response::Got { place } => {
                let Some(held) = node.held_mut(place) else { return Ok(()) };
                if !held.is_serving {
                    held.is_serving = true;
                    self.timeline.after(1, Event::Call(place));
                    self.timeline.after(1, Event::Copy(place));
                }
                return oracle::one_writer(&self.nodes, place.workspace, now, protocol);
            }
            // Another process has got the workspace.
            Response::Committed { place, result: Commit::Refused, .. } => {
                self.outcome.lost_tail += node.give_up(place);
            }
            Response::Stored { place, object } => {
                node.held_mut(place).into_iter().for_each(|held| held.stored(object));
            }
            Response::Committed { place, head, result: Commit::Accepted } => {
                node.held_mut(place).into_iter().for_each(|held| held.committed(head));
            }
        }
        Ok(())
    }

    // The database and the object store.

    fn arrive(&mut self, request: Request) -> Checked {
        let now = self.timeline.now();
        match request {
            Request::Renew { process, asked } => {
                let until = self.database.renew(process, now);
                self.respond(process, Response::Renewed { asked, until });
            }
            Request::Acquire { process, known } => {
                let Some(grant) = self.database.acquire(process, &known, now) else {
                    return Ok(());
                };
                self.outcome.failovers += u64::from(grant.epoch > 1);
                oracle::within_capacity(&self.database, process)?;
                self.respond(process, Response::Granted { grant });
            }
            Request::Put { place, object } => {
                self.store.put(object, now);
                self.respond(place.process, Response::Stored { place, object });
            }
            Request::Commit { place, parent, changes } => {
                let Place { process, workspace, epoch } = place;
                let before = self.database.rows[workspace].history.len();
                let result = self.database.commit(workspace, epoch, parent, &changes);
                let new = self.database.rows[workspace].history.len() - before;
                self.outcome.committed += new as u64;
                self.outcome.refused_commits += u64::from(result == Commit::Refused);
                if new > 0 {
                    oracle::committed(&self.database, &self.store, workspace, epoch, &changes)?;
                }
                let head = parent + changes.len();
                self.respond(process, Response::Committed { place, head, result });
            }
            Request::Get { place } => {
                oracle::missing(&self.store, &self.database.rows[place.workspace].history)?;
                self.respond(place.process, Response::Got { place });
            }
        }
        Ok(())
    }

    /// Finds the objects that no commit names. The ones that a commit may still name must stay.
    fn collect(&mut self, workspace: usize) {
        let (row, now) = (&self.database.rows[workspace], self.timeline.now());
        let by_epoch = self.protocol.removes_by_epoch;
        let may_go = |object: Object, stored: Time| {
            if by_epoch { object.epoch < row.epoch } else { stored + OLD < now }
        };
        let objects = self.store.of_workspace(workspace);
        let unneeded = objects.filter(|(object, stored)| may_go(*object, *stored));
        let unneeded = unneeded.map(|(object, _)| object);
        let removed: Vec<Object> =
            unneeded.filter(|object| row.history.binary_search(object).is_err()).collect();
        if !removed.is_empty() {
            let delay = self.delay();
            self.timeline.after(delay, Event::Remove(removed));
        }
        self.timeline.after(LEASE, Event::Collect(workspace));
    }

    // Messages and faults.

    fn delay(&mut self) -> Time {
        let usual = 1 + self.random.below(30);
        if self.is_faulty && self.random.below(50) == 0 {
            self.random.below(MAX_DELAY)
        } else if self.timeline.now() < self.slow_until {
            usual * 50
        } else {
            usual
        }
    }

    fn send(&mut self, process: Process, request: Request) {
        if self.passes(process) {
            let delay = self.delay();
            self.timeline.after(delay, Event::Arrive(request));
        }
    }

    fn respond(&mut self, process: Process, response: Response) {
        if self.passes(process) {
            let delay = self.delay();
            self.timeline.after(delay, Event::Reply(process, response));
        }
    }

    /// Whether a message to or from a node is not lost.
    fn passes(&mut self, process: Process) -> bool {
        let is_connected = self.nodes[process.node].cut_off_until <= self.timeline.now();
        is_connected && !(self.is_faulty && self.random.below(100) == 0)
    }

    fn fault(&mut self) {
        self.faults_left -= 1;
        let (now, kind) = (self.timeline.now(), self.random.below(10));
        let number = self.random.below(self.nodes.len() as u64) as usize;
        // Short ones and long ones are equally likely.
        let scale = [LEASE / 20, LEASE / 2, 2 * LEASE, 5 * LEASE][self.random.below(4) as usize];
        let duration = 1 + self.random.below(scale);
        let disk_is_lost = self.random.below(2) == 0;
        let node = &mut self.nodes[number];
        match kind {
            0..5 if node.is_up => {
                self.outcome.deaths += 1;
                self.outcome.lost_tail += node.die(disk_is_lost);
                self.timeline.after(duration.min(2 * LEASE), Event::Restart(number));
            }
            5..7 if node.is_up => {
                self.outcome.hangs += 1;
                node.hangs_until = node.hangs_until.max(now + duration);
            }
            7..9 => {
                self.outcome.partitions += 1;
                node.cut_off_until = node.cut_off_until.max(now + duration);
            }
            9 => self.slow_until = now + duration,
            _ => {}
        }
        if self.faults_left > 0 {
            let pause = 1 + self.random.below(2 * self.pace);
            self.timeline.after(pause, Event::Fault);
        }
    }
}

impl Event {
    /// The process in which it happens.
    fn process(&self) -> Option<Process> {
        match self {
            Event::Poll(process) | Event::Renew(process) | Event::Reply(process, _) => {
                Some(*process)
            }
            Event::Fetch(place)
            | Event::Copy(place)
            | Event::Call(place)
            | Event::Answer(place, _) => Some(place.process),
            Event::Arrive(_)
            | Event::Fault
            | Event::Restart(_)
            | Event::Collect(_)
            | Event::Remove(_) => None,
        }
    }
}
