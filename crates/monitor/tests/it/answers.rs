//! Questions with several answerers: exactly one answer counts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::{Access, Answer, Approver as _, Cancel, Question, SessionApprovals};
use toolcrib_monitor::protocol::{AnswerWord, Answerer, Server, Settled};
use toolcrib_monitor::{
    Asked, Channel, Client, FirstAnswer, GivenAnswer, ListeningSocket, Monitor, RequestErrorKind,
    SettleError, ViewerTimeouts,
};

struct Setup {
    _top: tempfile::TempDir,
    monitor: Arc<Monitor>,
    _socket: ListeningSocket,
    client: Client,
    rules: Arc<Mutex<Vec<String>>>,
}

fn setup() -> Setup {
    let top = tempfile::tempdir().unwrap();
    let rules: Arc<Mutex<Vec<String>>> = Arc::default();
    let stored = rules.clone();
    let store = move |rule: &str| {
        stored.lock().push(rule.to_owned());
        Ok(())
    };
    let monitor = Monitor::new(Server::default(), Some(Box::new(store)));
    let socket = monitor.listen(&top.path().join("run")).unwrap();
    let client = Client::connect(socket.socket(), |_| {}).unwrap();
    Setup { _top: top, monitor, _socket: socket, client, rules }
}

impl Setup {
    fn waiting(&self) -> Vec<toolcrib_monitor::protocol::Question> {
        let other = Client::connect(self._socket.socket(), |_| {}).unwrap();
        other.subscribe(None).unwrap().waiting
    }

    /// Waits for an open question and answers it.
    fn answer(
        &self,
        answer: AnswerWord,
        minutes: Option<u32>,
    ) -> Result<Settled, RequestErrorKind> {
        let question = loop {
            if let Some(question) = self.waiting().pop() {
                break question;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let given = given(&question, answer, minutes);
        self.client.answer(given).map_err(|error| error.kind)
    }
}

fn given(
    question: &toolcrib_monitor::protocol::Question,
    answer: AnswerWord,
    minutes: Option<u32>,
) -> GivenAnswer {
    let (question, digest) = (question.id.clone(), question.digest.clone());
    let by = Answerer::Page;
    GivenAnswer { question, digest, answer, minutes, message: None, by }
}

fn question<'a>(accesses: &'a [Access]) -> Question<'a> {
    Question {
        call: 1,
        session: 1,
        tool: "Bash",
        description: None,
        accesses,
        directory: Path::new("/w"),
        rule: "profile:cautious:command",
        why: "it asks",
        remedy: "",
        asks: const { &SessionApprovals::new() },
        always: None,
        always_directory: None,
        never: None,
        preview: None,
    }
}

/// Answers after it was told to, or ends when the question is settled elsewhere.
struct Blocking;

impl Channel for Blocking {
    fn answerer(&self) -> Answerer {
        Answerer::Client
    }

    fn ask(&self, _: &Question<'_>, asked: &Asked, _: Option<Duration>) -> Answer {
        let (sender, told) = std::sync::mpsc::channel();
        asked.on_settled(move || {
            let _ = sender.send(());
        });
        told.recv().unwrap();
        Answer::Deny("the loser".to_owned())
    }
}

/// A channel that gives this answer at once.
struct Gives(Answer);

impl Channel for Gives {
    fn answerer(&self) -> Answerer {
        Answerer::Client
    }

    fn ask(&self, _: &Question<'_>, _: &Asked, _: Option<Duration>) -> Answer {
        self.0.clone()
    }
}

#[test]
fn an_answer_on_the_page_ends_the_question_of_the_client() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let cancel = Cancel::new();
            let approver = FirstAnswer::new(&setup.monitor, &Blocking, &cancel);
            (approver.ask(&question(&accesses)), approver.name())
        });
        let settled = setup.answer(AnswerWord::Minutes, Some(30)).unwrap();
        assert_eq!((settled.by, settled.minutes), (Answerer::Page, Some(30)));
        let answer = Answer::AllowFor(Duration::from_secs(30 * 60));
        assert_eq!(asking.join().unwrap(), (answer, "page"));
    });
    assert!(setup.waiting().is_empty());
}

