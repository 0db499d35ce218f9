//! From what a call touches to allow, ask or deny, with the rule that decided and its why.

use std::collections::BTreeSet;

use crate::access::{Access, Effect};
use crate::profile::Profile;

/// What may happen. The strictest of several wins: deny beats ask beats allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Goes ahead.
    Allow,
    /// Goes ahead if somebody says so.
    Ask,
    /// Does not happen.
    Deny,
}

impl Decision {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// A decision with what a reader needs to understand it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What may happen.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// Why that rule says so.
    pub why: String,
    /// The setting that would decide otherwise; empty where nothing is refused.
    pub remedy: String,
}

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    profile: Profile,
}

impl Policy {
    /// The rules of a profile.
    pub fn new(profile: Profile) -> Self {
        Policy { profile }
    }

    /// Decides on a call by all that it touches. `remembered` holds the effects that somebody has
    /// allowed for the whole session: they turn an ask into an allow, never a deny.
    pub fn decide(&self, accesses: &[Access], remembered: &BTreeSet<Effect>) -> Verdict {
        accesses
            .iter()
            .map(|access| self.decide_one(access.effect(), remembered))
            .max_by_key(|verdict| verdict.decision)
            .unwrap_or_else(|| Verdict {
                decision: Decision::Allow,
                rule: "touches-nothing".to_owned(),
                why: "the call touches nothing outside itself".to_owned(),
                remedy: String::new(),
            })
    }

    fn decide_one(&self, effect: Effect, remembered: &BTreeSet<Effect>) -> Verdict {
        let profile = self.profile;
        let decision = profile.decision(effect);
        if decision == Decision::Ask && remembered.contains(&effect) {
            return Verdict {
                decision: Decision::Allow,
                rule: format!("session:{}", effect.name()),
                why: "allowed for this session by an earlier answer".to_owned(),
                remedy: String::new(),
            };
        }
        let what = match effect {
            Effect::Read => "reading in the workspace",
            Effect::Write => "changing files of the workspace",
            Effect::Reach => "acting outside the workspace",
        };
        let does = match decision {
            Decision::Allow => "allows",
            Decision::Ask => "asks before",
            Decision::Deny => "does not allow",
        };
        let looser = Profile::ALL.into_iter().skip_while(|other| *other != profile).skip(1);
        let remedy = looser
            .filter(|_| decision != Decision::Allow)
            .find(|profile| profile.decision(effect) == Decision::Allow)
            .map_or(String::new(), |profile| format!("profile = \"{profile}\""));
        Verdict {
            decision,
            rule: format!("profile:{profile}:{}", effect.name()),
            why: format!("the profile `{profile}` {does} {what}"),
            remedy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(profile: Profile, accesses: &[Access]) -> Decision {
        Policy::new(profile).decide(accesses, &BTreeSet::new()).decision
    }

    #[test]
    fn each_profile_decides_as_its_row_of_the_table_says() {
        use Decision::{Allow, Ask, Deny};
        let table = [
            (Profile::ReadOnly, [Allow, Deny, Deny]),
            (Profile::Cautious, [Ask, Ask, Ask]),
            (Profile::Workspace, [Allow, Allow, Ask]),
            (Profile::Open, [Allow, Allow, Allow]),
        ];
        let accesses =
            [Access::Read("a".into()), Access::Write("a".into()), Access::Reach("x".into())];
        for (profile, row) in table {
            let decided = accesses.clone().map(|access| decide(profile, &[access]));
            assert_eq!(decided, row, "{profile}");
        }
    }

    #[test]
    fn the_strictest_access_decides() {
        let accesses = [Access::Read("a".into()), Access::Write("b".into())];
        assert_eq!(decide(Profile::ReadOnly, &accesses), Decision::Deny);
        assert_eq!(decide(Profile::ReadOnly, &[]), Decision::Allow);
    }

    #[test]
    fn a_remembered_answer_turns_ask_into_allow_but_not_deny() {
        let remembered = BTreeSet::from([Effect::Write]);
        let write = [Access::Write("a".into())];
        let verdict = |profile| Policy::new(profile).decide(&write, &remembered).decision;
        assert_eq!(verdict(Profile::Cautious), Decision::Allow);
        assert_eq!(verdict(Profile::ReadOnly), Decision::Deny);
    }

    #[test]
    fn a_refusal_names_the_rule_and_what_would_allow_it() {
        let verdict =
            Policy::new(Profile::ReadOnly).decide(&[Access::Write("a".into())], &BTreeSet::new());
        assert_eq!(verdict.rule, "profile:read-only:write");
        assert_eq!(verdict.remedy, "profile = \"workspace\"");
    }
}
