//! Commands that go on after their calls, and servers that do not answer.

use super::*;

#[test]
fn the_end_of_a_background_command_is_an_event_with_its_refusals() {
    let setup = Setup::new();
    let mut server = setup.serve(&[]);
    let watcher = setup.watch();
    initialize(&mut server, json!({}));
    let script = "until test -e go; do sleep 0.05; done; touch /etc/refused-later; exit 3";
    call(&mut server, 1, "Bash", json!({"command": script, "run_in_background": true}));
    server.receive();
    let begun = watcher.find(|event| match event {
        Event::CallEnded(call) => Some(call),
        _ => None,
    });
    assert_eq!((begun.outcome, begun.call.in_background), (Outcome::Running, true));
    assert!(begun.refusals.is_empty());
    let late = Watcher::connect(&setup.sockets()[0]);
    let [running] = late.state.running.as_slice() else { panic!("{:?}", late.state) };
    assert_eq!((&running.id, running.in_background), (&begun.call.id, true));
    std::fs::write(setup.path("ws/go"), "").unwrap();
    let (id, end) = watcher.find(|event| match event {
        Event::CommandEnded { id, end } => Some((id, end)),
        _ => None,
    });
    assert_eq!(id, begun.call.id);
    assert_eq!((end.status.as_str(), end.exit_code), ("failed", Some(3)));
    let hello = watcher.client.hello().unwrap();
    let is_refused = end.refusals.iter().any(|one| one.what.contains("/etc/refused-later"));
    assert_eq!(is_refused, hello.sandbox.contains("sandbox"), "{end:?}");
    assert!(Watcher::connect(&setup.sockets()[0]).state.running.is_empty());
}

fn signal(process: &Child, signal: &str) {
    Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap();
}

/// Continues a process at the end of a test.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(&self.0, "-CONT");
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watch_reports_a_server_that_does_not_answer_and_shows_the_others() {
    let setup = Setup::new();
    let start = || {
        let mut run = setup.command(&["run"]);
        run.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut servers: Vec<Stopped> = Vec::new();
    for count in 1..=4 {
        servers.push(Stopped(start()));
        while setup.sockets().len() < count {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    for stopped in &servers[..3] {
        signal(&stopped.0, "-STOP");
    }
    let output = setup.command(&["watch", "--once"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    // On a busy machine, the fourth may be too slow as well.
    let silent = text.lines().filter(|line| line.ends_with("does not answer")).count();
    assert!(silent >= 3, "{text}");
    for stopped in &servers[..3] {
        assert!(text.contains(&format!("== {}-", stopped.0.id())), "{text}");
    }
    let output = setup.command(&["watch", "--once", "--json"]).output().unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all.len(), 4);
    assert!(all.iter().filter(|one| one["error"] == "does not answer").count() >= 3, "{all:?}");
}