#[test]
fn a_late_answer_is_told_who_was_first() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    let cancel = Cancel::new();
    let shown = Arc::new(Mutex::new(None));
    struct Looks<'a>(&'a Setup, Arc<Mutex<Option<toolcrib_monitor::protocol::Question>>>);
    impl Channel for Looks<'_> {
        fn answerer(&self) -> Answerer {
            Answerer::Terminal
        }
        fn ask(&self, _: &Question<'_>, _: &Asked, _: Option<Duration>) -> Answer {
            *self.1.lock() = self.0.waiting().pop();
            Answer::Deny("use cargo".to_owned())
        }
    }
    let channel = Looks(&setup, shown.clone());
    let approver = FirstAnswer::new(&setup.monitor, &channel, &cancel);
    assert_eq!(approver.ask(&question(&accesses)), Answer::Deny("use cargo".to_owned()));
    assert_eq!(approver.name(), "terminal");
    let shown = shown.lock().clone().unwrap();
    assert_eq!(shown.command.as_ref().unwrap().steps[0].text, "make");
    let error = setup.client.answer(given(&shown, AnswerWord::Once, None)).unwrap_err();
    assert_eq!(error.kind, RequestErrorKind::Conflict);
    assert_eq!(error.message, "too late: answered at the terminal: no");
    let settled = error.settled.unwrap();
    assert_eq!((settled.answer, settled.by), (AnswerWord::No, Answerer::Terminal));
    let other = GivenAnswer { digest: "0".to_owned(), ..given(&shown, AnswerWord::Once, None) };
    assert_eq!(setup.client.answer(other).unwrap_err().kind, RequestErrorKind::Invalid);
    let none = GivenAnswer { question: "x".to_owned(), ..given(&shown, AnswerWord::Once, None) };
    assert_eq!(setup.client.answer(none).unwrap_err().kind, RequestErrorKind::NotFound);
}

#[test]
fn of_two_answerers_exactly_one_wins_in_10000_races() {
    let setup = setup();
    let (page, client) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let races = 10_000;
    // The question of each race, for the answerer on the socket.
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    struct Races<'a>(&'a std::sync::mpsc::SyncSender<()>, usize);
    impl Channel for Races<'_> {
        fn answerer(&self) -> Answerer {
            Answerer::Client
        }
        fn ask(&self, _: &Question<'_>, _: &Asked, _: Option<Duration>) -> Answer {
            self.0.send(()).unwrap();
            // Answers a little later in some races, so that both win sometimes.
            (0..self.1 % 7).for_each(|_| std::thread::sleep(Duration::from_micros(30)));
            Answer::Deny(String::new())
        }
    }
    std::thread::scope(|scope| {
        let (setup, page, client) = (&setup, &page, &client);
        let (notices, seen) = std::sync::mpsc::channel();
        let watcher = Client::connect(setup._socket.socket(), move |notice| {
            let _ = notices.send(notice);
        });
        let watcher = watcher.unwrap();
        // Before the first race, so that each question is seen.
        watcher.subscribe(None).unwrap();
        let answering = scope.spawn(move || {
            while receiver.recv().is_ok() {
                let opened = loop {
                    use toolcrib_monitor::{Notice, protocol::Event};
                    match seen.recv().unwrap() {
                        Notice::Event { event: Event::QuestionOpened(question), .. } => {
                            break question;
                        }
                        Notice::Event { .. } => {}
                        other => panic!("{other:?}"),
                    }
                };
                match watcher.answer(given(&opened, AnswerWord::Once, None)) {
                    Ok(settled) => {
                        assert_eq!(settled.by, Answerer::Page);
                        page.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        assert_eq!(error.kind, RequestErrorKind::Conflict, "{error:?}");
                        assert_eq!(error.settled.unwrap().by, Answerer::Client);
                        client.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        let (mut by_page, mut by_client) = (0, 0);
        for race in 0..races {
            let accesses = [Access::Command(format!("echo {race}"))];
            let channel = Races(&sender, race);
            let cancel = Cancel::new();
            let approver = FirstAnswer::new(&setup.monitor, &channel, &cancel);
            match (approver.ask(&question(&accesses)), approver.name()) {
                (Answer::Allow, "page") => by_page += 1,
                (Answer::Deny(_), "client") => by_client += 1,
                other => panic!("{other:?}"),
            }
        }
        drop(sender);
        answering.join().unwrap();
        let told = (page.load(Ordering::Relaxed), client.load(Ordering::Relaxed));
        assert_eq!((by_page, by_client), told, "the asking process and the page agree");
        assert_eq!(by_page + by_client, races);
    });
}

#[test]
fn without_a_viewer_a_call_does_not_wait() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    let cancel = Cancel::new();
    let nobody = Gives(Answer::NoApprover);
    let approver = FirstAnswer::new(&setup.monitor, &nobody, &cancel);
    assert_eq!(approver.ask(&question(&accesses)), Answer::NoApprover);
    assert!(setup.waiting().is_empty());
}

#[test]
fn an_active_viewer_is_asked_if_the_client_cannot_ask() {
    let setup = setup();
    setup.client.visible(true).unwrap();
    let accesses = [Access::Command("make".to_owned())];
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let cancel = Cancel::new();
            let nobody = Gives(Answer::NoApprover);
            FirstAnswer::new(&setup.monitor, &nobody, &cancel).ask(&question(&accesses))
        });
        setup.answer(AnswerWord::Session, None).unwrap();
        assert_eq!(asking.join().unwrap(), Answer::AllowForSession);
    });
}

