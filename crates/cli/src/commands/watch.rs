//! `toolcrib watch`: a text view of what all agents do, with answers to their questions.

mod answering;
mod shown_text;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::user_machine;
use toolcrib_monitor::protocol::{Answerer, Event, Server};
use toolcrib_monitor::{
    Client, GivenAnswer, ServerNotice, Servers, SocketPath, State, described, sockets,
};

use self::answering::{Answering, Reaction};
use self::shown_text::{
    call_begun, call_ended, command_ended, connection, question_text, server_line,
};
use crate::args::Common;
use crate::output;

/// The interval of the message that a person is watching. Servers expire it after 15 s.
const VISIBLE_INTERVAL: Duration = Duration::from_secs(5);

/// Notices that wait to be printed. Beyond that, the connections wait, and servers drop events.
const MAX_WAITING: usize = 4_096;

pub(crate) fn watch(common: &Common, once: bool) -> Result<ExitCode, String> {
    let directories = user_machine::socket_directories();
    if directories.is_empty() {
        return Err("neither XDG_RUNTIME_DIR nor the state directory is known".to_owned());
    }
    let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let printed = if once || !is_interactive {
        print_state(common, &directories)
    } else {
        View::start(&directories).and_then(View::run)
    };
    match printed {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::FAILURE),
        Err(error) => Err(error.to_string()),
    }
}

/// How long `--once` waits for the replies of all servers. One that does not answer may be stopped.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// What a server replied. `None` if it has ended.
type Reply = Option<(Server, State)>;

/// Prints the current state of all servers.
fn print_state(common: &Common, directories: &[PathBuf]) -> io::Result<()> {
    let found = states(directories)?;
    if !output::for_people(common) {
        let object = |(server, reply): (String, Option<(Server, State)>)| match reply {
            Some((info, state)) => json!({"server": server, "info": info, "state": state}),
            None => json!({"server": server, "error": "does not answer"}),
        };
        let all: Vec<Value> = found.into_iter().map(object).collect();
        return writeln!(io::stdout(), "{}", Value::Array(all));
    }
    let mut text = String::new();
    for (server, reply) in &found {
        let Some((info, state)) = reply else {
            text += &format!("== {} does not answer\n", output::plain(server));
            continue;
        };
        text += &server_line(info);
        state.running.iter().for_each(|call| text += &call_begun(call));
        state.waiting.iter().for_each(|question| text += &question_text(question));
    }
    if found.is_empty() {
        text = "No servers are running.\n".to_owned();
    }
    anstream::stdout().write_all(text.as_bytes())
}

/// The states of all servers, each asked on a thread of its own. `None` for a server that does not answer in time.
fn states(directories: &[PathBuf]) -> io::Result<BTreeMap<String, Option<(Server, State)>>> {
    let sockets: Vec<SocketPath> =
        directories.iter().flat_map(|directory| sockets(directory)).collect();
    let (sender, replies) = sync_channel::<(String, Reply)>(sockets.len());
    let mut found: BTreeMap<String, Option<(Server, State)>> =
        sockets.iter().map(|socket| (socket.server.clone(), None)).collect();
    let mut missing = sockets.len();
    for socket in sockets {
        let sender = sender.clone();
        std::thread::Builder::new().spawn(move || {
            let _ = sender.send((socket.server.clone(), ask(&socket)));
        })?;
    }
    let until = Instant::now() + REPLY_TIMEOUT;
    while missing > 0 {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((server, reply)) = replies.recv_timeout(left) else { break };
        missing -= 1;
        match reply {
            Some(reply) => drop(found.insert(server, Some(reply))),
            // A server that has just ended is no error.
            None => drop(found.remove(&server)),
        }
    }
    Ok(found)
}

fn ask(socket: &SocketPath) -> Reply {
    let client = Client::connect(socket, |_| {}).ok()?;
    let info = client.hello().ok()?;
    Some((info, client.subscribe(None).ok()?))
}

/// What the view reacts to.
#[allow(clippy::large_enum_variant, reason = "nearly all inputs are events")]
enum Input {
    Notice(ServerNotice),
    Line(String),
    End,
}

