//! Rules files: any text is parsed or rejected, a project's rules never allow more than before, and the decision on a
//! file does not depend on how it is queried.

use std::path::PathBuf;

use toolcrib_policy::{Access, Decision, Effect, Policy, Profile, Rules, SessionApprovals};

use super::parts;

/// The parts are a rules file and a subject, which is used as a command, a path and a URL.
pub(crate) fn rules(input: &[u8]) -> String {
    let [text, subject] = parts(input);
    let (text, subject) = (String::from_utf8_lossy(text), String::from_utf8_lossy(subject));
    let rules = match Rules::parse(&text) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has a message");
            assert!(Rules::parse_restricting(&text).is_err(), "a project's rules are rules");
            return "refused".to_owned();
        }
    };
    let restricting = Rules::parse_restricting(&text);
    let path = PathBuf::from("/w/ws").join(&*subject);
    let accesses = [
        Access::Read(path.clone()),
        Access::Write(path.clone()),
        Access::Command(subject.clone().into_owned()),
        Access::Reach(subject.into_owned()),
    ];
    let mut strictest = Decision::Allow;
    for profile in Profile::ALL {
        let with_locations =
            |policy: Policy| policy.locations(vec!["/w/ws".into()], Some("/home/me".into()));
        let (before, after) = (
            with_locations(Policy::new(profile)),
            with_locations(Policy::new(profile).rules(rules.clone())),
        );
        let decide = |policy: &Policy, access: &Access| {
            policy.decide(std::slice::from_ref(access), &SessionApprovals::new()).decision
        };
        for access in &accesses {
            let decided = decide(&after, access);
            assert_eq!(decided, decide(&after, access), "the same input gives the same decision");
            if decide(&before, access) == Decision::Deny {
                assert_eq!(decided, Decision::Deny, "no rule overrides a denial of the profile");
            }
            if restricting.is_ok() {
                assert!(decided >= decide(&before, access), "a project's rules only restrict");
            }
            strictest = strictest.max(decided);
        }
        for (effect, access) in [(Effect::Read, &accesses[0]), (Effect::Write, &accesses[1])] {
            if after.denies_file(effect, &path) {
                assert!(after.denies_files(effect), "there is a rule that denies");
                assert_eq!(decide(&after, access), Decision::Deny, "tools are denied too");
            }
        }
    }
    format!("{} at most", strictest.name())
}