/// Viewers search for new sockets at intervals, so the first question of a server may come before them.
#[test]
fn a_new_server_waits_for_viewers_to_find_it() {
    // On a busy machine, a viewer may be too late.
    let is_answered = (0..20).any(|_| {
        let setup = setup();
        let accesses = [Access::Command("make".to_owned())];
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let (cancel, nobody) = (Cancel::new(), Gives(Answer::NoApprover));
                FirstAnswer::new(&setup.monitor, &nobody, &cancel).ask(&question(&accesses))
            });
            let asked = loop {
                let waiting = setup.waiting().pop();
                if waiting.is_some() || asking.is_finished() {
                    break waiting;
                }
            };
            setup.client.visible(true).unwrap();
            let answer = asked.map(|asked| given(&asked, AnswerWord::Session, None));
            let is_answered = answer.is_some_and(|answer| setup.client.answer(answer).is_ok());
            asking.join().unwrap() == Answer::AllowForSession && is_answered
        })
    });
    assert!(is_answered);
}

#[test]
fn a_question_without_an_answer_stays_open_for_the_next_call() {
    let setup = setup();
    setup.client.visible(true).unwrap();
    let accesses = [Access::Command("make".to_owned())];
    let timeouts = ViewerTimeouts { alone: Duration::from_millis(20), ..Default::default() };
    let ask_in = |call: u64| {
        let cancel = Cancel::new();
        let nobody = Gives(Answer::NoApprover);
        let approver = FirstAnswer::new(&setup.monitor, &nobody, &cancel).waiting(timeouts);
        approver.ask(&Question { call, ..question(&accesses) })
    };
    let ask = || ask_in(1);
    assert!(matches!(ask(), Answer::LeftOpen(sentence) if sentence.contains("still open")));
    assert!(setup.waiting()[0].call.ends_with("-1"));
    assert!(matches!(ask_in(2), Answer::LeftOpen(_)));
    assert_eq!(setup.waiting().len(), 1, "it is the same question");
    assert!(setup.waiting()[0].call.ends_with("-2"), "the second call waits for it");
    assert_eq!(setup.waiting()[0].time_left.denied_after, Some(20));
    let time = setup.waiting()[0].time_left.clone();
    assert!(time.call_ended && time.call_waits_until.is_none() && time.expires.is_some());
    setup.answer(AnswerWord::Session, None).unwrap();
    assert!(setup.waiting().is_empty());
    assert_eq!(ask(), Answer::AllowForSession);
    assert!(matches!(ask(), Answer::LeftOpen(_)), "an answer is used once");
}

#[test]
fn an_answer_that_waits_is_not_used_by_another_session() {
    let setup = setup();
    setup.client.visible(true).unwrap();
    let accesses = [Access::Command("make".to_owned())];
    let timeouts = ViewerTimeouts { alone: Duration::from_millis(20), ..Default::default() };
    let ask = |session: u64| {
        let cancel = Cancel::new();
        let nobody = Gives(Answer::NoApprover);
        let approver = FirstAnswer::new(&setup.monitor, &nobody, &cancel).waiting(timeouts);
        setup.client.visible(true).unwrap();
        approver.ask(&Question { session, ..question(&accesses) })
    };
    assert!(matches!(ask(1), Answer::LeftOpen(_)));
    setup.answer(AnswerWord::Once, None).unwrap();
    assert!(matches!(ask(2), Answer::LeftOpen(_)), "the answer is for session 1");
    assert_eq!(setup.waiting()[0].session, "2");
    assert_eq!(ask(1), Answer::Allow);
}

#[test]
fn many_long_questions_do_not_hide_a_server() {
    let setup = setup();
    setup.client.visible(true).unwrap();
    let timeouts = ViewerTimeouts { alone: Duration::from_millis(1), ..Default::default() };
    let long = |number: usize| [Access::Command(format!("echo {number} {}", "x".repeat(250_000)))];
    for number in 0..25 {
        let (cancel, nobody) = (Cancel::new(), Gives(Answer::NoApprover));
        let approver = FirstAnswer::new(&setup.monitor, &nobody, &cancel).waiting(timeouts);
        setup.client.visible(true).unwrap();
        assert!(matches!(approver.ask(&question(&long(number))), Answer::LeftOpen(_)));
    }
    let left = setup.waiting();
    let command = &left.last().unwrap().command;
    assert!(command.as_ref().unwrap().text.starts_with("echo 24 "), "the newest stay");
    assert!(left.len() < 25 && left.iter().all(|question| question.cut == ["accesses"]));
    let asked: Vec<Asked> =
        (100..140).map(|number| Asked::open(&setup.monitor, &question(&long(number)))).collect();
    let waiting = setup.waiting();
    assert_eq!(waiting.len(), left.len() + asked.len(), "all are shown");
    assert!(waiting.iter().all(|question| question.cut.contains(&"command".to_owned())));
    setup.client.answer(given(&waiting[waiting.len() - 1], AnswerWord::Once, None)).unwrap();
    assert_eq!(asked[39].settled().unwrap().answer, AnswerWord::Once);
}

