//! `toolcrib page`: serves the page for people.

mod operator;
mod single_instance;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, ExitCode, Stdio};

use toolcrib::{OperatorLogs, make_private_directory, user_machine};
use toolcrib_page::{Page, PageOptions};

use self::operator::PageOperator;
use self::single_instance::{Instance, claim};
use crate::args::{Common, PageArgs, cannot_listen};
use crate::config::Config;
use crate::output;

pub(crate) fn page(common: &Common, args: &PageArgs) -> Result<ExitCode, String> {
    let sockets = user_machine::socket_directory().ok_or("the runtime directory is unknown")?;
    let sockets = make_private_directory(&sockets).map_err(|error| error.to_string())?;
    match claim(&sockets)? {
        Instance::Other { address, process } => {
            if args.port.is_some_and(|port| !is_at_port(&address, port)) {
                return Err(runs_elsewhere(&address, process));
            }
            if !args.print {
                output::note("The page runs already. This is a new address of it.");
            }
            show(&address, args)?;
            Ok(ExitCode::SUCCESS)
        }
        Instance::First(claimed) => {
            let page = prepare(common, args)?;
            let addresses = page.addresses();
            let failed = |error: io::Error| format!("cannot serve the page: {error}");
            let address = addresses.make().map_err(failed)?;
            claimed.give_addresses(move || addresses.make()).map_err(failed)?;
            if !args.print {
                output::note(
                    "The page runs until this command ends. Its address can be opened once; run the command again \
                     for another.",
                );
            }
            show(&address, args)?;
            match page.serve() {
                Ok(never) => match never {},
                Err(error) => Err(failed(error)),
            }
        }
    }
}

/// Whether the page is at this port of the machine.
fn is_at_port(address: &str, port: u16) -> bool {
    // 0 is any port.
    port == 0 || port_of(address) == Some(port)
}

/// The port in an address such as `http://127.0.0.1:8000/#ticket`.
fn port_of(address: &str) -> Option<u16> {
    let (_, after) = address.strip_prefix("http://")?.split_once(':')?;
    after.split(['/', '#']).next()?.parse().ok()
}

/// The error if another port is wanted than that of the running page.
fn runs_elsewhere(address: &str, process: Option<u32>) -> String {
    let port =
        port_of(address).map_or_else(|| "another port".to_owned(), |port| format!("port {port}"));
    let stop = process.map_or_else(
        || "End it with Ctrl-C in its terminal".to_owned(),
        |process| format!("End it with Ctrl-C in its terminal, or with `kill {process}`"),
    );
    format!(
        "the page already runs at {port}. {stop}, and run this command again. Without --port, it prints an address \
         of the running page."
    )
}

fn prepare(common: &Common, args: &PageArgs) -> Result<Page, String> {
    let config = Config::of(common)?;
    let state = super::state(common)?.ok_or("the state directory is unknown")?;
    let logs = OperatorLogs::open(&state, config.journal_caps());
    let logs = logs.map_err(|error| error.to_string())?;
    let port = args.port.unwrap_or(0);
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
    let operator = Box::new(PageOperator::new(common));
    let (sockets, notify) = (user_machine::socket_directories(), config.notify.clone());
    let options = PageOptions { listener, sockets, logs, operator, notify };
    Page::new(options).map_err(|error| format!("cannot serve the page: {error}"))
}

/// Prints an address, and opens it in the browser if that is wanted.
fn show(address: &str, args: &PageArgs) -> Result<(), String> {
    output::line(&address)?;
    if args.open {
        let mut browser = Command::new("xdg-open");
        browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = browser.spawn() {
            output::warning(&format!("no browser was opened: xdg-open: {error}"));
        }
    }
    Ok(())
}
