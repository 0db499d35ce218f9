use std::path::Path;

use super::super::Caps;
use super::*;

const HERE: &str = "/home/me/project";

/// A limit with room for all records of a test, in files of 4,000 bytes.
const ROOM: u64 = 16_000;

fn journal(directory: &Path) -> Journal {
    Journal::open(directory.join("state"), Caps::default()).unwrap()
}

fn event(number: u64) -> AuditEvent {
    let call = CallRecord {
        id: format!("1-a-{number}"),
        time_ms: number,
        tool: "Bash".into(),
        outcome: "done".into(),
        ..CallRecord::default()
    };
    let (client, call) = (Some("x".into()), Box::new(call));
    AuditEvent::Call { user: 1000, process: 7, client, principal: None, call }
}

fn file(directory: &Path) -> std::path::PathBuf {
    directory.join("state").join(current(&key(HERE)))
}

fn lines(journal: &Journal) -> Vec<String> {
    let mut all = Vec::new();
    journal
        .audit_lines(HERE, |line| {
            all.push(String::from_utf8(line.to_vec()).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

#[test]
fn sessions_of_a_workspace_make_one_chain() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(journal(directory.path()).verify_audit(HERE, None).unwrap(), AuditReport::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Each has its own descriptors, as another process has.
            let journal = journal(directory.path());
            scope.spawn(move || {
                for number in 0..50 {
                    journal.record_audit(HERE, &event(number)).unwrap();
                }
            });
        }
    });
    let journal = journal(directory.path());
    journal.record_audit("/elsewhere", &event(1)).unwrap();
    let report = journal.verify_audit(HERE, None).unwrap();
    assert_eq!((report.records, report.broken), (200, None));
    let elsewhere = journal.verify_audit("/elsewhere/", None).unwrap();
    assert_eq!(elsewhere.records, 1);
    let read: AuditEvent = serde_json::from_str(&lines(&journal)[0]).unwrap();
    assert_eq!(read, event(0));
}

/// The log is cut at every byte, as a crash in the middle of a write leaves it. The next append completes it to a right chain,
/// and says what was removed.
#[test]
fn a_torn_line_is_removed_and_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let whole = {
        let journal = journal(directory.path());
        (1..=3).for_each(|number| journal.record_audit(HERE, &event(number)).unwrap());
        std::fs::read(file(directory.path())).unwrap()
    };
    let long_lived = journal(directory.path());
    for cut in 0..=whole.len() {
        std::fs::write(file(directory.path()), &whole[..cut]).unwrap();
        let complete = whole[..cut].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let end = whole[..cut].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let torn = (cut - end) as u64;
        let report = long_lived.verify_audit(HERE, None).unwrap();
        assert_eq!((report.records, report.torn_bytes, report.broken), (complete, torn, None));
        long_lived.record_audit(HERE, &event(9)).unwrap();
        let report = long_lived.verify_audit(HERE, None).unwrap();
        let noted = u64::from(torn > 0);
        assert_eq!((report.records, report.broken), (complete + noted + 1, None), "cut at {cut}");
        let all = lines(&long_lived);
        if torn > 0 {
            let note = &all[all.len() - 2];
            assert!(note.contains(&format!("\"torn_line_removed\",\"bytes\":{torn}")), "{note}");
        }
    }
}

/// An append does not hide damage.
#[test]
fn a_damaged_end_stays_visible() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    (1..=3).for_each(|number| journal.record_audit(HERE, &event(number)).unwrap());
    let text = std::fs::read_to_string(file(directory.path())).unwrap();
    let damaged = text.replacen("\"1-a-3\"", "\"1-a-4\"", 1);
    std::fs::write(file(directory.path()), damaged + "nonsense\n").unwrap();
    journal.record_audit(HERE, &event(4)).unwrap();
    let broken = journal.verify_audit(HERE, None).unwrap().broken;
    assert_eq!(broken, Some(AuditBreak::Edited { record: 3 }));
    std::fs::write(file(directory.path()), "x".repeat(3 * MAX_LINE_BYTES) + "\n").unwrap();
    let broken = journal.verify_audit(HERE, None).unwrap().broken;
    assert_eq!(broken, Some(AuditBreak::NotARecord { record: 1 }));
    journal.record_audit(HERE, &event(5)).unwrap();
}

/// No crash leaves these bytes, so they are neither taken for one nor removed.
#[test]
fn bytes_that_no_crash_leaves_are_damage_and_stay() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    for junk in [long.clone(), long.clone() + "\n", "x".repeat(5 * MAX_LINE_BYTES), long + "\nab"] {
        let directory = tempfile::tempdir().unwrap();
        let journal = journal(directory.path());
        (1..=3).for_each(|number| journal.record_audit(HERE, &event(number)).unwrap());
        let right = std::fs::read_to_string(file(directory.path())).unwrap();
        std::fs::write(file(directory.path()), right.clone() + &junk).unwrap();
        let broken = Some(AuditBreak::NotARecord { record: 4 });
        assert_eq!(journal.verify_audit(HERE, None).unwrap().broken, broken);
        (4..=6).for_each(|number| journal.record_audit(HERE, &event(number)).unwrap());
        let report = journal.verify_audit(HERE, None).unwrap();
        assert_eq!((report.records, report.broken, report.torn_bytes), (3, broken, 0));
        let text = std::fs::read_to_string(file(directory.path())).unwrap();
        assert!(text.starts_with(&(right + junk.strip_suffix("ab").unwrap_or(&junk))));
    }
}