/// Asks by a result, like MCP since 2026-07-28.
struct ByResult(Option<Answer>);

impl Channel for ByResult {
    fn answerer(&self) -> Answerer {
        Answerer::Client
    }

    fn ask(&self, _: &Question<'_>, _: &Asked, _: Option<Duration>) -> Answer {
        self.0.clone().unwrap_or(Answer::NoApprover)
    }

    fn asks_by_result(&self) -> bool {
        true
    }

    fn has_answer(&self, _: &Question<'_>) -> bool {
        self.0.is_some()
    }
}

#[test]
fn an_answer_to_a_question_that_was_left_open_is_used_when_the_call_comes_back() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    let ask = |channel: ByResult| {
        let cancel = Cancel::new();
        let approver = FirstAnswer::new(&setup.monitor, &channel, &cancel);
        (approver.ask(&question(&accesses)), approver.name())
    };
    assert_eq!(ask(ByResult(None)).0, Answer::NoApprover);
    assert_eq!(setup.waiting().len(), 1, "the question stays open");
    setup.answer(AnswerWord::Once, None).unwrap();
    let refuses = || ByResult(Some(Answer::Deny(String::new())));
    assert_eq!(ask(refuses()), (Answer::Allow, "page"), "whatever the form says");
    assert_eq!(ask(refuses()).1, "client", "an answer counts once");
    assert_eq!(ask(ByResult(None)).0, Answer::NoApprover);
    assert_eq!(ask(refuses()), (Answer::Deny(String::new()), "client"));
    assert!(setup.waiting().is_empty());
}

#[test]
fn only_the_winner_stores_its_rule() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    struct Always<'a>(&'a AtomicUsize);
    impl Channel for Always<'_> {
        fn answerer(&self) -> Answerer {
            Answerer::Terminal
        }
        fn ask(&self, _: &Question<'_>, asked: &Asked, _: Option<Duration>) -> Answer {
            let fails = || Err::<(), &str>("disk full");
            let failed = asked.settle(&Answer::AllowAlways, Answerer::Terminal, fails);
            assert!(matches!(failed, Err(SettleError::Rule("disk full"))));
            assert!(asked.settled().is_none(), "the question is still open");
            let stores = || {
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok::<(), &str>(())
            };
            asked.settle(&Answer::AllowAlways, Answerer::Terminal, stores).unwrap();
            let late = asked.settle(&Answer::AllowAlways, Answerer::Terminal, stores);
            assert!(matches!(late, Err(SettleError::Before(_))));
            Answer::AllowAlways
        }
    }
    let stored = AtomicUsize::new(0);
    let cancel = Cancel::new();
    let always = Always(&stored);
    let approver = FirstAnswer::new(&setup.monitor, &always, &cancel);
    assert_eq!(approver.ask(&question(&accesses)), Answer::AllowAlways);
    assert_eq!((stored.load(Ordering::Relaxed), setup.rules.lock().len()), (1, 0));
}

#[test]
fn the_state_is_read_while_an_answer_stores_its_rule() {
    let setup = setup();
    let accesses = [Access::Command("make".to_owned())];
    struct Stores<'a>(&'a Setup);
    impl Channel for Stores<'_> {
        fn answerer(&self) -> Answerer {
            Answerer::Terminal
        }
        fn ask(&self, _: &Question<'_>, asked: &Asked, _: Option<Duration>) -> Answer {
            let store = || {
                assert!(asked.settled().is_none());
                assert_eq!(self.0.waiting().len(), 1);
                Ok::<(), &str>(())
            };
            asked.settle(&Answer::AllowAlways, Answerer::Terminal, store).unwrap();
            Answer::AllowAlways
        }
    }
    let cancel = Cancel::new();
    let stores = Stores(&setup);
    let approver = FirstAnswer::new(&setup.monitor, &stores, &cancel);
    assert_eq!(approver.ask(&question(&accesses)), Answer::AllowAlways);
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    let setup = setup();
    setup.client.visible(true).unwrap();
    let accesses = [Access::Command("make".to_owned())];
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let nobody = Gives(Answer::NoApprover);
        let (setup, accesses, cancel) = (&setup, &accesses, &cancel);
        let asking = scope.spawn(move || {
            FirstAnswer::new(&setup.monitor, &nobody, cancel).ask(&question(accesses))
        });
        while setup.waiting().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
        assert_eq!(asking.join().unwrap(), Answer::NoApprover);
    });
    assert!(setup.waiting().is_empty());
}
