//! From what a call says it touches to the permission to touch just that.

use std::path::Path;

use toolcrib_fs::Place;
use toolcrib_policy::{Access, Decision, Effect, Verdict};

use crate::approve::{Answer, Question};
use crate::call::Options;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::session::Session;

/// What a call may touch: what it said, where that really is.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Vec<Granted>,
}

/// One access, as the tool said it and where it leads.
#[derive(Debug)]
struct Granted {
    said: Access,
    place: Option<Place>,
}

impl Grant {
    /// Finds the real place of everything that a call touches.
    pub(crate) fn resolve(
        runtime: &Runtime,
        session: &Session,
        accesses: Vec<Access>,
    ) -> Result<Grant, Error> {
        let granted = accesses.into_iter().map(|said| {
            let place = said.path().map(|path| resolve(runtime, session, path)).transpose()?;
            Ok(Granted { said, place })
        });
        Ok(Grant { granted: granted.collect::<Result<_, Error>>()? })
    }

    /// The accesses on real paths, as policies and people see them.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let real = |granted: &Granted| match &granted.place {
            Some(place) => granted.said.at(place.path()),
            None => granted.said.clone(),
        };
        self.granted.iter().map(real).collect()
    }

    /// The place that `path` means, if the call said that it would touch it in this way. A write
    /// covers reading; a directory covers what is beneath it.
    pub(crate) fn place(
        &self,
        runtime: &Runtime,
        session: &Session,
        effect: Effect,
        path: &Path,
    ) -> Result<Place, Error> {
        let covers = |granted: &&Granted| granted.said.effect() >= effect;
        let same = |granted: &&Granted| granted.said.path() == Some(path);
        if let Some(Granted { place: Some(place), .. }) =
            self.granted.iter().filter(covers).find(same)
        {
            return Ok(place.clone());
        }
        let place = resolve(runtime, session, path)?;
        let around = |granted: &Granted| granted.place.as_ref().is_some_and(|p| place.is_within(p));
        if self.granted.iter().filter(covers).any(around) {
            return Ok(place);
        }
        let what = effect.name();
        let message = format!(
            "the tool wanted to {what} {}, and had not said so before it began",
            path.display()
        );
        Err(Error::new(ErrorKind::Denied, message)
            .hint("This is a fault of the tool, not of the call. Nothing was touched."))
    }
}

/// Whether the policy, or somebody who is asked, lets the call go on; with the verdict, for the
/// record. `preview` finds out what would change; it is run only if somebody is to be asked.
pub(crate) fn permit(
    runtime: &Runtime,
    session: &Session,
    tool: &str,
    accesses: &[Access],
    options: Options<'_>,
    preview: impl FnOnce() -> Result<Option<Reply>, Error>,
) -> (Verdict, Result<(), Error>) {
    let decide = || runtime.policy().decide(accesses, &session.remembered());
    let mut verdict = decide();
    let mut turn = None;
    if verdict.decision == Decision::Ask {
        // While this call waits for its turn, the answer to another one may settle it.
        turn = Some(session.asking());
        verdict = decide();
    }
    let permitted = match verdict.decision {
        Decision::Allow => Ok(()),
        Decision::Deny => Err(denied(tool, &verdict, "")),
        Decision::Ask => preview().and_then(|preview| {
            let (rule, why) = (verdict.rule.as_str(), verdict.why.as_str());
            let question = Question { tool, accesses, rule, why, preview: preview.as_ref() };
            match options.approver.ask(&question) {
                Answer::Allow => Ok(()),
                Answer::AllowForSession => {
                    session.remember(accesses.iter().map(Access::effect));
                    Ok(())
                }
                Answer::Deny(word) => {
                    Err(denied(tool, &verdict, &format!("the answer was no. {word}")))
                }
                Answer::NobodyThere => Err(denied(tool, &verdict, "there is nobody here to ask.")),
            }
        }),
    };
    drop(turn);
    (verdict, permitted)
}

fn resolve(runtime: &Runtime, session: &Session, path: &Path) -> Result<Place, Error> {
    if runtime.absolute_paths() && path.is_relative() && !path.as_os_str().is_empty() {
        let absolute = session.directory().path().join(path);
        return Err(Error::invalid(format!("the path {} is not absolute", path.display()))
            .hint(format!("Use {} if that is what you mean.", absolute.display())));
    }
    runtime.workspace().resolve(session.directory(), path).map_err(|error| {
        // As the caller spelled it: for what lies outside, nothing more may be told.
        let shown = toolcrib_text::visible(error.path().as_os_str().as_encoded_bytes());
        Error::from_fs(&shown, &error)
    })
}

fn denied(tool: &str, verdict: &Verdict, because: &str) -> Error {
    let because = because.trim();
    let end = if because.is_empty() { ".".to_owned() } else { format!(", and {because}") };
    let message = format!("{tool} was not allowed: {}{end}", verdict.why);
    let hint = format!(
        "Rule: {}. Nothing was done. Do not look for a way around it; the operator can allow it with {}.",
        verdict.rule, verdict.remedy
    );
    Error::new(ErrorKind::Denied, message).hint(hint).with("rule", verdict.rule.clone())
}