/// The live view.
struct View {
    servers: Servers,
    inputs: Receiver<Input>,
    answering: Answering,
}

impl View {
    fn start(directories: &[PathBuf]) -> io::Result<View> {
        let (sender, inputs) = sync_channel(MAX_WAITING);
        let lines = sender.clone();
        std::thread::Builder::new().spawn(move || read_lines(&lines))?;
        print("Watching all servers. Questions are shown here; ? lists the answers, q ends.\n")?;
        let servers = Servers::join(directories, move |notice| {
            let _ = sender.send(Input::Notice(notice));
        })?;
        Ok(View { servers, inputs, answering: Answering::default() })
    }

    fn run(mut self) -> io::Result<()> {
        self.servers.visible(true);
        let mut told = Instant::now();
        // The question that is shown, and since when.
        let (mut shown, mut since) = (None, told);
        loop {
            let wait = VISIBLE_INTERVAL.saturating_sub(told.elapsed());
            let reaction = match self.inputs.recv_timeout(wait) {
                Ok(Input::Notice(notice)) => self.notice(notice)?,
                Ok(Input::Line(line)) => self.answering.line(&line, since.elapsed()),
                Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    self.servers.visible(true);
                    told = Instant::now();
                    continue;
                }
            };
            if self.answering.shown() != shown.as_deref() {
                shown = self.answering.shown().map(str::to_owned);
                since = Instant::now();
            }
            match reaction {
                Reaction::Nothing => {}
                Reaction::Print(text) => print(&text)?,
                Reaction::Answer { server, answer } => {
                    let text = self.answer(&server, answer);
                    print(&text)?;
                }
                Reaction::End => return Ok(()),
            }
        }
    }

    /// Prints what happens at a server, and takes over its questions.
    fn notice(&mut self, notice: ServerNotice) -> io::Result<Reaction> {
        match notice {
            ServerNotice::Joined { server, info, state } => {
                if let Some(client) = self.servers.client(&server) {
                    // A server that has just ended leaves.
                    let _ = client.visible(true);
                }
                print(&server_line(&info))?;
                for call in &state.running {
                    print(&call_begun(call))?;
                }
                let mut reaction = Reaction::Nothing;
                for question in state.waiting {
                    reaction = reaction.and(self.answering.opened(&server, question));
                }
                Ok(reaction)
            }
            ServerNotice::Left { server } => Ok(self.answering.left(&server)),
            ServerNotice::Missed { missed, .. } => {
                Ok(Reaction::Print(format!("[{missed} events were not shown]\n")))
            }
            ServerNotice::Event { server, event, .. } => Ok(match event {
                Event::CallBegun(call) => Reaction::Print(call_begun(&call)),
                Event::CallEnded(call) => Reaction::Print(call_ended(&call)),
                Event::CommandEnded { id, end } => Reaction::Print(command_ended(&id, &end)),
                Event::Connection(made) => Reaction::Print(connection(&made)),
                Event::ClientNamed(info) => Reaction::Print(server_line(&info)),
                Event::QuestionOpened(question) => self.answering.opened(&server, *question),
                Event::QuestionTime { id, time_left, .. } => {
                    self.answering.time_changed(&id, time_left)
                }
                Event::QuestionSettled { id, settled } => self.answering.settled(&id, &settled),
            }),
        }
    }

    /// Sends an answer. Returns the text to print; the event that follows names the answer.
    fn answer(&self, server: &str, answer: GivenAnswer) -> String {
        let Some(client) = self.servers.client(server) else {
            return "The server has ended.\n".to_owned();
        };
        match client.answer(GivenAnswer { by: Answerer::Watch, ..answer }) {
            Ok(_) => String::new(),
            Err(error) => match error.settled {
                Some(settled) => format!("Too late: {}.\n", described(&settled)),
                None => format!("Not accepted: {}.\n", output::plain(&error.message)),
            },
        }
    }
}

fn read_lines(inputs: &SyncSender<Input>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if inputs.send(Input::Line(line)).is_err() {
            return;
        }
    }
    let _ = inputs.send(Input::End);
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
