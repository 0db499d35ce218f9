//! The statements about approval questions. Each is about the rows of the tenant who has signed in, even for a role that may
//! see more.

use crate::connection::{Connection, Row, column, number};
use crate::error::StoreError;

/// A question for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    /// The name of the workspace in the store.
    pub workspace: String,
    /// A digest of everything that the answer covers, in 64 hexadecimal digits.
    pub digest: String,
    /// Who makes the call, for people.
    pub caller: Option<String>,
    /// The text of the question. Control characters in it must be escaped.
    pub question: String,
    /// The rule that would always allow the call.
    pub rule: Option<String>,
    /// How long it can be answered, and its answer can be used.
    pub seconds: u64,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Whether it allows the call.
    pub allows: bool,
    /// Who gave it, for people.
    pub by: String,
    /// A message to the agent.
    pub message: Option<String>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApproval {
    /// The id for `answer`: the number, and the beginning of the digest.
    pub id: String,
    /// The tenant.
    pub tenant: String,
    /// The name of the workspace.
    pub workspace: String,
    /// The machine that asked first.
    pub node: String,
    /// Who makes the call.
    pub caller: Option<String>,
    /// The text of the question.
    pub question: String,
    /// The rule that would always allow the call.
    pub rule: Option<String>,
    /// Since when it waits, in seconds.
    pub waits: u64,
    /// When it ends, in seconds.
    pub expires_in: u64,
}

/// What holds after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Whether this answer settled the question.
    pub(crate) has_won: bool,
    /// Whether the question and its answer have ended.
    pub(crate) is_over: bool,
    pub(crate) answer: Option<ApprovalAnswer>,
    pub(crate) used_by: Option<String>,
}

/// How a followed question is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) id: i64,
    pub(crate) is_answered: bool,
    pub(crate) used_by: Option<String>,
    pub(crate) is_over: bool,
}

/// Digits of the digest in the id of a question.
const ID_DIGITS: usize = 8;

/// Questions of a list: together they are far below the limit of a result.
const MAX_LISTED: &str = "200";

/// The id of a question for people: its number and the beginning of its digest, so that a wrong number answers nothing.
pub(crate) fn shown_id(id: i64, digest: &str) -> String {
    format!("{id}-{}", digest.get(..ID_DIGITS).unwrap_or(digest))
}

/// The number and the beginning of the digest in an id.
pub(crate) fn parse_id(id: &str) -> Option<(i64, &str)> {
    let (number, digest) = id.split_once('-')?;
    let is_digest = (ID_DIGITS..=64).contains(&digest.len())
        && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((number.parse().ok()?, digest)).filter(|_| is_digest)
}

/// Asks a question, or finds the same one. Returns its number and whether it has an answer.
pub(crate) fn ask(
    connection: &mut Connection,
    new: &NewApproval,
    node: &str,
) -> Result<(i64, bool), StoreError> {
    let rows = connection.query_with(
        "SELECT id, is_answered FROM toolcrib.ask($1, $2, $3, $4, $5, $6, $7::integer)",
        &[
            Some(&new.workspace),
            Some(&new.digest),
            Some(node),
            new.caller.as_deref(),
            Some(&new.question),
            new.rule.as_deref(),
            Some(&new.seconds.to_string()),
        ],
    )?;
    let row = rows.first().ok_or_else(|| StoreError::connection("the server sent no question"))?;
    Ok((number(row, 0)?, is_true(row, 1)?))
}

/// Gives an answer, unless there is one; with `for_call` also uses the answer for this call. `None` if there is no such question.
pub(crate) fn answer(
    connection: &mut Connection,
    (id, digest): (i64, &str),
    given: Option<&ApprovalAnswer>,
    for_call: Option<&str>,
) -> Result<Option<Answered>, StoreError> {
    let word = given.map(|given| if given.allows { "yes" } else { "no" });
    let rows = connection.query_with(
        "SELECT has_won, is_over, answer, answered_by, message, used_by FROM toolcrib.answer($1::bigint, $2, $3, $4, $5, $6)",
        &[
            Some(&id.to_string()),
            Some(digest),
            word,
            given.map(|given| given.by.as_str()),
            given.and_then(|given| given.message.as_deref()),
            for_call,
        ],
    )?;
    let Some(row) = rows.first() else { return Ok(None) };
    let text = |at: usize| row.get(at).cloned().flatten();
    let answer = text(2).map(|word| ApprovalAnswer {
        allows: word == "yes",
        by: text(3).unwrap_or_default(),
        message: text(4),
    });
    let (has_won, is_over) = (is_true(row, 0)?, is_true(row, 1)?);
    Ok(Some(Answered { has_won, is_over, answer, used_by: text(5) }))
}

