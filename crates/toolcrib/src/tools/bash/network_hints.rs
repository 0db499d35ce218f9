//! Notes about the network and the `/tmp` of commands, which differ from the user's: the network may be off, and both are
//! those of the session.

use toolcrib_policy::SettingHints;

use crate::sandbox_refusal_notes::network_remedy;

/// Phrases with which package managers report that they do not use the network.
const OFFLINE: [&str; 6] = [
    "--offline",
    "offline mode",
    "GOPROXY=off",
    "UV_OFFLINE",
    "etwork connectivity is disabled",
    "COMPOSER_DISABLE_NETWORK",
];

/// Phrases for a port on which nothing listens.
const REFUSED: [&str; 4] =
    ["onnection refused", "ECONNREFUSED", "ouldn't connect to server", "ailed to connect to"];

/// Spellings of the local host.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Bytes of the script, and of the end of the output, that are examined.
const MAX_BYTES: usize = 64 << 10;

/// The note for a command without network that reports to be offline.
pub(super) fn offline_note(settings: &SettingHints, output: &str) -> Option<String> {
    contains_any(end(output), &OFFLINE).then(|| {
        format!(
            "network is off, so package managers are set to offline; {}",
            network_remedy(settings)
        )
    })
}

/// The note for a command that reached nothing on its own localhost.
pub(super) fn localhost_note(script: &str, output: &str) -> Option<&'static str> {
    let is_local = |text: &str| contains_any(text, &LOCAL);
    let is_refused = end(output).lines().any(|line| contains_any(line, &REFUSED));
    (is_refused && (is_local(beginning(script)) || is_local(end(output)))).then_some(
        "localhost is that of this session's commands: servers that other programs run on this machine are not reachable",
    )
}

/// The note for a command that did not find a file in `/tmp`, which is the session's own.
pub(super) fn tmp_note(output: &str) -> Option<&'static str> {
    let is_missing = |line: &str| {
        contains_any(line, &["/tmp/"]) && contains_any(line, &["o such file", "ENOENT"])
    };
    end(output).lines().any(is_missing).then_some(
        "/tmp is private to this session: files that the user or other programs have in their /tmp are not in it",
    )
}

fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

fn end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_BYTES))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_in_tmp_is_recognized() {
        for output in [
            "cat: /tmp/report.txt: No such file or directory\n",
            "Error: ENOENT: no such file or directory, open '/tmp/x'\n",
        ] {
            assert!(tmp_note(output).is_some(), "{output}");
        }
        for output in ["/tmp/x: ok\n", "cat: a: No such file or directory\n", ""] {
            assert_eq!(tmp_note(output), None);
        }
    }

    #[test]
    fn an_unreachable_localhost_is_recognized() {
        for (script, output) in [
            (
                "curl -sS http://127.0.0.1:38917/",
                "curl: (7) Failed to connect to 127.0.0.1 port 38917 after 0 ms: Couldn't connect to server\n",
            ),
            ("npm test", "Error: connect ECONNREFUSED ::1:5432\n"),
            ("psql -h localhost", "psql: error: connection to server failed: Connection refused\n"),
        ] {
            assert!(localhost_note(script, output).is_some(), "{script}");
        }
        for (script, output) in [
            ("curl http://localhost:3000", "ok\n"),
            ("curl http://example.com", "curl: (7) Couldn't connect to server\n"),
            ("echo", ""),
        ] {
            assert_eq!(localhost_note(script, output), None, "{script}");
        }
    }

    #[test]
    fn offline_package_managers_are_recognized() {
        let cargo = "As a reminder, you're using offline mode (--offline) which can sometimes cause surprising resolution failures";
        assert!(offline_note(&SettingHints::default(), cargo).is_some());
        assert!(
            offline_note(&SettingHints::default(), "module lookup disabled by GOPROXY=off")
                .is_some()
        );
        assert_eq!(offline_note(&SettingHints::default(), "error: unknown option"), None);
    }
}
