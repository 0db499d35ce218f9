//! A question that waits for its answer in the hands of the client: sealed, so that it comes back as it
//! was, for the same call, soon, and once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::random_bytes;

use crate::approve::Asked;

/// A person may think for so long.
const VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// More answers than anybody gives in that time. Should there be more, further ones are void until then.
const MAX_USED: usize = 10_000;

/// Seals questions, and opens each once.
pub(crate) struct Seal {
    codec: RequestStateCodec,
    /// Those that came back, and when.
    used: Mutex<HashMap<[u8; 16], Instant>>,
}

/// What is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    asked: Asked,
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

    /// Seals a question about a call.
    pub(crate) fn seal(&self, asked: Asked, call: &[u8]) -> Option<String> {
        let asked = Sealed { asked, nonce: random_bytes().ok()? };
        let options = SealOptions::new().associated_data(call).ttl(VALID_FOR);
        self.codec.seal_json_with(&asked, &options).ok()
    }

    /// What comes back from a client.
    pub(crate) fn open(&self, state: &str, call: &[u8]) -> Opened {
        let sealed: Sealed = match self.codec.open_json_with(state, call) {
            Ok(sealed) => sealed,
            Err(RequestStateError::Expired) => return Opened::Void,
            Err(_) => return Opened::Forged,
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED {
            used.retain(|_, at| at.elapsed() <= VALID_FOR);
        }
        if used.len() >= MAX_USED || used.insert(sealed.nonce, Instant::now()).is_some() {
            return Opened::Void;
        }
        Opened::Question(sealed.asked)
    }
}

/// A sealed question that came back.
pub(crate) enum Opened {
    /// It was sealed for this call, lately, and comes back for the first time.
    Question(Asked),
    /// It was sealed for this call, and is too old or was answered before: the question is asked anew.
    Void,
    /// It was not sealed for this call, or not by us.
    Forged,
}

/// What a sealed question is bound to: the call, with its arguments.
pub(crate) fn bound_to(tool: &str, arguments: &Value) -> Vec<u8> {
    format!("{tool}\n{arguments}").into_bytes()
}
