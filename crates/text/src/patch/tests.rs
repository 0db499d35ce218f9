//! Tests of parsing and applying patches.

use proptest::prelude::*;

use super::*;
use crate::diff::unified_diff;
use crate::equivalent::MatchLevel;

/// Applies a patch of one file, or returns the reason for the failure.
fn apply(patch: &str, file: &str) -> Result<String, String> {
    let patch = Patch::parse(patch).map_err(|error| format!("{}: {}", error.line, error.what))?;
    let applied = Hunk::apply_all(&patch.files[0].hunks, file.as_bytes())
        .map_err(|misfit| format!("hunk {}: {:?}", misfit.hunk + 1, misfit.why))?;
    Ok(String::from_utf8(applied.text).unwrap())
}

fn results(patch: &str, file: &str) -> Vec<HunkFate> {
    let patch = Patch::parse(patch).unwrap();
    Hunk::apply_all(&patch.files[0].hunks, file.as_bytes()).unwrap().hunks
}

#[track_caller]
fn applies(patch: &str, file: &str, now: &str) {
    assert_eq!(apply(patch, file), Ok(now.to_owned()));
}

#[track_caller]
fn refused(patch: &str, file: &str, why: &str) {
    let error = apply(patch, file).unwrap_err();
    assert!(error.contains(why), "{error}");
}

