//! Approval questions in the store: one answer each, used by one call, also while machines and the server fail.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib_store::{
    ApprovalAnswer, ApprovalOutcome, ApprovalState, AskedApproval, GivenApproval, NewApproval,
    SharedApprovals, StoreUrl, answer_approval, open_approvals,
};

use crate::{StoreServer, wait_until};

/// A machine that asks.
struct Asker {
    approvals: SharedApprovals,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Asker {
    fn new(url: &StoreUrl, node: &str) -> Asker {
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = notices.clone();
        let notice = move |text: &str| sink.lock().push(text.to_owned());
        let approvals = SharedApprovals::start(url.clone(), node, notice).unwrap();
        Asker { approvals, notices }
    }

    fn ask(&self, workspace: &str, digit: &str) -> AskedApproval {
        self.approvals.ask(question(workspace, digit, 600))
    }

    fn has_notice(&self, words: &str) -> bool {
        self.notices.lock().iter().any(|notice| notice.contains(words))
    }
}

fn question(workspace: &str, digit: &str, seconds: u64) -> NewApproval {
    NewApproval {
        workspace: workspace.to_owned(),
        digest: digit.repeat(64)[..64].to_owned(),
        caller: Some("alice".to_owned()),
        question: "Bash wants to:\n  run x\n".to_owned(),
        rule: Some("[[rule]]".to_owned()),
        seconds,
    }
}

fn answer(allows: bool, by: &str) -> ApprovalAnswer {
    ApprovalAnswer { allows, by: by.to_owned(), message: None }
}

fn yes() -> ApprovalAnswer {
    answer(true, "operator")
}

/// The id of a question, once the store has it.
fn id(asked: &AskedApproval) -> String {
    loop {
        if let ApprovalState::Open(id) = asked.wait_until_known(Duration::from_secs(1)) {
            return id;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_answer_goes_to_the_call_that_asks_and_is_used_once() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let (one, two) = (Asker::new(&acme, "node-1"), Asker::new(&acme, "node-2"));
    let asked = one.ask("ws", "a");
    let waiting = id(&asked);
    // The same call on another machine has the same question.
    let again = two.ask("ws", "a");
    assert_eq!(id(&again), waiting);
    let open = open_approvals(&acme).unwrap();
    assert_eq!(open.len(), 1);
    let shown = (open[0].id.as_str(), open[0].node.as_str(), open[0].workspace.as_str());
    assert_eq!(shown, (waiting.as_str(), "node-1", "ws"));
    assert!(open[0].expires_in <= 600 && open[0].caller.as_deref() == Some("alice"));
    assert_eq!(answer_approval(&acme, &waiting, &yes()).unwrap(), GivenApproval::Settled);
    let before = GivenApproval::Before(yes());
    assert_eq!(answer_approval(&acme, &waiting, &answer(false, "late")).unwrap(), before);
    assert!(open_approvals(&acme).unwrap().is_empty());
    wait_until(|| asked.state() == ApprovalState::Answered);
    assert_eq!(asked.take(), ApprovalOutcome::Other(yes()));
    assert_eq!(asked.take(), ApprovalOutcome::Other(yes()), "the reply to the first may be lost");
    assert_eq!(again.take(), ApprovalOutcome::UsedElsewhere);
    wait_until(|| again.state() == ApprovalState::UsedElsewhere);
    // The next call asks again.
    let next = two.ask("ws", "a");
    assert_ne!(id(&next), waiting);
    assert!(one.notices.lock().is_empty(), "{:?}", one.notices.lock());
}

#[test]
fn the_answer_to_a_machine_that_has_died_is_for_the_same_call_only() {
    let Some(store) = StoreServer::start() else { return };
    let (acme, other) = (store.tenant("acme"), store.tenant("other"));
    let dead = Asker::new(&acme, "node-1");
    let waiting = id(&dead.ask("ws", "a"));
    drop(dead);
    assert_eq!(answer_approval(&acme, &waiting, &yes()).unwrap(), GivenApproval::Settled);
    let two = Asker::new(&acme, "node-2");
    // Another call, another workspace and another tenant do not get it.
    for asked in [two.ask("ws", "b"), two.ask("ws-2", "a"), Asker::new(&other, "n").ask("ws", "a")]
    {
        assert_ne!(id(&asked), waiting);
        assert_eq!(asked.take(), ApprovalOutcome::Expired);
    }
    let same = two.ask("ws", "a");
    assert_eq!(same.wait_until_known(Duration::from_secs(60)), ApprovalState::Answered);
    // A cancelled call has not used it.
    assert_eq!(same.take(), ApprovalOutcome::Other(yes()));
    same.give_back();
    let used = "SELECT count(*) FROM toolcrib.approvals WHERE used_by IS NOT NULL";
    wait_until(|| store.as_admin(used) == "0");
    let last = two.ask("ws", "a");
    assert_eq!(last.wait_until_known(Duration::from_secs(60)), ApprovalState::Answered);
    assert_eq!(last.take(), ApprovalOutcome::Other(yes()));
    let next = two.ask("ws", "a");
    assert_ne!(id(&next), waiting);
    assert_eq!(store.as_admin(used), "1");
}

#[test]
fn the_first_answer_wins_wherever_it_is_given() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let one = Asker::new(&acme, "node-1");
    for digit in ["1", "2", "3", "4", "5", "6"] {
        let asked = one.ask("ws", digit);
        let waiting = id(&asked);
        let local = answer(false, "page");
        let (here, there) = std::thread::scope(|scope| {
            let there: Vec<_> = (0..4)
                .map(|number| {
                    let (acme, waiting) = (&acme, &waiting);
                    scope.spawn(move || {
                        answer_approval(acme, waiting, &answer(true, &number.to_string())).unwrap()
                    })
                })
                .collect();
            let here = asked.settle(&local, true);
            (here, there.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>())
        });
        let won = there.iter().filter(|given| **given == GivenApproval::Settled).count();
        match here {
            ApprovalOutcome::Own => assert_eq!(won, 0),
            ApprovalOutcome::Other(first) => assert!(won == 1 && first.allows, "{first:?}"),
            outcome => panic!("{outcome:?}"),
        }
    }
    // An answer after the call has ended is for the next one.
    let asked = one.ask("ws", "7");
    id(&asked);
    asked.leave();
    assert_eq!(asked.settle(&yes(), false), ApprovalOutcome::Own);
    let next = one.ask("ws", "7");
    assert_eq!(next.wait_until_known(Duration::from_secs(60)), ApprovalState::Answered);
    assert_eq!(next.take(), ApprovalOutcome::Other(yes()));
    // A question that needs no answer has ended.
    let asked = one.ask("ws", "8");
    let waiting = id(&asked);
    asked.withdraw();
    wait_until(|| open_approvals(&acme).unwrap().is_empty());
    assert_eq!(answer_approval(&acme, &waiting, &yes()).unwrap(), GivenApproval::Over);
}

#[test]
fn a_question_ends_and_its_answer_with_it() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let one = Asker::new(&acme, "node-1");
    let asked = one.approvals.ask(question("ws", "a", 1));
    let waiting = id(&asked);
    wait_until(|| asked.state() == ApprovalState::Expired);
    assert_eq!(answer_approval(&acme, &waiting, &yes()).unwrap(), GivenApproval::Over);
    assert_eq!(asked.take(), ApprovalOutcome::Expired);
    assert!(open_approvals(&acme).unwrap().is_empty());
    // The same call asks anew.
    let next = one.ask("ws", "a");
    let (second, digest) = (id(&next), "a".repeat(8));
    assert_ne!(second, waiting);
    // An answer that nobody used in time.
    assert_eq!(answer_approval(&acme, &second, &yes()).unwrap(), GivenApproval::Settled);
    store.as_admin("UPDATE toolcrib.approvals SET expires = now() WHERE used_by IS NULL");
    assert_eq!(next.take(), ApprovalOutcome::Expired);
    assert!(id(&one.ask("ws", "a")) != second);
    for wrong in [second.replace(&digest, "bbbbbbbb"), format!("999-{digest}")] {
        assert_eq!(answer_approval(&acme, &wrong, &yes()).unwrap(), GivenApproval::Unknown);
    }
    for wrong in ["1", "", "1-aaa", "1-';DROP"] {
        assert!(answer_approval(&acme, wrong, &yes()).is_err(), "{wrong}");
    }
}

#[test]
fn only_the_tenant_answers() {
    let Some(store) = StoreServer::start() else { return };
    let (acme, other) = (store.tenant("acme"), store.tenant("other"));
    let one = Asker::new(&acme, "node-1");
    let asked = one.ask("ws", "a");
    let waiting = id(&asked);
    assert!(open_approvals(&other).unwrap().is_empty());
    assert_eq!(open_approvals(&store.admin()).unwrap().len(), 1, "the owner sees all");
    for stranger in [&other, &store.admin()] {
        let given = answer_approval(stranger, &waiting, &yes()).unwrap();
        assert_eq!(given, GivenApproval::Unknown);
    }
    for statements in [
        "UPDATE toolcrib.approvals SET answer = 'yes'",
        "DELETE FROM toolcrib.approvals",
        "INSERT INTO toolcrib.approvals (tenant, workspace, digest, node, question, expires) VALUES ('acme', 'w', repeat('a', 64), '', '', now())",
        "SELECT toolcrib.ask('w', 'no digest', '', '', '', '', 60)",
        "SELECT toolcrib.ask('w', repeat('a', 64), '', '', repeat('x', 140000), '', 60)",
        "SELECT toolcrib.ask('w', repeat('a', 64), '', '', '', '', 100000)",
        "SELECT toolcrib.answer(1, '', 'yes', 'me', NULL, NULL)",
        "SELECT toolcrib.answer(1, repeat('a', 64), 'always', 'me', NULL, NULL)",
    ] {
        assert!(store.as_tenant("acme", statements).is_err(), "{statements}");
    }
    let by_number =
        "SELECT count(*) FROM toolcrib.answer(1, repeat('a', 64), 'yes', 'me', NULL, NULL)";
    assert_eq!(store.as_tenant("other", by_number).unwrap(), "0");
    assert_eq!(asked.state(), ApprovalState::Open(waiting));
    // A notification that says nothing.
    store.as_tenant("other", "NOTIFY toolcrib_x; SELECT pg_notify('toolcrib_x', '1')").unwrap();
    // Text that the table does not take.
    let long = NewApproval { question: "x".repeat(200_000), ..question("ws", "c", 60) };
    let refused = one.approvals.ask(long).wait_until_known(Duration::from_secs(60));
    assert_eq!(refused, ApprovalState::Unavailable("the question is too long".to_owned()));
}

#[test]
fn without_the_store_questions_are_only_here_and_come_back() {
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let one = Asker::new(&acme, "node-1");
    let asked = one.ask("ws", "a");
    let waiting = id(&asked);
    store.server.kill();
    let other = one.ask("ws", "b");
    wait_until(|| matches!(other.state(), ApprovalState::Unavailable(_)));
    wait_until(|| matches!(asked.state(), ApprovalState::Unavailable(_)));
    assert!(one.has_notice("They are asked only here"));
    // The local answer counts, and the store is told later.
    let local = answer(true, "page");
    assert_eq!(asked.settle(&local, true), ApprovalOutcome::Unreachable);
    assert_eq!(other.settle(&local, true), ApprovalOutcome::Unreachable);
    store.server.restart();
    let by = "SELECT answered_by FROM toolcrib.approvals WHERE answer = 'yes'";
    wait_until(|| store.as_admin(by) == "page");
    let before = GivenApproval::Before(local.clone());
    assert_eq!(answer_approval(&acme, &waiting, &yes()).unwrap(), before);
    id(&other);
    assert!(one.has_notice("in the store again"));
    // A server that accepts connections and does not answer.
    store.server.freeze(true);
    let outcome = one.ask("ws", "c").settle(&local, true);
    store.server.freeze(false);
    assert_eq!(outcome, ApprovalOutcome::Unreachable);
}

/// The server is killed again and again while questions are asked and answered.
#[test]
fn no_answer_is_lost_or_used_twice_while_the_server_is_killed() {
    const EACH: usize = 6;
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let (is_over, given) = (AtomicBool::new(false), Mutex::new(HashMap::new()));
    let used: Mutex<HashMap<String, ApprovalAnswer>> = Mutex::default();
    std::thread::scope(|scope| {
        for person in 0..2 {
            let (acme, is_over, given) = (&acme, &is_over, &given);
            scope.spawn(move || {
                let mut number = person;
                while !is_over.load(Ordering::Relaxed) {
                    for open in open_approvals(acme).unwrap_or_default() {
                        number += 1;
                        let said = answer(number % 3 != 0, &format!("{person}-{number}"));
                        if answer_approval(acme, &open.id, &said) == Ok(GivenApproval::Settled) {
                            let before = given.lock().insert(open.question, said);
                            assert_eq!(before, None, "two answers have won");
                        }
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        }
        let asking: Vec<_> = (0..3)
            .map(|node| {
                let (acme, used) = (&acme, &used);
                scope.spawn(move || {
                    for number in 0..EACH {
                        // Each machine dies after a few questions, and the next one asks the same again.
                        let text = format!("{node}-{number}");
                        let digest = format!("{:064x}", node * 1_000 + number);
                        let new = || NewApproval {
                            digest: digest.clone(),
                            question: text.clone(),
                            ..question("ws", "a", 600)
                        };
                        let first = Asker::new(acme, "dies");
                        first.approvals.ask(new()).wait_until_known(Duration::from_millis(300));
                        drop(first);
                        let second = Asker::new(acme, "lives");
                        let asked = second.approvals.ask(new());
                        let taken = loop {
                            match asked.state() {
                                ApprovalState::Answered => match asked.take() {
                                    ApprovalOutcome::Other(answer) => break answer,
                                    ApprovalOutcome::Unreachable => {}
                                    outcome => panic!("{text}: {outcome:?}"),
                                },
                                ApprovalState::UsedElsewhere | ApprovalState::Expired => {
                                    panic!("{text}: {:?}", asked.state())
                                }
                                _ => std::thread::sleep(Duration::from_millis(10)),
                            }
                        };
                        assert_eq!(used.lock().insert(text, taken), None);
                    }
                })
            })
            .collect();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(700));
            store.server.kill();
            std::thread::sleep(Duration::from_millis(200));
            store.server.restart();
        }
        let ended: Vec<_> = asking.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|one| one.unwrap());
    });
    let (given, used) = (given.into_inner(), used.into_inner());
    assert_eq!(used.len(), 3 * EACH);
    // An answer whose reply was lost is not among the given ones, and has been used.
    for (text, said) in &given {
        assert_eq!(used.get(text), Some(said), "{text}");
    }
    let rows = "SELECT count(*), count(DISTINCT digest), count(used_by), count(DISTINCT used_by) FROM toolcrib.approvals";
    let all = (3 * EACH).to_string();
    assert_eq!(store.as_admin(rows), [all.as_str(); 4].join("|"));
}
