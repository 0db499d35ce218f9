//! A question that waits for its answer in the hands of the client: sealed, so that it comes back as it
//! was, for the same call, soon, and once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::random_bytes;

/// A person may think for so long.
const VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// More answers than anybody gives in that time. Should there be more, all that wait become void.
const MAX_USED: usize = 10_000;

/// Seals questions, and opens each once.
pub(crate) struct Seal {
    codec: RequestStateCodec,
    used: Mutex<HashSet<[u8; 16]>>,
}

/// What was asked.
#[derive(Serialize, Deserialize)]
struct Asked {
    /// A digest of the question as it was shown, with what would change.
    question: String,
    /// Tells this question from the same one asked again.
    nonce: [u8; 16],
}

impl Seal {
    /// A seal with a key of its own, which is gone when the server is.
    pub(crate) fn new() -> Result<Seal, String> {
        let key = random_bytes::<32>().map_err(|error| error.to_string())?;
        let codec = RequestStateCodec::try_new(key).map_err(|error| error.to_string())?;
        Ok(Seal { codec, used: Mutex::default() })
    }

    /// Seals a question, by its digest, about a call.
    pub(crate) fn seal(&self, question: String, call: &[u8]) -> Option<String> {
        let asked = Asked { question, nonce: random_bytes().ok()? };
        let options = SealOptions::new().associated_data(call).ttl(VALID_FOR);
        self.codec.seal_json_with(&asked, &options).ok()
    }

    /// What comes back from a client.
    pub(crate) fn open(&self, state: &str, call: &[u8]) -> Opened {
        let asked: Asked = match self.codec.open_json_with(state, call) {
            Ok(asked) => asked,
            Err(RequestStateError::Expired) => return Opened::Void,
            Err(_) => return Opened::Forged,
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.len() < MAX_USED && used.insert(asked.nonce) {
            true => Opened::Question(asked.question),
            false => Opened::Void,
        }
    }
}

/// A sealed question that came back.
pub(crate) enum Opened {
    /// The digest of the question: it was sealed for this call, lately, and comes back for the first time.
    Question(String),
    /// It was sealed for this call, and is too old or was answered before: the question is asked anew.
    Void,
    /// It was not sealed for this call, or not by us.
    Forged,
}

/// What a sealed question is bound to: the call, with its arguments.
pub(crate) fn bound_to(tool: &str, arguments: &Value) -> Vec<u8> {
    format!("{tool}\n{arguments}").into_bytes()
}
