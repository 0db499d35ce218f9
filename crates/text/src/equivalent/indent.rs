//! Maps the indentation of a sought text to that of the file, by one rule for all lines.

use std::collections::BTreeSet;
use std::ops::Range;

use super::required_literal::WHITESPACE;

/// A mapping of indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reindent {
    /// Each indentation of the sought text, with the first corresponding one in the file.
    known: Vec<(String, String)>,
    rule: Rule,
}

/// The rule for indentations that only the new text has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// The file has this additional prefix.
    Add(String),
    /// The file lacks this prefix.
    Remove(String),
    /// Both have the same columns if a tab has this width. The file uses tabs, or spaces.
    Columns { tab: usize, tabs: bool },
    /// `file` characters for each `wanted` characters, relative to the first known pair.
    Scale { file: usize, wanted: usize },
}

/// Tab widths that editors use.
const TAB_WIDTHS: [usize; 8] = [4, 8, 2, 3, 1, 5, 6, 7];

impl Reindent {
    /// The mapping from the sought lines' indentation to that of the file's lines. `None` if there is no
    /// single rule. Blank lines are disregarded.
    pub(crate) fn between(
        text: &[u8],
        wanted: &[impl AsRef<str>],
        file: &[Range<usize>],
    ) -> Option<Reindent> {
        let mut pairs = Vec::new();
        let skipped = usize::from(starts_after_indent(text, file));
        for (wanted, range) in wanted.iter().map(AsRef::as_ref).zip(file).skip(skipped) {
            let indent = indent_of(wanted);
            if indent.len() < wanted.len() {
                let line = text.get(range.clone())?;
                pairs.push((indent, std::str::from_utf8(&line[..leading_whitespace(line)]).ok()?));
            }
        }
        let rule = rule_of(&pairs)?;
        // A first line without indentation does not show how far the others are shifted.
        if skipped > 0 && !matches!(rule, Rule::Columns { .. }) {
            return None;
        }
        let mut known: Vec<(String, String)> = Vec::new();
        for (wanted, file) in pairs {
            if known.iter().all(|(other, _)| other != wanted) {
                known.push((wanted.to_owned(), file.to_owned()));
            }
        }
        Some(Reindent { known, rule })
    }

    /// Gives a line the file's indentation. `None` if the rule does not determine it. `step` is the
    /// indentation step of the new text.
    pub(crate) fn apply(&self, line: &str, step: usize) -> Option<String> {
        let indent = indent_of(line);
        let rest = &line[indent.len()..];
        if rest.is_empty() {
            return Some(line.to_owned());
        }
        Some(self.indentation(indent, step)? + rest)
    }

    fn indentation(&self, indent: &str, step: usize) -> Option<String> {
        if let Some((_, file)) = self.known.iter().find(|(wanted, _)| wanted == indent) {
            return Some(file.clone());
        }
        match &self.rule {
            Rule::Add(prefix)
                if indent_char(prefix) != Some('\t') || indent_char(indent) != Some(' ') =>
            {
                // A file that is indented with spaces gets no tabs.
                let mixes = indent_char(prefix) == Some(' ') && indent.contains('\t');
                (!mixes).then(|| format!("{prefix}{indent}"))
            }
            // The file is indented with tabs, and the new text goes deeper with spaces.
            Rule::Add(prefix) => Some(prefix.clone() + &tabs_for(indent.len(), step)?),
            Rule::Remove(prefix) => indent.strip_prefix(prefix.as_str()).map(str::to_owned),
            &Rule::Columns { tab, tabs: false } => Some(" ".repeat(columns(indent, tab))),
            &Rule::Columns { tab, tabs: true } => self.in_tabs(columns(indent, tab), tab, step),
            Rule::Scale { file, wanted } => self.scaled(indent, *file, *wanted),
        }
    }

    /// Columns as tabs: exactly, or one tab for each step beyond a known indentation.
    fn in_tabs(&self, wanted: usize, tab: usize, step: usize) -> Option<String> {
        if wanted.is_multiple_of(tab) {
            return Some("\t".repeat(wanted / tab));
        }
        let known = self.known.iter().map(|(wanted, file)| (columns(wanted, tab), file));
        let (base, file) =
            known.filter(|(base, _)| *base < wanted).max_by_key(|(base, _)| *base)?;
        Some(file.clone() + &tabs_for(wanted - base, step)?)
    }

    fn scaled(&self, indent: &str, file: usize, wanted: usize) -> Option<String> {
        let all = self.known.iter();
        let kinds: BTreeSet<char> =
            all.clone().filter_map(|(wanted, _)| indent_char(wanted)).collect();
        if indent_char(indent).is_some_and(|kind| !kinds.contains(&kind)) || is_mixed(indent) {
            return None;
        }
        let (from, to) = self.known.first()?;
        let steps = (indent.len() * file).checked_add(to.len() * wanted)?;
        let scaled = steps.checked_sub(from.len() * file)?;
        let character = all.filter_map(|(_, file)| indent_char(file)).next()?;
        (scaled % wanted == 0).then(|| character.to_string().repeat(scaled / wanted))
    }
}

