//! Checks the links between Markdown pages of the repository: the file and the heading must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::File;

/// Every broken link, as `path:line: problem`.
pub(super) fn broken(files: &[File]) -> Vec<String> {
    let paths: BTreeSet<&Path> = files.iter().map(|file| Path::new(&file.path)).collect();
    let is_page = |file: &&File| file.extension() == "md" && !file.parts().contains(&"cases");
    let pages: Vec<&File> = files.iter().filter(is_page).collect();
    let headings: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|page| (Path::new(&page.path), slugs(&page.text))).collect();
    let mut problems = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let leads_to = match file {
                "" => PathBuf::from(&page.path),
                file => joined(Path::new(&page.path), file),
            };
            let exists = paths.iter().any(|path| path.starts_with(&leads_to));
            let named = headings.get(leads_to.as_path());
            let has_heading = heading.is_empty() || named.is_some_and(|all| all.contains(heading));
            if !exists || !has_heading {
                problems.push(format!("{}:{line}: {target} does not exist", page.path));
            }
        }
    }
    problems
}

/// The relative targets of inline links and link definitions, with their line numbers. Ignores code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let inline = outside_code(line).flat_map(|part| {
            part.match_indices("](").filter_map(move |(at, _)| part[at + 2..].split(')').next())
        });
        let defined =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, to)| to);
        let relative = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
        found.extend(inline.chain(defined).filter(relative).map(|target| (number, target)));
    }
    found
}

/// The lines outside fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The parts of a line outside code spans.
fn outside_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').step_by(2)
}

/// The anchors of the headings of a page.
fn slugs(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| slug(heading.trim_start_matches('#').trim())).collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The path of a link from the root of the repository.
fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn accepts_links_to_files_and_headings() {
        let files = [
            file(
                "README.md",
                "[a](docs/a.md) [b](docs/a.md#what-it-does) [c](docs) [d](https://x.y/z)",
            ),
            file(
                "docs/a.md",
                "# A page\n## What it does\n[up](../README.md) [here](#a-page)\n`[x](none)`\n",
            ),
        ];
        assert_eq!(broken(&files), Vec::<String>::new());
    }

    #[test]
    fn reports_broken_links_with_their_line() {
        let files =
            [file("docs/a.md", "one\n[b](b.md)\n```\n[c](c.md)\n```\n[d](#none)\n[e]: e.md\n")];
        let expected = ["docs/a.md:2: b.md", "docs/a.md:6: #none", "docs/a.md:7: e.md"];
        assert_eq!(broken(&files), expected.map(|start| format!("{start} does not exist")));
    }
}
