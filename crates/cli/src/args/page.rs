//! Arguments of `page`, and the text about `watch`.

use clap::Args as ClapArgs;

use super::parse::port;

#[derive(Debug, ClapArgs)]
pub(crate) struct PageArgs {
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", value_parser = port)]
    pub(crate) port: Option<u16>,

    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,

    /// Print only the address, without notes
    #[arg(long)]
    pub(crate) print: bool,
}

pub(super) const PAGE: &str = "\
Serve a page on 127.0.0.1 that shows all running servers of this user and the journal, until it is ended.

It prints an address that can be opened once. If the page runs already, it prints a new address of it and exits. \
Servers do not depend on the page.";

pub(super) const WATCH: &str = "\
Show the calls and the approval questions of all running servers of this user, as they come.

Answer a question by typing a line: `y` allows the call, `s` allows it for the session, `t 30` for 30 minutes, `n TEXT` \
denies it with a message to the agent. `a`, `d` and `v` add a rule that the question shows. `l` lists all questions, \
and `o 2` shows the second. The first answer counts, here, in the client or on the page.

While it runs on a terminal, an agent whose client cannot ask waits for your answer.";
