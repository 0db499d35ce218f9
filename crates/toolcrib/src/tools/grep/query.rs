//! The arguments of Grep, parsed.

use std::sync::Arc;

use toolcrib_search::{
    Deadline, FileFilter, FilterError, Pattern, PatternOptions, Processes, type_names,
};
use toolcrib_text::visible_name;

use super::{Grep, OutputMode, Sort};
use crate::cx::{Cx, SearchScope};
use crate::error::{Error, ErrorKind};
use crate::helper::MatchingProcesses;
use crate::message_names::{GLOB, OUTPUT_MODE, READ};
use crate::suggest::similar_names;

/// The arguments, parsed.
pub(super) struct GrepQuery {
    pub(super) text: String,
    pub(super) pattern: Pattern,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) literal: bool,
    pub(super) ignore_case: bool,
    pub(super) scope: SearchScope,
    pub(super) filter: FileFilter,
    /// The fields of the filter that were given, in words.
    pub(super) filtered_by: &'static str,
    pub(super) mode: OutputMode,
    pub(super) sort: Sort,
    pub(super) numbers: bool,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) hidden: bool,
    pub(super) ignored: bool,
}

const MAX_LIMIT: u64 = 10_000;

impl Grep {
    pub(super) fn query(&self, cx: &Cx<'_>) -> Result<GrepQuery, Error> {
        if self.pattern.is_empty() {
            return Err(Error::invalid("`pattern` is empty").hint(format!(
                "It matches every line; to see a file use {READ}, to list files use {GLOB}."
            )));
        }
        let mode = self.output_mode;
        let usual_sort = match mode {
            OutputMode::FilesWithMatches => Sort::Relevance,
            OutputMode::Content | OutputMode::Count | OutputMode::Definitions => Sort::Path,
        };
        let context = self.context;
        let processes = MatchingProcesses::of(cx);
        Ok(GrepQuery {
            text: self.pattern.clone(),
            pattern: self.ready(cx, &processes)?,
            processes,
            literal: self.literal,
            ignore_case: self.ignore_case,
            scope: cx.search_scope(self.path())?,
            filter: self.filter()?,
            filtered_by: match (&self.glob, &self.file_type) {
                (Some(_), Some(_)) => "glob and type",
                (None, Some(_)) => "type",
                (_, None) => "glob",
            },
            mode,
            sort: self.sort.unwrap_or(usual_sort),
            numbers: self.line_numbers,
            before: self.before.unwrap_or(context),
            after: self.after.unwrap_or(context),
            limit: match self.head_limit {
                0 => MAX_LIMIT,
                limit => limit,
            },
            offset: self.offset,
            hidden: self.hidden,
            ignored: self.ignored,
        })
    }

    fn ready(&self, cx: &Cx<'_>, processes: &Arc<dyn Processes>) -> Result<Pattern, Error> {
        let is_name = self.output_mode == OutputMode::Definitions;
        if is_name && !may_be_name(&self.pattern) {
            let shown = visible_name(self.pattern.as_bytes());
            return Err(Error::invalid(format!("`pattern`: {shown} is not a name")).hint(format!(
                "{OUTPUT_MODE} definitions takes a name such as Type::method, not a regex."
            )));
        }
        let wanted = PatternOptions {
            pattern: if is_name { last_name(&self.pattern) } else { &self.pattern },
            literal: self.literal || is_name,
            ignore_case: self.ignore_case && !is_name,
            multiline: self.multiline && !is_name,
        };
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let stop = Deadline::new(cx.search_deadline(), &cancelled);
        Pattern::new(wanted, processes, &stop).map_err(|error| {
            Error::new(ErrorKind::Limit, format!("`pattern`: {error}"))
                .hint("Use fewer repetitions, or search for a part of it.")
        })
    }

    fn filter(&self) -> Result<FileFilter, Error> {
        let given = |field: &Option<String>| field.clone().filter(|text| !text.trim().is_empty());
        let (glob, file_type) = (given(&self.glob), given(&self.file_type));
        FileFilter::new(glob.as_deref(), file_type.as_deref()).map_err(|error| match error {
            FilterError::Type => unknown_type(file_type.as_deref().unwrap_or_default()),
            FilterError::Glob(glob, error) => {
                let glob = visible_name(glob.as_bytes());
                Error::invalid(format!("`glob`: {glob} is not a valid glob: {error}"))
                    .hint("Use one such as \"*.ts\", \"src/**/*.{c,h}\" or \"*.rs, !*_test.rs\".")
            }
        })
    }
}

/// The last name of a qualified name. Files without it have no such definition.
pub(super) fn last_name(name: &str) -> &str {
    let name = name.trim().trim_end_matches("()");
    let last = name.rsplit([':', '.', '#', ' ', '/', '\\']).next().unwrap_or(name);
    if last.is_empty() { name } else { last }
}

/// Whether a text can be the name of a definition, and is not a regex.
fn may_be_name(text: &str) -> bool {
    let name = text.trim().trim_end_matches("()");
    name.contains("operator") || !name.contains(['*', '+', '[', ']', '(', ')', '{', '}', '|', '^'])
}

fn unknown_type(name: &str) -> Error {
    let names = type_names();
    let like = similar_names(name, names.iter().map(String::as_str), 3);
    let name = visible_name(name.as_bytes());
    let hint = match like.as_slice() {
        [] => format!("Use glob instead, such as \"*.{name}\"."),
        like => format!("Similar types: {}. Or use glob, such as \"*.{name}\".", like.join(", ")),
    };
    Error::invalid(format!("`type`: {name} is not a known file type")).hint(hint)
}
