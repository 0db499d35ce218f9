//! `toolcrib store approvals`, `approve` and `deny`: the approval questions in the store.

use std::process::ExitCode;

use serde_json::json;
use toolcrib_store::{
    ApprovalAnswer, GivenApproval, OpenApproval, StoreUrl, answer_approval, open_approvals,
};

use crate::args::Common;
use crate::host_name::host_name;
use crate::output::{self, one_line};

/// Lists the questions that wait.
pub(super) fn list(common: &Common, url: &StoreUrl) -> Result<ExitCode, String> {
    let open = open_approvals(url).map_err(|error| error.to_string())?;
    let as_json = |one: &OpenApproval| {
        json!({
            "id": one.id,
            "tenant": one.tenant,
            "workspace": one.workspace,
            "node": one.node,
            "caller": one.caller,
            "question": one.question,
            "rule": one.rule,
            "waits_seconds": one.waits,
            "expires_in_seconds": one.expires_in,
        })
    };
    if output::for_people(common) {
        output::lines(&open, shown, "No question waits for an answer.");
    } else {
        output::json_list("approvals", &open, as_json);
    }
    Ok(ExitCode::SUCCESS)
}

/// A question for people. Its lines are indented, so that none can imitate the first line of another question.
fn shown(one: &OpenApproval) -> String {
    let caller = one.caller.as_deref().map(|caller| format!(" for {}", one_line(caller)));
    let mut text = format!(
        "{}  {} {}, asked {} s ago on {}{}, ends in {} s",
        one_line(&one.id),
        one_line(&one.tenant),
        one_line(&one.workspace),
        one.waits,
        one_line(&one.node),
        caller.unwrap_or_default(),
        one.expires_in
    );
    for question in output::plain(one.question.trim_end()).lines() {
        text += &format!("\n    {question}");
    }
    text
}

/// Answers a question.
pub(super) fn answer(
    common: &Common,
    url: &StoreUrl,
    id: &str,
    (allows, message): (bool, Option<&str>),
) -> Result<ExitCode, String> {
    let user = std::env::var("USER").unwrap_or_default();
    let by = format!("{user}@{}", host_name());
    let message = message.map(str::trim).filter(|message| !message.is_empty());
    let answer = ApprovalAnswer { allows, by, message: message.map(str::to_owned) };
    let given = answer_approval(url, id, &answer).map_err(|error| error.to_string())?;
    let word = |allows: bool| if allows { "yes" } else { "no" };
    let (result, before) = match &given {
        GivenApproval::Settled => ("settled", None),
        GivenApproval::Before(before) => ("answered_before", Some(before)),
        GivenApproval::Over => ("over", None),
        GivenApproval::Unknown => ("unknown", None),
    };
    if output::for_people(common) {
        output::answer(&match &given {
            GivenApproval::Settled if allows => format!("{id} is allowed, once."),
            GivenApproval::Settled => format!("{id} is denied."),
            GivenApproval::Before(before) => {
                format!("{id} was answered before: {}, by {}.", word(before.allows), before.by)
            }
            GivenApproval::Over => {
                format!("{id} has ended without an answer: its call was denied, or needs none.")
            }
            GivenApproval::Unknown => format!(
                "This tenant has no question {id}. `toolcrib store approvals` lists those that wait."
            ),
        });
    } else {
        let before = before.map(|before| json!({"answer": word(before.allows), "by": before.by}));
        let report = json!({"id": id, "result": result, "before": before});
        output::answer(&report.to_string());
    }
    let is_done = given == GivenApproval::Settled;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
