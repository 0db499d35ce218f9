//! Single-use tickets, and the tokens that they are traded for.

use std::collections::VecDeque;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use toolcrib::random_bytes;

/// Tickets that are not used yet. The oldest is dropped first.
const MAX_TICKETS: usize = 16;

/// Tokens in use: browsers in which the page is open. The oldest is dropped first.
const MAX_TOKENS: usize = 64;

/// Tickets and tokens, stored as hashes: they cannot be printed, and comparison takes constant time.
#[derive(Default)]
pub(crate) struct SignIn {
    tickets: Mutex<VecDeque<blake3::Hash>>,
    tokens: Mutex<VecDeque<blake3::Hash>>,
}

/// A browser in which the page is open: it has a token of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Browser(blake3::Hash);

impl SignIn {
    /// Makes a ticket.
    pub(crate) fn new_ticket(&self) -> io::Result<String> {
        make(&self.tickets, MAX_TICKETS)
    }

    /// Trades a ticket for a token. `None` if the ticket is unknown or was used.
    pub(crate) fn trade(&self, ticket: &str) -> io::Result<Option<String>> {
        let hash = blake3::hash(ticket.as_bytes());
        {
            let mut tickets = self.tickets.lock();
            let Some(place) = tickets.iter().position(|known| *known == hash) else {
                return Ok(None);
            };
            tickets.remove(place);
        }
        make(&self.tokens, MAX_TOKENS).map(Some)
    }

    /// The browser with this token. `None` if it is no token.
    pub(crate) fn browser(&self, given: &[u8]) -> Option<Browser> {
        let hash = blake3::hash(given);
        self.tokens.lock().contains(&hash).then_some(Browser(hash))
    }
}

/// Makes a secret of 256 bits and remembers its hash.
fn make(known: &Mutex<VecDeque<blake3::Hash>>, most: usize) -> io::Result<String> {
    let secret = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let mut known = known.lock();
    if known.len() >= most {
        known.pop_front();
    }
    known.push_back(blake3::hash(secret.as_bytes()));
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_traded_once() {
        let sign_in = SignIn::default();
        let (one, other) = (sign_in.new_ticket().unwrap(), sign_in.new_ticket().unwrap());
        let token = sign_in.trade(&one).unwrap().unwrap();
        assert!(sign_in.browser(token.as_bytes()).is_some());
        assert_eq!(sign_in.trade(&one).unwrap(), None);
        assert!(sign_in.browser(one.as_bytes()).or(sign_in.browser(b"")).is_none());
        assert!(sign_in.trade(&other).unwrap().is_some());
        assert!(sign_in.browser(token.as_bytes()).is_some());
    }

    #[test]
    fn tickets_and_tokens_are_bounded() {
        let sign_in = SignIn::default();
        let first = sign_in.new_ticket().unwrap();
        for _ in 0..MAX_TICKETS {
            sign_in.new_ticket().unwrap();
        }
        assert_eq!(sign_in.trade(&first).unwrap(), None);
    }
}
