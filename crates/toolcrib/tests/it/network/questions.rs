//! Questions about hosts: before a command starts, and while a connection waits.

use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::{Answer, Question};

use super::*;

/// Answers with the same answer, and remembers the questions.
struct Always {
    answer: Answer,
    asked: Mutex<Vec<String>>,
}

impl Always {
    fn new(answer: Answer) -> Always {
        Always { answer, asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl Approver for Always {
    fn ask(&self, question: &Question<'_>) -> Answer {
        let always = question.always.map(|rules| rules.command()).unwrap_or_default();
        let accesses: Vec<String> = question.accesses.iter().map(ToString::to_string).collect();
        self.asked.lock().push(format!("{} | {} | {always}", accesses.join("; "), question.why));
        self.answer.clone()
    }

    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        assert_eq!(limit, Duration::from_secs(8));
        self.ask(question)
    }
}

/// The host is in a variable, so it is known only when the command connects.
const HIDDEN: &str = "h=$(echo new.test); curl -s http://$h:HTTP/hello";

fn hidden(listed: &Listed) -> String {
    HIDDEN.replace("HTTP", &listed.server.http.to_string())
}

#[test]
fn a_connection_waits_for_the_answer() {
    let listed = Listed::new();
    let port = listed.server.http;
    let once = Always::new(Answer::Allow);
    let reply = listed.bash_asking(&hidden(&listed), &once);
    assert!(reply.contains("hello\n"), "{reply}");
    assert!(reply.contains(&format!("[network: new.test:{port} allowed by answer]")), "{reply}");
    let expected = format!(
        "connect to new.test:{port} | no rule allows new.test:{port} | toolcrib policy allow network new.test:{port}"
    );
    assert_eq!(once.asked(), [expected]);
    let decided = listed.runtime.decisions().unwrap();
    let of_host = decided.iter().find(|decided| decided.what[0].starts_with("connect")).unwrap();
    let answered = of_host.answered.as_ref().map(|(answer, by)| (answer.as_str(), by.as_str()));
    assert_eq!((of_host.tool.as_str(), of_host.decision.as_str()), ("Bash", "ask"));
    assert_eq!(answered, Some(("once", "host")));
    // It held for that command only.
    let no = Always::new(Answer::Deny(String::new()));
    let reply = listed.bash_asking(&hidden(&listed), &no);
    assert!(reply.contains("the answer was no"), "{reply}");
    assert_eq!(no.asked().len(), 1);
    let session = Always::new(Answer::AllowForSession);
    assert!(listed.bash_asking(&hidden(&listed), &session).contains("hello\n"));
    assert!(listed.bash(&hidden(&listed)).contains("hello\n"), "for the session");
    assert_eq!(session.asked().len(), 1);
}

#[test]
fn always_and_never_are_rules_for_this_host_and_port() {
    let listed = Listed::new();
    let port = listed.server.http;
    let always = Always::new(Answer::AllowAlways);
    assert!(listed.bash_asking(&hidden(&listed), &always).contains("hello\n"));
    assert!(listed.bash(&hidden(&listed)).contains("hello\n"));
    let reply = listed.bash("h=$(echo new.test); curl -s http://$h/hello");
    assert!(reply.contains("new.test:80 refused"), "another port: {reply}");
    let never = Always::new(Answer::DenyAlways(String::new()));
    let other = hidden(&listed).replace("new.test", "other.test");
    assert!(listed.bash_asking(&other, &never).contains("refused"));
    let again = Always::new(Answer::Allow);
    assert!(listed.bash_asking(&other, &again).contains(&format!("other.test:{port} refused")));
    assert!(again.asked().is_empty());
}

#[test]
fn an_unanswered_question_is_told() {
    let listed = Listed::new();
    let late = Always::new(Answer::Unanswered("the time is over".to_owned()));
    let reply = listed.bash_asking(&hidden(&listed), &late);
    let port = listed.server.http;
    let expected = format!("asked about new.test:{port}; not answered in 8 s; run it again");
    assert!(reply.contains(&expected), "{reply}");
}

#[test]
fn hosts_in_the_words_of_the_command_are_asked_about_before_it_starts() {
    let listed = Listed::new();
    let port = listed.server.http;
    let no = Always::new(Answer::Deny("use the mirror".to_owned()));
    let script = format!("touch started; curl -s http://new.test:{port}/hello");
    let reply = listed.bash_asking(&script, &no);
    assert!(reply.contains("use the mirror"), "{reply}");
    assert!(!listed.top.path().join("ws/started").exists());
    for answer in [Answer::Allow, Answer::Allow, Answer::AllowForSession] {
        let yes = Always::new(answer);
        let reply = listed.bash_asking(&script, &yes);
        assert!(reply.contains("hello\n"), "{reply}");
        assert_eq!(yes.asked().len(), 1, "not again when it connects: {:?}", yes.asked());
    }
}

/// Several connections to one host are one question.
#[test]
fn connections_of_one_command_share_the_answer() {
    let listed = Listed::new();
    let yes = Always::new(Answer::Allow);
    let script = format!(
        "h=$(echo new.test); for i in 1 2 3 4 5; do curl -s http://$h:{}/hello & done; wait",
        listed.server.http
    );
    let reply = listed.bash_asking(&script, &yes);
    assert_eq!(reply.matches("hello\n").count(), 5, "{reply}");
    assert_eq!(yes.asked().len(), 1, "{:?}", yes.asked());
}

/// An approval for one command is not for another one that connects to the same host at the same time.
#[test]
fn an_approval_is_for_one_command() {
    let listed = Listed::new();
    let port = listed.server.http;
    // It connects for as long as the other commands run.
    let script = format!(
        "h=$(echo new.test); for i in $(seq 300); do curl -s http://$h:{port}/hello; sleep 0.02; done"
    );
    let call = json!({"command": script, "run_in_background": true});
    let started = listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
    let id = started.metadata()["bash_id"].as_str().unwrap().to_owned();
    /// Approves commands that name the host, and no connection of other commands.
    struct CommandsOnly;
    impl Approver for CommandsOnly {
        fn ask(&self, _: &Question<'_>) -> Answer {
            Answer::Allow
        }

        fn ask_within(&self, _: &Question<'_>, _: Duration) -> Answer {
            Answer::Deny(String::new())
        }
    }
    for _ in 0..10 {
        let script = format!("curl -s http://new.test:{port}/hello");
        assert!(listed.bash_asking(&script, &CommandsOnly).contains("hello\n"));
    }
    let kill = json!({"shell_id": id.clone()});
    let reply = listed.call("KillShell", kill, &toolcrib::NoApprover).unwrap();
    assert!(!reply.output().contains("hello\n"), "{}", reply.output());
    let connections = listed.connections("new.test");
    let allowed =
        |entry: &&toolcrib::ConnectionEntry| entry.job == id && entry.decision == "allowed";
    assert_eq!(connections.iter().find(allowed), None);
}

/// Nothing answers at the broadcast address, but the connection is attempted.
#[test]
fn an_approved_address_is_connected_to() {
    let listed = Listed::new();
    let script = "curl -s -m 20 http://255.255.255.255:81/; echo ended";
    let reply = listed.bash(script);
    assert!(reply.contains("no approver is available"), "{reply}");
    for (answer, is_lasting) in [(Answer::Allow, false), (Answer::AllowForSession, true)] {
        let reply = listed.bash_asking(script, &Always::new(answer));
        assert!(reply.contains("255.255.255.255:81 cannot be reached"), "{reply}");
        let later = listed.bash_asking(script, &Always::new(Answer::Deny(String::new())));
        assert_eq!(later.contains("255.255.255.255:81 cannot be reached"), is_lasting, "{later}");
    }
}

/// A command that cannot be started leaves its approval to no other one.
#[test]
fn the_approval_of_a_command_that_cannot_start_is_lost() {
    /// Moves the workspace away before it approves.
    struct MovesWorkspace(std::path::PathBuf);
    impl Approver for MovesWorkspace {
        fn ask(&self, _: &Question<'_>) -> Answer {
            std::fs::rename(self.0.join("ws"), self.0.join("moved")).unwrap();
            std::fs::create_dir(self.0.join("ws")).unwrap();
            Answer::Allow
        }
    }
    let listed = Listed::new();
    let (port, top) = (listed.server.http, listed.top.path());
    let script = format!("curl -s http://new.test:{port}/hello");
    let reply = listed.bash_asking(&script, &MovesWorkspace(top.to_owned()));
    assert!(reply.contains("is not the directory that it was"), "{reply}");
    std::fs::remove_dir(top.join("ws")).unwrap();
    std::fs::rename(top.join("moved"), top.join("ws")).unwrap();
    let reply = listed.bash(&hidden(&listed));
    assert!(reply.contains(&format!("new.test:{port} refused")), "{reply}");
}