/// A diff of `f` with this body.
fn diff(body: &str) -> String {
    format!("--- a/f\n+++ b/f\n{body}")
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

const NUMBERS: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

#[test]
fn a_hunk_applies_at_its_line_or_where_its_lines_are() {
    applies(
        &diff("@@ -3,3 +3,3 @@\n 3\n-4\n+four\n 5\n"),
        NUMBERS,
        "1\n2\n3\nfour\n5\n6\n7\n8\n9\n",
    );
    let elsewhere = diff("@@ -7,3 +7,3 @@\n 3\n-4\n+four\n 5\n");
    applies(&elsewhere, NUMBERS, "1\n2\n3\nfour\n5\n6\n7\n8\n9\n");
    assert_eq!(results(&elsewhere, NUMBERS)[0].offset, -4);
    refused(&diff("@@ -1,2 +1,1 @@\n 3\n-x\n"), NUMBERS, "NotFound");
}

#[test]
fn common_mistakes_of_models_are_accepted() {
    let now = "1\n2\n3\nfour\n5\n6\n7\n8\n9\n";
    for header in ["@@ -3,9 +3,1 @@", "@@ -3 +3 @@", "@@", "@@ ... @@", "@@ -3,3 +3,3 @@ fn f() {"]
    {
        applies(&diff(&format!("{header}\n 3\n-4\n+four\n 5\n")), NUMBERS, now);
    }
    let plain = diff("@@ -3,3 +3,3 @@\n 3\n-4\n+four\n 5\n");
    applies(&plain.replace('\n', "\r\n"), NUMBERS, now);
    applies(&format!("Here:\n```diff\n{plain}```\nDone.\n"), NUMBERS, now);
    applies(&format!("patch -p1 <<'EOF'\n{}EOF\n", plain.replace("3,3", "3,4")), NUMBERS, now);
    applies(&format!("{plain}-- \n2.47.3\n\n"), NUMBERS, now);
    applies(plain.trim_end(), NUMBERS, now);
    let blank = diff("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n");
    applies(&blank, "a\n\nb\n", "a\n\nc\n");
}

#[test]
fn input_that_may_hide_a_change_is_rejected() {
    refused(&diff("@@ -1,4 +1,4 @@\n 1\n2\n-3\n+x\n"), NUMBERS, "does not begin with");
    refused(&diff("@@ -1,40 +1,41 @@\n 1\n-2\n+x\n"), NUMBERS, "truncated");
    refused(&diff("@@ -1,99999999999999999999 +1 @@\n-1\n"), NUMBERS, "numbers");
    refused(&diff("@@ -1,-3 +1 @@\n-1\n"), NUMBERS, "numbers");
    refused("*** Begin Patch\n*** Update File: f\n-1\n+x\n", NUMBERS, "truncated");
    refused("@@ -1 +1 @@\n-1\n+x\n", NUMBERS, "names a file");
    refused("nothing\n", NUMBERS, "names no file");
    refused(&diff("@@ -1 +1 @@\n 1\n"), NUMBERS, "begins with + or -");
}

#[test]
fn repeated_lines_need_context_or_an_anchor() {
    let file = "a\nx\nb\nc\nx\nd\n";
    refused(&envelope("@@\n-x\n+y\n"), file, "Ambiguous { lines: [2, 5]");
    applies(&envelope("@@ c\n-x\n+y\n"), file, "a\nx\nb\nc\ny\nd\n");
    applies(&envelope("@@ b\n@@ c\n-x\n+y\n"), file, "a\nx\nb\nc\ny\nd\n");
    applies(&diff("@@ -5 +5 @@\n-x\n+y\n"), file, "a\nx\nb\nc\ny\nd\n");
    applies(&envelope("-c\n+C\n@@\n-x\n+y\n"), file, "a\nx\nb\nC\ny\nd\n");
}

#[test]
fn added_lines_go_where_the_hunk_says_or_to_the_end() {
    applies(&diff("@@ -2,0 +3 @@\n+new\n"), "1\n2\n3\n", "1\n2\nnew\n3\n");
    applies(&diff("@@ -0,0 +1 @@\n+new\n"), "1\n2\n", "new\n1\n2\n");
    refused(&diff("@@ -9,0 +10 @@\n+new\n"), "1\n2\n", "line 9");
    refused(&diff("@@ @@\n+new\n"), "1\n2\n", "Nowhere");
    applies(&envelope("+new\n"), "1\n2\n", "1\n2\nnew\n");
    applies(&envelope("@@\n+2\n"), "1\n2\n", "1\n2\n2\n");
    applies(&envelope("@@ 1\n+new\n"), "1\n2\n", "1\nnew\n2\n");
    refused(&envelope("@@ nowhere\n+new\n"), "1\n2\n", "nowhere");
    applies(&envelope("+new\n*** End of File\n"), "1\n2\n", "1\n2\nnew\n");
    applies(&envelope("+new\n"), "", "new\n");
}

#[test]
fn markers_may_have_whitespace_around_them() {
    let file = "a\nb\n";
    let padded = " *** Begin Patch \n  *** Update File: f  \n@@ \n-a\n+A\n *** End Patch  \n";
    applies(padded, file, "A\nb\n");
    let indented = "    *** Begin Patch\n    *** Update File: f\n    @@\n    -a\n    +A\n     b\n    *** End Patch\n";
    applies(indented, file, "A\nb\n");
    let of_the_file =
        "*** Begin Patch\n*** Update File: f\n@@\n *** End Patch\n-a\n+A\n*** End Patch\n";
    applies(of_the_file, "*** End Patch\na\n", "*** End Patch\nA\n");
}

#[test]
fn one_new_line_elsewhere_does_not_prove_that_a_patch_was_applied() {
    let file =
        "def get():\n    pass\ndef head():\n    kwargs.setdefault(\"allow_redirects\", False)\n";
    let old = "    kwargs.setdefault(\"allow_redirects\", TRUE)";
    let new = "    kwargs.setdefault(\"allow_redirects\", False)";
    refused(&envelope(&format!("@@\n-{old}\n+{new}\n")), file, "NotFound");
    refused(&diff(&format!("@@ -1 +1 @@\n-{old}\n+{new}\n")), file, "NotFound");
    refused(&envelope(&format!("@@\n \n-{old}\n+{new}\n")), &format!("\n{new}\nx\n"), "NotFound");
    applies(&envelope(&format!("@@\n def head():\n-{old}\n+{new}\n")), file, file);
}

#[test]
fn the_end_of_the_file_determines_a_position() {
    let file = "x\ny\nx\n";
    applies(&envelope("@@\n-x\n+z\n*** End of File\n"), file, "x\ny\nz\n");
    refused(&envelope("@@\n-y\n+z\n*** End of File\n"), file, "NotAtEnd { elsewhere: Some(2) }");
}

#[test]
fn a_last_line_may_have_no_newline() {
    let marked = "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n";
    applies(&diff(marked), "x", "y\n");
    applies(&diff("@@ -1 +1 @@\n-x\n+y\n\\ No newline at end of file\n"), "x\n", "y");
    applies(&diff("@@ -1 +1 @@\n-x\n+y\n"), "x", "y");
    applies(&diff("@@ -1 +1,2 @@\n x\n+y\n"), "x", "x\ny");
    applies(&diff("@@ -1,2 +1 @@\n x\n-y\n"), "x\ny", "x\n");
    applies(&diff("@@ -1,0 +2 @@\n+y\n"), "x", "x\ny");
}

#[test]
fn added_lines_take_the_line_endings_of_the_file() {
    applies(&diff("@@ -2 +2,2 @@\n-b\n+B\n+c\n"), "a\r\nb\r\n", "a\r\nB\r\nc\r\n");
    applies(&diff("@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), "a\r\nb\nc\r\n", "a\r\nB\nc\r\n");
    applies(&diff("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n"), "a\r\nb\r\n", "a\r\nb\n");
    applies(&diff("@@ -2 +2 @@\n-b\n+B\n"), "a\rb\rc\r", "a\rB\rc\r");
    let none = "\\ No newline at end of file\n";
    let one_line = diff(&format!("@@ -1 +1 @@\n-a\rb\r\n{none}+c\r\n{none}"));
    applies(&one_line, "a\rb\r", "c\r");
}

#[test]
fn the_byte_order_mark_is_kept() {
    applies(&diff("@@ -1 +1 @@\n-a\n+b\n"), "\u{feff}a\n", "\u{feff}b\n");
    applies(&diff("@@ -1 +1 @@\n-\u{feff}a\n+b\n"), "\u{feff}a\n", "b\n");
}

#[test]
fn insignificant_differences_are_ignored_and_kept() {
    let file = "class A:\n    def f(self):\n        return 1  \n";
    let patch = envelope("@@\n def f(self):\n-    return 1\n+    if x:\n+        return 2\n");
    let now = "class A:\n    def f(self):\n        if x:\n            return 2\n";
    applies(&patch, file, now);
    assert_eq!(results(&patch, file)[0].rung, Some(MatchLevel::Indentation));
    let typography = envelope("@@\n-say \"yes\" - now\n+say \"no\" - now\n");
    applies(&typography, "say “yes” — now\n", "say “no” — now\n");
    applies(&envelope("@@\n a\n-b\n+c\n"), "a  \nb\n", "a  \nc\n");
}

#[test]
fn a_patch_is_applied_once() {
    let patch = diff("@@ -3,3 +3,4 @@\n 3\n 4\n+new\n 5\n");
    let now = apply(&patch, NUMBERS).unwrap();
    applies(&patch, &now, &now);
    assert!(results(&patch, &now)[0].already);
    let behind = envelope("@@\n 4\n+something new\n");
    let now = apply(&behind, NUMBERS).unwrap();
    applies(&behind, &now, &now);
    assert!(results(&behind, &now)[0].already);
}

#[test]
fn a_repeated_line_is_added_again() {
    let same = diff("@@ -2,3 +2,4 @@\n x\n x\n x\n+x\n");
    applies(&same, "x\nx\nx\nx\n", "x\nx\nx\nx\nx\n");
    let before = diff("@@ -1,3 +1,4 @@\n+x\n x\n x\n x\n");
    applies(&diff("@@ -3,0 +4 @@\n+x\n"), "x\nx\nx\nx\n", "x\nx\nx\nx\nx\n");
    applies(&envelope("@@\n+x\n*** End of File\n"), "x\nx\n", "x\nx\nx\n");
    applies(&before, "x\nx\nx\nx\n", "x\nx\nx\nx\nx\n");
}

#[test]
fn an_applied_patch_is_recognized() {
    let known = |patch: &str, file: &str| {
        applies(patch, file, file);
        assert!(results(patch, file).iter().all(|result| result.already), "{patch}");
    };
    // The new text differs from the old one only in indentation.
    known(&diff("@@ -1,3 +1,3 @@\n a {\n-  b\n+    b\n }\n"), "a {\n    b\n}\n");
    // The file was empty.
    known(&diff("@@ -0,0 +1 @@\n+\n"), "\n");
    // They only add lines, and have no context.
    let file = "1\n2\nsomething that is new\n3\n";
    known(&diff("@@ -2,0 +3 @@\n+something that is new\n"), file);
    known(&envelope("@@ 2\n+something that is new\n"), file);
    known(&envelope("@@\n+something that is new\n+3\n*** End of File\n"), file);
    // The old lines also occur at another position.
    let file = "[one]\nserde_derive\nwalkdir\n]\n\n[two]\nserde_derive\n]\n";
    known(&diff("@@ -2,2 +2,3 @@\n serde_derive\n+walkdir\n ]\n"), file);
    // The first hunk has moved the second.
    let both = diff(
        "@@ -1,2 +1,3 @@\n+first line of all\n a\n b\n@@ -5,2 +6,3 @@\n serde_derive\n+walkdir\n ]\n",
    );
    known(&both, "first line of all\na\nb\nc\nd\nserde_derive\nwalkdir\n]\nserde_derive\n]\n");
}

#[test]
fn a_partial_removal_is_not_taken_for_an_applied_patch() {
    let block = |name: &str| format!("[package]\nname = {name}\nlibc\nend\n\n");
    let removed: String =
        (block("one") + &block("two")).lines().map(|l| format!("-{l}\n")).collect();
    let patch = diff(&format!(
        "@@ -3,17 +3,7 @@\n libc\n end\n \n{removed} [package]\n name = last\n libc\n end\n"
    ));
    let file = block("first") + &block("else") + &block("two") + &block("last");
    refused(&patch, &file, "NotFound");
    let gone = block("first") + &block("last");
    applies(&patch, &gone, &gone);
    applies(&patch, &(block("before all") + &gone), &(block("before all") + &gone));
    // Moved by as many lines as are removed: the context is at the line in the header, and the removed lines
    // are before it.
    let file = block("first") + &block("two") + &block("last");
    let patch = diff(
        "@@ -8,12 +8,7 @@\n libc\n end\n \n-[package]\n-name = two\n-libc\n-end\n-\n [package]\n name = last\n libc\n end\n",
    );
    applies(&patch, &file, &(block("first") + &block("last")));
}

#[test]
fn hunks_may_share_context_but_not_changed_lines() {
    let patch = envelope("@@\n 1\n-2\n+two\n 3\n@@\n 3\n-4\n+four\n");
    applies(&patch, NUMBERS, "1\ntwo\n3\nfour\n5\n6\n7\n8\n9\n");
    let deeper = envelope("@@\n 1\n-2\n+two\n 3\n 4\n 5\n@@\n 3\n-4\n+four\n 5\n");
    applies(&deeper, NUMBERS, "1\ntwo\n3\nfour\n5\n6\n7\n8\n9\n");
    let between = envelope("@@\n-1\n+one\n 2\n@@ 1\n+1.5\n");
    applies(&between, NUMBERS, "one\n1.5\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let before = envelope("@@\n-2\n+two\n 3\n@@ 1\n+1.5\n");
    applies(&before, NUMBERS, "1\n1.5\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
    refused(&envelope("@@\n-2\n+two\n@@\n 1\n-2\n+zwei\n"), NUMBERS, "Overlaps { line: 1 }");
}

#[test]
fn both_formats_give_the_files_and_actions() {
    let patch = Patch::parse(
        "diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\nindex 1..2 100644\n\
         --- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\
         diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
         diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n\
         diff --git \"a/caf\\303\\251\" \"b/caf\\303\\251\"\ndeleted file mode 100644\nindex e69de29..0000000\n\
         diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n",
    )
    .unwrap();
    let found: Vec<(FileAction, &str, Option<bool>)> = patch
        .files
        .iter()
        .map(|file| (file.action, std::str::from_utf8(&file.path).unwrap(), file.executable))
        .collect();
    assert_eq!(
        found,
        [
            (FileAction::Move, "new", None),
            (FileAction::Update, "run", Some(true)),
            (FileAction::Add, "empty", None),
            (FileAction::Delete, "café", None),
            (FileAction::Copy, "y", None),
        ]
    );
    let patch = Patch::parse(
        "*** Begin Patch\n*** Add File: n\n+a\n\n+b\n\n*** Delete File: d\n*** Update File: f\n*** Move to: g\n*** End Patch\n",
    )
    .unwrap();
    assert_eq!(patch.files[0].added_text(), "a\n\nb\n");
    assert_eq!(patch.files[1].action, FileAction::Delete);
    assert_eq!(
        (patch.files[2].action, patch.files[2].path.as_slice()),
        (FileAction::Move, &b"g"[..])
    );
}

#[test]
fn a_new_file_is_named_by_the_diff_git_line() {
    let name = |text: &str| {
        let patch = Patch::parse(text).unwrap();
        String::from_utf8(patch.files[0].path.clone()).unwrap()
    };
    let hunk = "@@ -0,0 +1 @@\n+x\n";
    let new = "new file mode 100644\nindex 0000000..1111111\n--- /dev/null\n";
    assert_eq!(name(&format!("diff --git a/b/x b/b/x\n{new}+++ b/b/x\n{hunk}")), "b/x");
    assert_eq!(name(&format!("diff --git b/x b/x\n{new}+++ b/x\n{hunk}")), "b/x");
    assert_eq!(name(&format!("diff --git i/x w/x\n{new}+++ w/x\n{hunk}")), "x");
    assert_eq!(name(&format!("--- /dev/null\n+++ b/x\n{hunk}")), "x");
}

#[test]
fn lines_that_look_like_headers_belong_to_the_hunk_if_the_counts_say_so() {
    applies(&diff("@@ -1,2 +1,2 @@\n--- a\n-x\n+++ b\n+@@\n"), "-- a\nx\n", "++ b\n@@\n");
}

proptest! {
    #[test]
    fn patch_like_text_does_not_panic(text in "(\\*\\*\\* (Begin Patch|Update File: f|Add File: g|End of File|End Patch)|--- a/f|\\+\\+\\+ b/f|@@ -[0-3],[0-3] \\+[0-3],[0-3] @@|@@ a|@@|[-+ ][ab]?|diff --git a/f b/f|rename to x|\\\\ No|\n|\r\n|x){0,24}", file in "[ab \r\n]{0,12}") {
        if let Ok(patch) = Patch::parse(&text) {
            for entry in &patch.files {
                let _ = Hunk::apply_all(&entry.hunks, file.as_bytes());
                let _ = entry.added_text();
            }
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let _ = Patch::parse(&text);
    }

    #[test]
    fn applying_a_diff_gives_the_new_file(
        old in "([ab]\r?\n|c){0,20}", new in "([ab]\r?\n|c){0,20}",
    ) {
        prop_assume!(old != new);
        // A line that ends in `\n` alone, so that no `\r` is hidden.
        let (old, new) = (format!("x\n{old}"), format!("x\n{new}"));
        let shown = unified_diff("f", Some(old.as_bytes()), Some(new.as_bytes()), 999, None);
        // The diff shows a `\r` as an escape.
        let text = shown.text.replace("\\r", "\r");
        prop_assert_eq!(apply(&text, &old), Ok(new));
    }

    #[test]
    fn an_applied_diff_is_recognized(
        old in prop::collection::vec("[a-f]{1,9}\n", 1..20), at in 0usize..20, put in "[g-z]{16}\n",
    ) {
        let mut new = old.clone();
        new.insert(at.min(old.len()), put);
        let (old, new) = (old.concat(), new.concat());
        let diff = unified_diff("f", Some(old.as_bytes()), Some(new.as_bytes()), 999, None).text;
        prop_assert_eq!(apply(&diff, &new), Ok(new.clone()));
    }
}
