//! Errors about a missing argument that is one of some words.

use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap_complete::Shell;

use super::Client;

/// The error, with the names of the clients or of the shells if one is missing. The parser names them only if a name
/// is wrong.
pub(crate) fn with_known_values(mut error: clap::Error) -> clap::Error {
    let tip = [("<CLIENT>", tip::<Client>("clients")), ("<SHELL>", tip::<Shell>("shells"))]
        .into_iter()
        .find_map(|(argument, tip)| is_missing(&error, argument).then_some(tip));
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn is_missing(error: &clap::Error, argument: &str) -> bool {
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing))
            if missing.iter().any(|one| one == argument))
}

fn tip<Value: ValueEnum>(what: &str) -> String {
    let values = Value::value_variants().iter().filter_map(Value::to_possible_value);
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    format!("the {what} are {}", names.join(", "))
}
