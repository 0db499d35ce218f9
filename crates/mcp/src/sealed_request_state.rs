//! Seals the state of an approval question that the client holds. It is valid for the same call, for a limited
//! time, and once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::{now_ms, random_bytes};

use crate::approve::QuestionPart;

/// The time limit for an answer.
const VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// More answers than are given in that time. Beyond this number, further answers are stale until older ones expire.
const MAX_USED: usize = 10_000;

/// Seals questions, and opens each once.
pub(crate) struct StateSealer {
    codec: RequestStateCodec,
    /// The nonces that came back, and when.
    used: Mutex<HashMap<[u8; 16], Instant>>,
}

/// The sealed content.
#[derive(Serialize, Deserialize)]
struct SealedState {
    asked: QuestionPart,
    /// Distinguishes this question from an identical later one.
    nonce: [u8; 16],
    /// When it was sealed, in milliseconds since 1970.
    at: u64,
}

impl StateSealer {
    /// Creates a random key, which exists only as long as the server.
    pub(crate) fn new() -> Result<StateSealer, String> {
        let key = random_bytes::<32>().map_err(|error| error.to_string())?;
        let codec = RequestStateCodec::try_new(key).map_err(|error| error.to_string())?;
        Ok(StateSealer { codec, used: Mutex::default() })
    }

    /// Seals a question about a call.
    pub(crate) fn seal(&self, asked: QuestionPart, call: &[u8]) -> Option<String> {
        let asked = SealedState { asked, nonce: random_bytes().ok()?, at: now_ms() };
        let options = SealOptions::new().associated_data(call).ttl(VALID_FOR);
        self.codec.seal_json_with(&asked, &options).ok()
    }

    /// Opens the state that a client returned.
    pub(crate) fn open(&self, state: &str, call: &[u8]) -> OpenedState {
        let sealed: SealedState = match self.codec.open_json_with(state, call) {
            Ok(sealed) => sealed,
            Err(RequestStateError::Expired) => return OpenedState::Stale,
            Err(_) => return OpenedState::Forged,
        };
        let mut used = self.used.lock();
        if used.len() >= MAX_USED {
            used.retain(|_, at| at.elapsed() <= VALID_FOR);
        }
        if used.len() >= MAX_USED || used.insert(sealed.nonce, Instant::now()).is_some() {
            return OpenedState::Stale;
        }
        let age = Duration::from_millis(now_ms().saturating_sub(sealed.at));
        OpenedState::Question(sealed.asked, age)
    }
}

/// The state that a client returned.
pub(crate) enum OpenedState {
    /// It was sealed for this call this long ago, is not expired and was not used before.
    Question(QuestionPart, Duration),
    /// It was sealed for this call, but is expired or was used before. The question is asked again.
    Stale,
    /// It was not sealed for this call, or not by us.
    Forged,
}

/// The data that a sealed question is bound to: the tool and its arguments.
pub(crate) fn associated_data_of(tool: &str, arguments: &Value) -> Vec<u8> {
    format!("{tool}\n{arguments}").into_bytes()
}