/// Lets the same call use the answer, since this one was cancelled.
pub(crate) fn give_back(
    connection: &mut Connection,
    id: i64,
    call: &str,
) -> Result<(), StoreError> {
    let statement = "SELECT toolcrib.give_back_answer($1::bigint, $2)";
    connection.query(statement, &[&id.to_string(), call]).map(drop)
}

/// Ends a question that needs no answer any more.
pub(crate) fn withdraw(connection: &mut Connection, id: i64) -> Result<(), StoreError> {
    connection.query("SELECT toolcrib.withdraw($1::bigint)", &[&id.to_string()]).map(drop)
}

/// How these questions are. Those that the store does not have are missing.
pub(crate) fn followed(
    connection: &mut Connection,
    ids: &[i64],
) -> Result<Vec<Followed>, StoreError> {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let rows = connection.query(
        "SELECT id, answer IS NOT NULL, used_by, expires <= clock_timestamp() FROM toolcrib.approvals \
         WHERE tenant = session_user AND id = ANY($1::bigint[])",
        &[&format!("{{{}}}", ids.join(","))],
    )?;
    let one = |row: &Row| {
        Ok(Followed {
            id: number(row, 0)?,
            is_answered: is_true(row, 1)?,
            used_by: row.get(2).cloned().flatten(),
            is_over: is_true(row, 3)?,
        })
    };
    rows.iter().map(one).collect()
}

/// Listens to answers for this tenant.
pub(crate) fn listen(connection: &mut Connection) -> Result<(), StoreError> {
    let rows = connection.query("SELECT toolcrib.approvals_channel()", &[])?;
    let channel = rows.first().map(|row| column(row, 0)).transpose()?.unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if channel.is_empty() || !channel.bytes().all(is_name) {
        return Err(StoreError::connection("the server sent no channel"));
    }
    connection.batch(&format!("LISTEN {channel}"))
}

/// The questions that wait, oldest first: those that the role sees.
pub(crate) fn open(connection: &mut Connection) -> Result<Vec<OpenApproval>, StoreError> {
    let statement = format!(
        "SELECT id, digest, tenant, workspace, node, caller, question, rule, \
         floor(extract(epoch FROM clock_timestamp() - asked))::bigint, \
         ceil(extract(epoch FROM expires - clock_timestamp()))::bigint \
         FROM toolcrib.approvals WHERE answer IS NULL AND expires > clock_timestamp() ORDER BY id LIMIT {MAX_LISTED}"
    );
    let rows = connection.query(&statement, &[])?;
    let one = |row: &Row| {
        let text = |at: usize| row.get(at).cloned().flatten();
        Ok(OpenApproval {
            id: shown_id(number(row, 0)?, column(row, 1)?),
            tenant: column(row, 2)?.to_owned(),
            workspace: column(row, 3)?.to_owned(),
            node: column(row, 4)?.to_owned(),
            caller: text(5),
            question: column(row, 6)?.to_owned(),
            rule: text(7),
            waits: number(row, 8).unwrap_or(0),
            expires_in: number(row, 9).unwrap_or(0),
        })
    };
    rows.iter().map(one).collect()
}

fn is_true(row: &Row, at: usize) -> Result<bool, StoreError> {
    Ok(column(row, at)? == "t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_number_and_the_beginning_of_the_digest() {
        let digest = "0123456789abcdef".repeat(4);
        assert_eq!(shown_id(17, &digest), "17-01234567");
        assert_eq!(parse_id("17-01234567"), Some((17, "01234567")));
        for wrong in ["", "17", "17-", "17-0123456", "x-01234567", "17-0123456g", "17-01234567-1"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
        assert_eq!(parse_id(&format!("1-{}", "a".repeat(65))), None);
    }
}
