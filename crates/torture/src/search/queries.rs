//! Generated queries on a real tree, for both programs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::peers::Peers;
use toolcrib_devtools::random::Random;

use super::super::Effort;
use super::super::report::{Report, Row};
use super::patterns::{GeneratedPattern, PatternGenerator};
use super::search_pair::{Lines, SearchPair, by_heading};

const QUERIES: usize = 1_000;
const SMOKE: usize = 40;

/// Longer lines are truncated in replies.
const MAX_LINE_BYTES: usize = 480;

pub(super) fn run(
    binary: &Path,
    peers: &Peers,
    tree: &Path,
    effort: Effort,
    report: &mut Report,
) -> Result<()> {
    let queries = effort.rounds.unwrap_or(if effort.smoke { SMOKE } else { QUERIES });
    let mut both = SearchPair::begin(binary, peers, tree)?;
    let name = tree.file_name().unwrap_or(tree.as_os_str()).to_string_lossy().into_owned();
    let mut row = Row::new("files", name.clone());
    let theirs: BTreeSet<String> = both.rg(&["--files"])?.lines().map(str::to_owned).collect();
    let ours = both.files()?;
    let odd = both.odd_files(&theirs);
    // Counting the empty match misses empty files and binary files.
    let plain = |files: &BTreeSet<String>| -> BTreeSet<String> {
        let is_plain = |path: &&String| {
            !odd.contains(*path)
                && std::fs::metadata(tree.join(path)).is_ok_and(|file| file.len() > 0)
        };
        files.iter().filter(is_plain).cloned().collect()
    };
    compare(&mut row, "the list of files", &plain(&ours), &plain(&theirs));
    row.tally.add_many("files", theirs.len() as u64);
    row.tally.add_many("not plain text, not compared", odd.len() as u64);
    report.add(row);

    let files: Vec<String> = theirs.iter().filter(|file| !odd.contains(*file)).cloned().collect();
    let mut maker = PatternGenerator::new(tree, &files, 7);
    let mut asking =
        QueryRun { both: &mut both, odd: &odd, files: &theirs, random: Random::new(11) };
    let mut row = Row::new("queries", name.clone());
    for _ in 0..queries {
        asking.grep(&maker.make(), &mut row)?;
    }
    report.add(row);
    let mut row = Row::new("globs", name);
    for _ in 0..queries.div_ceil(10) {
        asking.glob(&files, &mut row)?;
    }
    report.add(row);
    Ok(())
}

struct QueryRun<'a, 'b> {
    both: &'a mut SearchPair<'b>,
    odd: &'a BTreeSet<String>,
    files: &'a BTreeSet<String>,
    random: Random,
}

impl QueryRun<'_, '_> {
    fn grep(&mut self, made: &GeneratedPattern, row: &mut Row) -> Result<()> {
        let mut words: Vec<String> = Vec::new();
        let mut more = json!({});
        let mut flag = |name: &str, value: Value, word: &str| {
            more[name] = value;
            words.push(word.to_owned());
        };
        if made.literal {
            flag("literal", true.into(), "-F");
        }
        if made.ignore_case {
            flag("-i", true.into(), "-i");
        }
        if made.multiline {
            flag("multiline", true.into(), "-U");
            words.push("--multiline-dotall".to_owned());
        }
        if let Some(file) = self.a_file()
            && self.random.below(4) == 0
            && let Some((_, extension)) = file.rsplit_once('.')
            && extension.chars().all(char::is_alphanumeric)
        {
            more["glob"] = format!("*.{extension}").into();
            words.push(format!("-g=*.{extension}"));
        }
        let mode = self.random.below(3);
        let (before, after) = (self.random.below(3), self.random.below(3));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let about = format!("{:?} {more}", made.pattern);
        match mode {
            0 => {
                let ours = self.both.counts(&made.pattern, &more)?;
                let output = self.both.rg(&[&words[..], &["-c", "--", &made.pattern]].concat())?;
                let theirs: Lines = output
                    .lines()
                    .filter_map(|line| line.rsplit_once(':'))
                    .map(|(path, count)| (path.to_owned(), vec![count.to_owned()]))
                    .collect();
                compare_lines(row, &about, &self.plain(ours), &self.plain(theirs));
                row.tally.add("count");
            }
            1 => {
                let ours = self.both.matching(&made.pattern, &more)?;
                let output = self.both.rg(&[&words[..], &["-l", "--", &made.pattern]].concat())?;
                let theirs = output.lines().map(str::to_owned).collect();
                compare(row, &about, &self.known(&ours), &self.known(&theirs));
                row.tally.add("files");
            }
            _ => {
                more["-A"] = after.into();
                more["-B"] = before.into();
                let ours = self.both.lines(&made.pattern, &more)?;
                let (after, before) = (format!("-A{after}"), format!("-B{before}"));
                let flags =
                    ["--heading", "-n", "--sort=path", &after, &before, "--", &made.pattern];
                let theirs = by_heading(&self.both.rg(&[&words[..], &flags].concat())?);
                // A page has at most ten thousand matches.
                if theirs.values().map(Vec::len).sum::<usize>() < 10_000 {
                    compare_lines(row, &about, &self.plain(ours), &self.plain(theirs));
                    row.tally.add("content");
                }
            }
        }
        Ok(())
    }

