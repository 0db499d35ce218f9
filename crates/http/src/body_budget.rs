//! Limits the memory that request bodies take, of all owners together and of each.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::StatusCode;
use parking_lot::Mutex;

use crate::refusal::Refusal;

/// The part of each body that is not counted, so that large bodies of some do not keep others from small requests. The
/// number of requests limits these bytes.
const FREE_BYTES: usize = 64 << 10;

const OWNER_IS_FULL: Refusal = Refusal {
    status: StatusCode::TOO_MANY_REQUESTS,
    sentence: "Too many large requests are unfinished. Try again later, or send them one after the other.",
};

const ALL_ARE_FULL: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    sentence: "The server has too many large requests. Try again later.",
};

/// How many bytes of bodies a server keeps.
pub struct BodyBudget {
    max: usize,
    max_of_owner: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    all: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

/// The bytes of one request, until dropped.
pub struct ReservedBytes {
    budget: Arc<BodyBudget>,
    owner: Arc<str>,
    bytes: usize,
}

impl BodyBudget {
    /// For this many bytes of all owners together, and of one.
    pub fn new(max: usize, max_of_owner: usize) -> Arc<BodyBudget> {
        Arc::new(BodyBudget { max, max_of_owner, used: Mutex::default() })
    }

    /// Begins a request of this owner, without any bytes.
    pub fn begin(self: &Arc<Self>, owner: &str) -> ReservedBytes {
        ReservedBytes { budget: self.clone(), owner: owner.into(), bytes: 0 }
    }
}

impl ReservedBytes {
    /// Reserves memory for a body that has at least this many bytes.
    pub fn grow_to(&mut self, body_bytes: usize) -> Result<(), Refusal> {
        let wanted = body_bytes.saturating_sub(FREE_BYTES);
        let Some(more) = wanted.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return Ok(());
        };
        let mut used = self.budget.used.lock();
        let of_owner = used.by_owner.get(&self.owner).copied().unwrap_or_default();
        if of_owner.saturating_add(more) > self.budget.max_of_owner {
            return Err(OWNER_IS_FULL);
        }
        if used.all.saturating_add(more) > self.budget.max {
            return Err(ALL_ARE_FULL);
        }
        used.all += more;
        used.by_owner.insert(self.owner.clone(), of_owner + more);
        self.bytes = wanted;
        Ok(())
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.budget.used.lock();
        used.all -= self.bytes;
        if let Some(of_owner) = used.by_owner.get_mut(&self.owner) {
            *of_owner -= self.bytes;
            if *of_owner == 0 {
                used.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_and_all_together_have_a_limit() {
        let budget = BodyBudget::new(250, 100);
        let body = |owner: &str, bytes: usize| {
            let mut reserved = budget.begin(owner);
            reserved.grow_to(FREE_BYTES + bytes).map(|()| reserved)
        };
        let status = |owner: &str, bytes: usize| body(owner, bytes).err().map(|one| one.status);
        let a = body("a", 60).ok().unwrap();
        assert_eq!(status("a", 41), Some(StatusCode::TOO_MANY_REQUESTS));
        assert_eq!(status("a", 40), None);
        let others = ["b", "c"].map(|owner| body(owner, 90).ok().unwrap());
        assert_eq!(status("d", 11), Some(StatusCode::SERVICE_UNAVAILABLE));
        // Small bodies are not counted.
        assert_eq!(status("d", 0), None);
        drop(others);
        assert_eq!(status("d", 100), None);
        drop(a);
        assert_eq!(status("a", 100), None);
        let used = budget.used.lock();
        assert_eq!((used.all, used.by_owner.len()), (0, 0));
    }

    #[test]
    fn a_body_grows() {
        let budget = BodyBudget::new(250, 100);
        let mut reserved = budget.begin("a");
        for bytes in [0, 10, FREE_BYTES + 50, FREE_BYTES, FREE_BYTES + 100] {
            assert_eq!(reserved.grow_to(bytes), Ok(()));
        }
        assert_eq!(reserved.grow_to(FREE_BYTES + 101), Err(OWNER_IS_FULL));
        assert_eq!(budget.used.lock().all, 100);
    }
}
