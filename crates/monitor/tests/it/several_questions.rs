//! Questions of several calls of one session at the same time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Call, Cancel, Error, Options, Profile, Reply, Runtime, Session};
use toolcrib_monitor::protocol::{AnswerWord, Answerer, Question, Server, Settled};
use toolcrib_monitor::{
    Client, FirstAnswer, GivenAnswer, ListeningSocket, Monitor, NoChannel, RequestError,
};

struct Agent {
    top: tempfile::TempDir,
    monitor: Arc<Monitor>,
    socket: ListeningSocket,
    client: Client,
    runtime: Runtime,
    session: Session,
}

impl Agent {
    fn start() -> Agent {
        let top = tempfile::tempdir().unwrap();
        let workspace = top.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        let monitor = Monitor::new(Server::default(), None);
        let socket = monitor.listen(&top.path().join("run")).unwrap();
        let client = Client::connect(socket.socket(), |_| {}).unwrap();
        client.visible(true).unwrap();
        let runtime = Runtime::builder().root(&workspace).profile(Profile::Cautious);
        let runtime = runtime.build().unwrap();
        let session = runtime.session();
        Agent { top, monitor, socket, client, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        let cancel = Cancel::new();
        let approver = FirstAnswer::new(&self.monitor, &NoChannel, &cancel);
        let options = Options { approver: &approver, cancel: &cancel, ..Options::default() };
        self.runtime.call(&self.session, Call::new(tool, args), options)
    }

    fn write(&self, name: &str, content: &str) -> Result<Reply, Error> {
        self.call("Write", json!({"file_path": name, "content": content}))
    }

    fn edit(&self, from: &str, to: &str) -> Result<Reply, Error> {
        let args = json!({"file_path": "list.txt", "old_string": from, "new_string": to});
        self.call("Edit", args)
    }

    fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.top.path().join("ws").join(name)).unwrap()
    }

    fn waiting(&self) -> Vec<Question> {
        let other = Client::connect(self.socket.socket(), |_| {}).unwrap();
        other.subscribe(None).unwrap().waiting
    }

    /// Waits until the open questions fulfil a condition.
    fn wait_for(&self, condition: impl Fn(&[Question]) -> bool) -> Vec<Question> {
        loop {
            self.client.visible(true).unwrap();
            let waiting = self.waiting();
            if condition(&waiting) {
                return waiting;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answer(&self, question: &Question, answer: AnswerWord) -> Result<Settled, RequestError> {
        self.client.answer(GivenAnswer {
            question: question.id.clone(),
            digest: question.digest.clone(),
            answer,
            minutes: None,
            message: None,
            by: Answerer::Page,
        })
    }
}

fn about<'q>(waiting: &'q [Question], text: &str) -> Option<&'q Question> {
    waiting.iter().find(|one| one.diff.as_ref().is_some_and(|diff| diff.contains(text)))
}

#[test]
fn all_questions_of_a_session_are_open_and_answered_in_any_order() {
    let agent = Agent::start();
    std::thread::scope(|scope| {
        let agent = &agent;
        let calls = ["one", "two", "three"]
            .map(|name| (name, scope.spawn(move || agent.write(&format!("{name}.txt"), name))));
        let waiting = agent.wait_for(|waiting| waiting.len() == 3);
        agent.answer(about(&waiting, "+three").unwrap(), AnswerWord::Once).unwrap();
        agent.answer(about(&waiting, "+one").unwrap(), AnswerWord::No).unwrap();
        agent.wait_for(|waiting| waiting.len() == 1);
        agent.answer(about(&waiting, "+two").unwrap(), AnswerWord::Once).unwrap();
        for (name, call) in calls {
            assert_eq!(call.join().unwrap().is_ok(), name != "one", "{name}");
        }
    });
    assert_eq!(agent.content("two.txt"), "two");
    assert!(agent.waiting().is_empty());
}

#[test]
fn an_answer_that_covers_another_question_withdraws_it() {
    let agent = Agent::start();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| agent.write("same.txt", "first\n"));
        agent.wait_for(|waiting| waiting.len() == 1);
        let second = scope.spawn(|| agent.write("same.txt", "second\n"));
        let waiting = agent.wait_for(|waiting| waiting.len() == 2);
        agent.answer(about(&waiting, "+first").unwrap(), AnswerWord::Session).unwrap();
        first.join().unwrap().unwrap();
        // It runs without an answer: the session may write the file now.
        let kind = second.join().unwrap().map_err(|error| error.kind().name());
        assert_ne!(kind.err(), Some("denied"));
        let late = agent.answer(about(&waiting, "+second").unwrap(), AnswerWord::No).unwrap_err();
        assert_eq!(late.settled.unwrap().by, Answerer::Withdrawn);
    });
}

#[test]
fn a_question_about_a_changed_file_is_asked_again_with_its_new_content() {
    let agent = Agent::start();
    std::fs::write(agent.top.path().join("ws/list.txt"), "one\ntwo\n").unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| agent.edit("one", "1"));
        let second = scope.spawn(|| agent.edit("two", "2"));
        let waiting = agent.wait_for(|waiting| waiting.len() == 2);
        let (before, old) = (about(&waiting, "+1\n").unwrap(), about(&waiting, "+2\n").unwrap());
        agent.answer(before, AnswerWord::Once).unwrap();
        first.join().unwrap().unwrap();
        let waiting = agent.wait_for(|waiting| about(waiting, " 1\n").is_some());
        let new = about(&waiting, "+2\n").unwrap();
        assert_ne!((&new.id, &new.digest), (&old.id, &old.digest));
        agent.answer(new, AnswerWord::Once).unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(agent.content("list.txt"), "1\n2\n");
}

#[test]
fn a_question_says_how_long_it_can_be_answered() {
    let agent = Agent::start();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.write("a.txt", "x"));
        let has_limit = |waiting: &[Question]| {
            waiting.first().is_some_and(|one| one.time_left.call_waits_until.is_some())
        };
        let waiting = agent.wait_for(has_limit);
        let time = &waiting[0].time_left;
        let (until, expires) = (time.call_waits_until.unwrap(), time.expires.unwrap());
        assert_eq!((time.call_ended, expires - until), (false, 10 * 60 * 1_000));
        assert!(until > waiting[0].opened);
        agent.answer(&waiting[0], AnswerWord::No).unwrap();
        assert!(call.join().unwrap().is_err());
    });
}