#[test]
fn an_unfinished_line_in_a_full_file_is_damage() {
    for junk in ["nonsense".to_owned(), "x".repeat(2 * MAX_LINE_BYTES)] {
        let directory = tempfile::tempdir().unwrap();
        let journal = journal(directory.path());
        for number in 0..30 {
            journal.audit.append(&journal, HERE, &event(number), ROOM).unwrap();
        }
        let full = journal.audit.full_files(&key(HERE)).unwrap();
        let [first, second] = [0, 1].map(|at| directory.path().join("state").join(&full[at]));
        let text = std::fs::read_to_string(&first).unwrap();
        std::fs::write(&first, text + &junk).unwrap();
        let report = journal.verify_audit(HERE, None).unwrap();
        let next = first_link(&File::open(second).unwrap()).unwrap().seq;
        assert_eq!(report.broken, Some(AuditBreak::NotARecord { record: next }));
        assert_eq!((report.records, report.torn_bytes), (next - 1, 0));
    }
}

/// The oldest files go, the chain says so, and a beginning that is missing for another reason is found.
#[test]
fn a_log_over_its_limit_loses_its_oldest_records_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (journal(directory.path()), journal(directory.path()));
    let state = directory.path().join("state");
    let mut heads = Vec::new();
    for number in 0..200 {
        let journal = if number % 3 == 0 { &one } else { &other };
        journal.audit.append(journal, HERE, &event(number), 16_000).unwrap();
        let report = one.verify_audit(HERE, None).unwrap();
        assert_eq!(report.broken, None, "after {number}");
        heads.push((report.first + report.records - 1, report.head));
        let files = one.audit.files(&key(HERE)).unwrap();
        let bytes: u64 = files.iter().map(|(_, _, length)| length).sum();
        assert!(bytes < 18_000, "{bytes}");
    }
    let report = one.verify_audit(HERE, None).unwrap();
    assert!(report.first > 50 && report.records > 20, "{report:?}");
    let removal = |line: &String| line.contains("\"event\":\"oldest_removed\",\"last\":");
    assert!(lines(&one).iter().any(removal));
    // A kept hash is known if its record is there, or was the last of a removed file.
    let kept = |seq: u64| {
        let (_, hash) = heads.iter().find(|(one, _)| *one == seq).unwrap();
        one.verify_audit(HERE, Some(hash)).unwrap()
    };
    assert_eq!(kept(report.first + 5).kept_at, Some(report.first + 5));
    assert_eq!(kept(5).broken, Some(AuditBreak::UnknownHead));
    // Somebody removes one more.
    let oldest = one.audit.full_files(&key(HERE)).unwrap().remove(0);
    std::fs::remove_file(state.join(oldest)).unwrap();
    let broken = one.verify_audit(HERE, None).unwrap().broken;
    assert!(matches!(broken, Some(AuditBreak::Missing { first: 1, .. })), "{broken:?}");
}

#[test]
fn a_record_has_no_characters_that_a_terminal_acts_on() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let text = "a\u{1b}b\u{9b}c\u{202e}d\u{7f}";
    let call = CallRecord { message: Some(text.to_owned()), ..CallRecord::default() };
    let event = AuditEvent::call(None, None, call);
    journal.record_audit(HERE, &event).unwrap();
    let line = lines(&journal).remove(0);
    assert!(line.contains(r"a\u001bb\u009bc\u202ed\u007f"), "{line}");
    assert_eq!(serde_json::from_str::<AuditEvent>(&line).unwrap(), event);
    assert_eq!(journal.verify_audit(HERE, None).unwrap().records, 1);
}

#[test]
fn a_full_file_is_kept_and_the_chain_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (journal(directory.path()), journal(directory.path()));
    for number in 0..30 {
        let journal = if number % 3 == 0 { &one } else { &other };
        journal.audit.append(journal, HERE, &event(number), ROOM).unwrap();
    }
    let full = one.audit.full_files(&key(HERE)).unwrap();
    assert!(full.len() == 2 && full[0].ends_with(".000000000001.jsonl"), "{full:?}");
    let report = one.verify_audit(HERE, None).unwrap();
    assert_eq!((report.records, report.first, report.broken), (30, 1, None));
    let second = std::fs::read_to_string(directory.path().join("state").join(&full[1])).unwrap();
    std::fs::remove_file(directory.path().join("state").join(&full[0])).unwrap();
    let broken = one.verify_audit(HERE, None).unwrap().broken;
    assert!(matches!(broken, Some(AuditBreak::Missing { first: 1, .. })), "{broken:?}");
    // The hash of the last archived record is the `prev` of the first that is left.
    let kept = &second[second.find("\"prev\":\"").unwrap() + 8..][..64];
    let report = one.verify_audit(HERE, Some(kept)).unwrap();
    assert_eq!((report.broken, report.kept_at), (None, Some(report.first - 1)));
}

#[test]
fn a_record_that_is_too_long_is_shortened() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let accesses = vec![("write".to_owned(), "\u{1}".repeat(4_000)); 20];
    let call = CallRecord { accesses, ..CallRecord::default() };
    let call = Box::new(call);
    let event = AuditEvent::Call { user: 0, process: 1, client: None, principal: None, call };
    journal.record_audit(HERE, &event).unwrap();
    assert_eq!(journal.verify_audit(HERE, None).unwrap().records, 1);
}
