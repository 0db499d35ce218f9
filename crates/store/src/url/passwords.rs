//! Passwords in the format of `.pgpass`: lines `HOST:PORT:DATABASE:USER:PASSWORD`, where `*` matches anything and a backslash
//! escapes a character.

use toolcrib_net::ServerAddress;

use super::StoreUrl;

/// The password of the first line that matches.
pub(super) fn password_in(text: &str, url: &StoreUrl) -> Option<String> {
    let (host, port) = match &url.address {
        ServerAddress::Host(host, port) => (host.as_str(), port.to_string()),
        // As for other clients of PostgreSQL.
        ServerAddress::Socket(path) => {
            let port = path.extension().map(|port| port.to_string_lossy().into_owned());
            ("localhost", port.unwrap_or_default())
        }
    };
    let wanted = [host, &port, &url.database, &url.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, fields) = fields.split_last().filter(|(_, fields)| fields.len() == 4)?;
        let is_match = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
        fields.iter().zip(&wanted).all(is_match).then(|| password.clone())
    })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let is_password = fields.len() == 5;
        match (char, fields.last_mut()) {
            (':', _) if !is_password => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(chars.next()),
            (char, Some(field)) => field.push(char),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_line_counts() {
        let url = StoreUrl::parse("postgres://acme@db.example/tools").unwrap();
        let password = |text| password_in(text, &url);
        assert_eq!(
            password("# x\n\nother:*:*:*:no\ndb.example:5432:tools:acme:a\\:b\\\\c:d\n*:*:*:*:e"),
            Some("a:b\\c:d".to_owned())
        );
        assert_eq!(password("*:5433:*:*:no\n*:*:*:acme:yes"), Some("yes".to_owned()));
        assert_eq!(password("*:*:*:other:no\n*:*:*\n"), None);
        let socket = StoreUrl::parse("postgres://acme@/tools?host=/run").unwrap();
        assert_eq!(password_in("localhost:5432:tools:acme:x", &socket), Some("x".to_owned()));
    }
}
