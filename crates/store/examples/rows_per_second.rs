//! Measures how many audit records per second one process sends to a PostgreSQL on this machine, which it starts, with `fsync`.
//! `cargo run --release -p toolcrib-store --example rows_per_second [RECORDS]`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which has an argument and prints what it measures"
)]

use std::error::Error;
use std::time::{Duration, Instant};

use toolcrib::{AuditEvent, CallRecord, Caps};
use toolcrib_fs::Journal;
use toolcrib_store::{AuditSender, StoreUrl, add_tenant, initialize};
use toolcrib_testkit::PostgresServer;

const DATABASE: &str = "tools";

fn main() -> Result<(), Box<dyn Error>> {
    let records = std::env::args().nth(1).map_or(Ok(20_000), |text| text.parse::<usize>())?;
    let Some(server) = PostgresServer::start_with(&["fsync=on"], |_| {}) else { return Ok(()) };
    server.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    let owner = StoreUrl::parse(&server.admin_url(DATABASE))?;
    initialize(&owner)?;
    let tenant = add_tenant(&owner, "acme", "acme-secret")?;
    let top = tempfile::tempdir()?;
    let state = top.path().join("state");
    let journal = Journal::open(state.clone(), Caps::default())?;
    for number in 0..records {
        // As long as the record of a usual call.
        let message = Some("x".repeat(300));
        let call = CallRecord { id: number.to_string(), message, ..CallRecord::default() };
        journal.record_audit("/ws", &AuditEvent::call(None, None, call))?;
    }
    let began = Instant::now();
    let sender = AuditSender::start(tenant, state, |text| eprintln!("{text}"))?;
    let sent = sender.follow(journal.audit_outbox("/ws"), "ws");
    let count = "SELECT count(*) FROM toolcrib.records";
    while server.psql(DATABASE, count) != records.to_string() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = began.elapsed().as_secs_f64();
    let bytes =
        server.psql(DATABASE, "SELECT avg(octet_length(line))::integer FROM toolcrib.records");
    drop((sent, sender));
    let version = server.psql(DATABASE, "SHOW server_version");
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let rate = records as f64 / seconds;
    println!(
        "{records} records of {bytes} bytes in {seconds:.1} s: {rate:.0} per second, PostgreSQL {version}"
    );
    Ok(())
}
