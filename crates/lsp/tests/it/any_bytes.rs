//! No bytes of a server make the client fail in another way than with an error, or keep more than the limits.

use proptest::prelude::*;
use toolcrib_lsp::{Client, ClientSettings, FrameDecoder, FrameError, MAX_BODY_BYTES, frame};

fn bodies(stream: &[u8], chunk: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let (mut decoder, mut bodies) = (FrameDecoder::default(), Vec::new());
    for part in stream.chunks(chunk.max(1)) {
        decoder.push(part);
        loop {
            match decoder.next_body() {
                Ok(Some(body)) => bodies.push(body),
                Ok(None) => break,
                Err(error) => return (bodies, Some(error)),
            }
        }
    }
    (bodies, None)
}

proptest! {
    #[test]
    fn frames_are_split_wherever_the_stream_is_cut(
        sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..6),
        chunk in 1_usize..40,
    ) {
        let stream: Vec<u8> = sent.iter().flat_map(|body| frame(body)).collect();
        prop_assert_eq!(bodies(&stream, chunk), (sent, None));
    }

    #[test]
    fn any_bytes_are_an_error_or_messages(stream in any::<Vec<u8>>(), chunk in 1_usize..40) {
        let (got, _) = bodies(&stream, chunk);
        prop_assert_eq!(bodies(&stream, stream.len()).0, got);
        let mut client = Client::new(ClientSettings::new("/w"));
        let _ = client.receive(&stream);
        let _ = client.receive(&frame(&stream));
    }
}

#[test]
fn invalid_headers_are_errors() {
    for (header, error) in [
        ("Content-Length: x\r\n\r\n", FrameError::NoLength),
        ("Content-Length: -1\r\n\r\n", FrameError::NoLength),
        ("Content-Length: 1\r\nContent-Length: 2\r\n\r\n", FrameError::NoLength),
        ("Content-Type: a\r\n\r\n", FrameError::NoLength),
        ("\r\n\r\n", FrameError::NoLength),
        ("Content-Length: 99999999999999999999999\r\n\r\n", FrameError::LongBody),
        (&format!("Content-Length: {}\r\n\r\n", MAX_BODY_BYTES + 1), FrameError::LongBody),
        (&"x".repeat(5_000), FrameError::LongHeader),
    ] {
        assert_eq!(bodies(header.as_bytes(), 7).1, Some(error), "{header}");
    }
    let header = "content-length:2\r\nContent-Type: utf-8\r\n\r\n{}";
    assert_eq!(bodies(header.as_bytes(), 3), (vec![b"{}".to_vec()], None));
}
