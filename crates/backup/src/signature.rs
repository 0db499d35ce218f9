//! Signs requests as Amazon's version 4 describes it, which other object stores use, too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::credentials::Credentials;

/// A request that is to be signed.
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    /// Encoded.
    pub(crate) path: &'a str,
    /// Names and values, encoded.
    pub(crate) query: &'a [(String, String)],
    /// Headers in lower case, beside those that the signature adds.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
    pub(crate) region: &'a str,
    pub(crate) time: SystemTime,
}

/// The headers of a signed request, with those that were given.
pub(crate) fn sign(request: &Unsigned<'_>, keys: &Credentials) -> Vec<(String, String)> {
    let time = timestamp(request.time);
    let day = &time[..8];
    let body_hash = hex(digest(&SHA256, request.body).as_ref());
    let mut headers: Vec<(String, String)> = vec![
        ("host".to_owned(), request.host.to_owned()),
        ("x-amz-content-sha256".to_owned(), body_hash.clone()),
        ("x-amz-date".to_owned(), time.clone()),
    ];
    let token = keys.session_token.iter().map(|token| ("x-amz-security-token", token.as_str()));
    let given = request.headers.iter().copied().chain(token);
    headers.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
    headers.sort();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let canonical =
        [request.method, request.path, &query(request.query), &lines, &names, &body_hash]
            .join("\n");
    let scope = format!("{day}/{}/s3/aws4_request", request.region);
    let hash = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
    let secret = format!("AWS4{}", keys.secret);
    let key = [day, request.region, "s3", "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, to_sign.as_bytes()));
    let id = &keys.key_id;
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope},SignedHeaders={names},Signature={signature}"
    );
    // The connection writes the host itself.
    headers.retain(|(name, _)| name != "host");
    headers.push(("authorization".to_owned(), authorization));
    headers
}

/// A query in the order that the signature needs.
pub(crate) fn query(pairs: &[(String, String)]) -> String {
    let mut pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.sort();
    pairs.join("&")
}

/// Encodes a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `YYYYMMDDTHHMMSSZ`.
fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The date of a number of days after 1970, in the Gregorian calendar. Years begin in March, so that the leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(at(seconds), expected);
        }
    }

    /// The examples in Amazon's description of the signature.
    #[test]
    fn the_published_examples_have_their_signatures() {
        let keys = Credentials {
            key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let signature =
            |method, path, query: &[(&str, &str)], headers: &[(&str, &str)], body: &[u8]| {
                let owned =
                    |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
                let query: Vec<(String, String)> = query.iter().map(owned).collect();
                let signed = sign(
                    &Unsigned {
                        method,
                        host: "examplebucket.s3.amazonaws.com",
                        path,
                        query: &query,
                        headers,
                        body,
                        region: "us-east-1",
                        time: UNIX_EPOCH + Duration::from_secs(1_369_353_600),
                    },
                    &keys,
                );
                let (_, value) = signed.last().unwrap().clone();
                value.split("Signature=").last().unwrap().to_owned()
            };
        assert_eq!(
            signature("GET", "/test.txt", &[], &[("range", "bytes=0-9")], b""),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature(
                "PUT",
                "/test%24file.text",
                &[],
                &[
                    ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                    ("x-amz-storage-class", "REDUCED_REDUNDANCY")
                ],
                b"Welcome to Amazon S3."
            ),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        assert_eq!(
            signature("GET", "/", &[("prefix", "J"), ("max-keys", "2")], &[], b""),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }
}
