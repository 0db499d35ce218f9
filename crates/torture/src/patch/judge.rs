//! Compares our result of a patch with those of two other programs.

use super::ours::Outcome;

/// A verdict on a patch whose right result is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) name: String,
    pub(super) weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// No problem.
    Fine,
    /// Needs review.
    Odd,
    /// Both other programs agree on another result.
    Wrong,
}

/// Judges our result by those of two other programs.
pub(super) fn judge(ours: &Outcome, others: [&Outcome; 2]) -> Verdict {
    let applied: Vec<_> = others.into_iter().filter(|one| is_applied(one)).collect();
    let (name, weight) = match (ours, &applied[..]) {
        (Outcome::Refused(refusal), others) => {
            let they = match others {
                [] => "both refuse",
                [_] => "one applies",
                [one, other] if one == other => "both apply alike",
                _ => "both apply, with different results",
            };
            (format!("refused ({}): {they}", refusal.kind), Weight::Fine)
        }
        (_, []) => ("applied: both refuse".to_owned(), Weight::Odd),
        (ours, [one]) if ours == *one => ("applied: as the one that does".to_owned(), Weight::Fine),
        (_, [_]) => ("applied: not as the one that does".to_owned(), Weight::Odd),
        (ours, [one, other]) if one == other => {
            if ours == *one {
                ("applied: as both".to_owned(), Weight::Fine)
            } else {
                ("WRONG: both agree on another result".to_owned(), Weight::Wrong)
            }
        }
        (ours, others) => {
            if others.contains(&ours) {
                ("applied: as one of two that differ".to_owned(), Weight::Odd)
            } else {
                ("applied: as neither of two that differ".to_owned(), Weight::Odd)
            }
        }
    };
    Verdict { name, weight }
}

fn is_applied(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Applied(_))
}

#[cfg(test)]
mod tests {
    use super::super::ours::Refusal;
    use super::super::tree::{File, Tree};
    use super::*;

    fn applied(text: &str) -> Outcome {
        let file = File { executable: false, bytes: text.into() };
        Outcome::Applied(Tree([(b"f".to_vec(), file)].into()))
    }

    fn refused() -> Outcome {
        Outcome::Refused(Refusal { kind: "no_match".into(), message: String::new() })
    }

    #[track_caller]
    fn judged(ours: &Outcome, others: [&Outcome; 2], name: &str, weight: Weight) {
        assert_eq!(judge(ours, others), Verdict { name: name.into(), weight });
    }

    #[test]
    fn only_two_equal_results_make_ours_wrong() {
        let (a, b, c, no) = (&applied("a"), &applied("b"), &applied("c"), &refused());
        judged(a, [a, a], "applied: as both", Weight::Fine);
        judged(a, [b, b], "WRONG: both agree on another result", Weight::Wrong);
        judged(a, [b, a], "applied: as one of two that differ", Weight::Odd);
        judged(a, [b, c], "applied: as neither of two that differ", Weight::Odd);
        judged(a, [no, a], "applied: as the one that does", Weight::Fine);
        judged(a, [b, no], "applied: not as the one that does", Weight::Odd);
        judged(a, [no, no], "applied: both refuse", Weight::Odd);
        judged(no, [no, no], "refused (no_match): both refuse", Weight::Fine);
        judged(no, [a, a], "refused (no_match): both apply alike", Weight::Fine);
        judged(no, [a, b], "refused (no_match): both apply, with different results", Weight::Fine);
        judged(no, [a, no], "refused (no_match): one applies", Weight::Fine);
    }
}