    fn glob(&mut self, files: &[String], row: &mut Row) -> Result<()> {
        let Some(file) = self.a_file() else { return Ok(()) };
        let name = file.rsplit('/').next().unwrap_or(&file).to_owned();
        if !name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) {
            return Ok(());
        }
        let half: String = name.chars().take(name.chars().count().div_ceil(2)).collect();
        let pattern = match self.random.below(5) {
            0 => name.rsplit_once('.').map_or(name.clone(), |(_, end)| format!("*.{end}")),
            1 => format!("{half}*"),
            2 => format!("*{}", &name[half.len()..]),
            3 => format!("{{{name},{half}*,*.toml}}"),
            _ => name.chars().map(|c| if c == 'e' { '?' } else { c }).collect(),
        };
        let arguments = json!({"pattern": format!("**/{pattern}"), "hidden": true, "limit": 1000});
        let reply = self.both.ask("Glob", &arguments)?;
        let list = reply["metadata"]["files"].as_array().cloned().unwrap_or_default();
        let ours: BTreeSet<String> =
            list.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect();
        let theirs = self.both.fd(&pattern)?;
        if theirs.len() < 1_000 {
            let links = |path: &&String| files.contains(*path) || self.files.contains(*path);
            let ours: BTreeSet<String> = ours.iter().filter(links).cloned().collect();
            compare(row, &pattern, &ours, &theirs);
            row.tally.add("glob");
        }
        Ok(())
    }

    fn a_file(&mut self) -> Option<String> {
        let at = self.random.below(self.files.len() as u64) as usize;
        self.files.iter().nth(at).cloned()
    }

    /// The files that are plain text and that ripgrep searches without a glob too.
    fn known(&self, files: &BTreeSet<String>) -> BTreeSet<String> {
        let known = |path: &&String| !self.odd.contains(*path) && self.files.contains(*path);
        files.iter().filter(known).cloned().collect()
    }

    fn plain(&self, lines: Lines) -> Lines {
        let known = |path: &String| !self.odd.contains(path) && self.files.contains(path);
        lines.into_iter().filter(|(path, _)| known(path)).collect()
    }
}

fn compare(row: &mut Row, about: &str, ours: &BTreeSet<String>, theirs: &BTreeSet<String>) {
    let missing: Vec<&String> = theirs.difference(ours).take(3).collect();
    let wrong: Vec<&String> = ours.difference(theirs).take(3).collect();
    if !missing.is_empty() || !wrong.is_empty() {
        row.violate(format!("missing {missing:?}, wrongly there {wrong:?}"), about);
    }
}

fn compare_lines(row: &mut Row, about: &str, ours: &Lines, theirs: &Lines) {
    let names = |lines: &Lines| lines.keys().cloned().collect::<BTreeSet<String>>();
    compare(row, about, &names(ours), &names(theirs));
    for (path, lines) in ours {
        let Some(other) = theirs.get(path) else { continue };
        let same = lines.len() == other.len()
            && lines.iter().zip(other).all(|(ours, theirs)| same_line(ours, theirs));
        if !same {
            let at = lines.iter().zip(other).position(|(ours, theirs)| !same_line(ours, theirs));
            let at = at.unwrap_or(lines.len().min(other.len()));
            let (ours, theirs) = (lines.get(at), other.get(at));
            row.violate(format!("{path}: ours {ours:?}, theirs {theirs:?}"), about);
            return;
        }
    }
}

/// Whether two lines have the same number and separator and, if not truncated, the same text.
fn same_line(ours: &str, theirs: &str) -> bool {
    let shown_otherwise =
        theirs.len() > MAX_LINE_BYTES || theirs.chars().any(|c| c.is_control() && c != '\t');
    let number = |line: &str| line.find([':', '-']).map(|at| line[..=at].to_owned());
    ours == theirs || (shown_otherwise && number(ours) == number(theirs))
}
