use std::path::Path;

use super::super::Caps;
use super::*;

const HERE: &str = "/home/me/project";

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
    AuditEvent::Call { user: 1000, process: 7, client: Some("x".into()), call: Box::new(call) }
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

#[test]
fn a_full_file_is_kept_and_the_chain_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (journal(directory.path()), journal(directory.path()));
    for number in 0..60 {
        let journal = if number % 3 == 0 { &one } else { &other };
        journal.audit.append(journal, HERE, &event(number), 4_000).unwrap();
    }
    let full = one.audit.full_files(&key(HERE)).unwrap();
    assert!(full.len() > 2 && full[0].ends_with(".000000000001.jsonl"), "{full:?}");
    let report = one.verify_audit(HERE, None).unwrap();
    assert_eq!((report.records, report.first, report.broken), (60, 1, None));
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
    let event = AuditEvent::Call { user: 0, process: 1, client: None, call: Box::new(call) };
    journal.record_audit(HERE, &event).unwrap();
    assert_eq!(journal.verify_audit(HERE, None).unwrap().records, 1);
}
