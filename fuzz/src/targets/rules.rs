//! Files of rules: any text is parsed or refused, the rules of a project never allow more than there was before, and
//! the answer for one file is the same however it is asked for.

use std::path::PathBuf;

use toolcrib_policy::{Access, Decision, Effect, Policy, Profile, Rules, SessionApprovals};

use super::parts;

/// A file of rules, and what they decide on: a command, a path and an address at once.
pub(crate) fn rules(input: &[u8]) -> String {
    let [text, subject] = parts(input);
    let (text, subject) = (String::from_utf8_lossy(text), String::from_utf8_lossy(subject));
    let rules = match Rules::parse(&text) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal says why");
            assert!(Rules::parse_narrowing(&text).is_err(), "a project's rules are rules");
            return "refused".to_owned();
        }
    };
    let narrowing = Rules::parse_narrowing(&text);
    let path = PathBuf::from("/w/ws").join(&*subject);
    let accesses = [
        Access::Read(path.clone()),
        Access::Write(path.clone()),
        Access::Command(subject.clone().into_owned()),
        Access::Reach(subject.into_owned()),
    ];
    let mut strictest = Decision::Allow;
    for profile in Profile::ALL {
        let places = |policy: Policy| policy.places(vec!["/w/ws".into()], Some("/home/me".into()));
        let (before, after) =
            (places(Policy::new(profile)), places(Policy::new(profile).rules(rules.clone())));
        let decide = |policy: &Policy, access: &Access| {
            policy.decide(std::slice::from_ref(access), &SessionApprovals::new()).decision
        };
        for access in &accesses {
            let decided = decide(&after, access);
            assert_eq!(decided, decide(&after, access), "the same question, the same answer");
            if decide(&before, access) == Decision::Deny {
                assert_eq!(decided, Decision::Deny, "no rule opens what the profile denies");
            }
            if narrowing.is_ok() {
                assert!(decided >= decide(&before, access), "a project's rules only narrow");
            }
            strictest = strictest.max(decided);
        }
        for (effect, access) in [(Effect::Read, &accesses[0]), (Effect::Write, &accesses[1])] {
            if after.denies_file(effect, &path) {
                assert!(after.denies_files(effect), "there is a rule that denies");
                assert_eq!(decide(&after, access), Decision::Deny, "and tools are denied, too");
            }
        }
    }
    format!("{} at most", strictest.name())
}