/// Whether the first range begins after the indentation of its line.
pub(super) fn starts_after_indent(text: &[u8], lines: &[Range<usize>]) -> bool {
    let before = lines.first().and_then(|line| line.start.checked_sub(1));
    before.and_then(|before| text.get(before)).is_some_and(|byte| b" \t".contains(byte))
}

/// The number of leading spaces and tabs.
pub(super) fn leading_whitespace(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b" \t".contains(byte)).count()
}

/// The leading spaces and tabs of a line.
pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(WHITESPACE).len()]
}

/// The indentation step: the smallest difference between two indentations, or the only indentation.
pub(crate) fn indent_step(lines: &[impl AsRef<str>]) -> usize {
    let lines = lines.iter().map(AsRef::as_ref);
    let written = lines.filter(|line| !line.trim_matches(WHITESPACE).is_empty());
    let depths: BTreeSet<usize> = written.map(|line| indent_of(line).len()).collect();
    let steps = depths.iter().zip(depths.iter().skip(1)).map(|(less, more)| more - less);
    steps.min().or(depths.first().copied()).unwrap_or(0)
}

/// One tab for each step.
fn tabs_for(columns: usize, step: usize) -> Option<String> {
    let levels = columns.checked_div(step).filter(|levels| levels * step == columns)?;
    Some("\t".repeat(levels))
}

/// The simplest rule that holds for all pairs of sought and file indentation.
fn rule_of(pairs: &[(&str, &str)]) -> Option<Rule> {
    let (wanted, file) = pairs.first()?;
    if let Some(prefix) = file.strip_suffix(wanted)
        && pairs.iter().all(|(wanted, file)| file.strip_suffix(wanted) == Some(prefix))
    {
        return Some(Rule::Add(prefix.to_owned()));
    }
    if let Some(prefix) = wanted.strip_suffix(file)
        && pairs.iter().all(|(wanted, file)| wanted.strip_suffix(file) == Some(prefix))
    {
        return Some(Rule::Remove(prefix.to_owned()));
    }
    let same_columns = |&tab: &usize| {
        pairs.iter().all(|(wanted, file)| columns(wanted, tab) == columns(file, tab))
    };
    if let Some(tab) = TAB_WIDTHS.into_iter().find(same_columns) {
        return Some(Rule::Columns {
            tab,
            tabs: pairs.iter().any(|(_, file)| file.contains('\t')),
        });
    }
    scale_of(pairs)
}

/// A linear rule through all pairs of lengths. Each side must use a single kind of whitespace.
fn scale_of(pairs: &[(&str, &str)]) -> Option<Rule> {
    let of_one_kind = |all: Vec<&str>| {
        let kinds: BTreeSet<Option<char>> = all
            .iter()
            .filter(|indent| !indent.is_empty())
            .map(|indent| indent_char(indent))
            .collect();
        kinds.len() <= 1 && !all.into_iter().any(is_mixed)
    };
    if !of_one_kind(pairs.iter().map(|pair| pair.0).collect())
        || !of_one_kind(pairs.iter().map(|pair| pair.1).collect())
    {
        return None;
    }
    let (x0, y0) = (pairs[0].0.len(), pairs[0].1.len());
    let (x1, y1) =
        pairs.iter().map(|(x, y)| (x.len(), y.len())).find(|&(x, y)| x != x0 && y != y0)?;
    // Both must change in the same direction.
    if (x1 > x0) != (y1 > y0) {
        return None;
    }
    let (wanted, file) = (x1.abs_diff(x0), y1.abs_diff(y0));
    // The scale is certain if all depths match it, or if the text begins at the margin. Otherwise some lines are indented
    // wrongly, and the new text may be too.
    let has_same_depths = x0 * file == y0 * wanted;
    if !has_same_depths && !pairs.iter().any(|(wanted, _)| wanted.is_empty()) {
        return None;
    }
    let on_the_line =
        |(x, y): &(&str, &str)| x.len() * file + y0 * wanted == x0 * file + y.len() * wanted;
    pairs.iter().all(on_the_line).then_some(Rule::Scale { file, wanted })
}

/// The first character of an indentation.
fn indent_char(indent: &str) -> Option<char> {
    indent.chars().next()
}

fn is_mixed(indent: &str) -> bool {
    indent.contains(' ') && indent.contains('\t')
}

/// The column after an indentation, where a tab advances to the next multiple of `tab`.
fn columns(indent: &str, tab: usize) -> usize {
    indent.chars().fold(0, |column, c| match c {
        '\t' => (column / tab + 1) * tab,
        _ => column + 1,
    })
}
