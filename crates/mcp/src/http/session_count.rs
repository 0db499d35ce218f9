//! Counts the sessions of a server, so that one caller cannot take all of them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib::Principal;

/// Who a session belongs to, on a server that identifies callers.
pub(super) type Owner = Option<Arc<Principal>>;

/// The maximum number of sessions of all workspaces.
pub(super) const MAX_SESSIONS: usize = 4_096;

/// The maximum number of sessions of one caller in all workspaces.
pub(super) const MAX_OF_CALLER: usize = 512;

/// The sessions of all workspaces.
#[derive(Default)]
pub(super) struct SessionCount {
    of_owners: Mutex<HashMap<Owner, usize>>,
}

/// A session that counts until dropped.
pub(super) struct CountedSession {
    all: Arc<SessionCount>,
    owner: Owner,
}

impl SessionCount {
    /// Whether an owner can have no more sessions.
    pub(super) fn is_full(&self, owner: &Owner) -> bool {
        is_full(&self.of_owners.lock(), owner)
    }

    /// Counts a session. `None` if its owner can have no more.
    pub(super) fn add(self: &Arc<Self>, owner: &Owner) -> Option<CountedSession> {
        let mut of_owners = self.of_owners.lock();
        if is_full(&of_owners, owner) {
            return None;
        }
        *of_owners.entry(owner.clone()).or_default() += 1;
        drop(of_owners);
        Some(CountedSession { all: self.clone(), owner: owner.clone() })
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.of_owners.lock().values().sum()
    }
}

fn is_full(of_owners: &HashMap<Owner, usize>, owner: &Owner) -> bool {
    let own = of_owners.get(owner).copied().unwrap_or_default();
    (owner.is_some() && own >= MAX_OF_CALLER) || of_owners.values().sum::<usize>() >= MAX_SESSIONS
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        let mut of_owners = self.all.of_owners.lock();
        if let Some(count) = of_owners.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                of_owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_take_all_sessions() {
        let all = Arc::new(SessionCount::default());
        let owner = |subject: &str| -> Owner {
            let (issuer, subject) = ("i".to_owned(), subject.to_owned());
            Some(Arc::new(Principal { issuer, subject }))
        };
        let mut held: Vec<_> = (0..MAX_OF_CALLER).map(|_| all.add(&owner("a")).unwrap()).collect();
        assert!(all.is_full(&owner("a")) && all.add(&owner("a")).is_none());
        assert!(!all.is_full(&owner("b")) && !all.is_full(&None));
        held.pop();
        held.push(all.add(&owner("a")).unwrap());
        held.extend((MAX_OF_CALLER..MAX_SESSIONS).map(|_| all.add(&None).unwrap()));
        assert!(all.add(&None).is_none() && all.add(&owner("b")).is_none());
        held.clear();
        assert_eq!(all.total(), 0);
        assert!(all.of_owners.lock().is_empty());
    }
}
