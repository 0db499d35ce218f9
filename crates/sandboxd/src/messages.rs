//! The messages of `process.v1.ProcessService`.

use std::collections::HashMap;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Pty {
    #[prost(uint32, tag = "1")]
    pub(crate) cols: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) rows: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProcessConfig {
    #[prost(string, repeated, tag = "1")]
    pub(crate) command: Vec<String>,
    #[prost(map = "string, string", tag = "2")]
    pub(crate) env_vars: HashMap<String, String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) cwd: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StartRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<ProcessConfig>,
    #[prost(message, optional, tag = "2")]
    pub(crate) pty: Option<Pty>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InitEvent {
    #[prost(int32, tag = "1")]
    pub(crate) process_id: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExitEvent {
    #[prost(int32, tag = "1")]
    pub(crate) exit_code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StartResponse {
    #[prost(oneof = "Event", tags = "1, 2, 3, 4")]
    pub(crate) event: Option<Event>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Event {
    #[prost(message, tag = "1")]
    Init(InitEvent),
    #[prost(bytes, tag = "2")]
    Stdout(Vec<u8>),
    #[prost(bytes, tag = "3")]
    Stderr(Vec<u8>),
    #[prost(message, tag = "4")]
    Exit(ExitEvent),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecuteRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<ProcessConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecuteResponse {
    #[prost(int32, tag = "1")]
    pub(crate) exit_code: i32,
    #[prost(bytes, tag = "2")]
    pub(crate) stdout: Vec<u8>,
    #[prost(bytes, tag = "3")]
    pub(crate) stderr: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteStdinRequest {
    #[prost(int32, tag = "1")]
    pub(crate) process_id: i32,
    #[prost(oneof = "Payload", tags = "2, 3")]
    pub(crate) payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Payload {
    #[prost(bytes, tag = "2")]
    Input(Vec<u8>),
    #[prost(message, tag = "3")]
    Eof(Empty),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SendSignalRequest {
    #[prost(int32, tag = "1")]
    pub(crate) process_id: i32,
    /// The number of the signal. 0 is unspecified.
    #[prost(int32, tag = "2")]
    pub(crate) signal: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResizeTtyRequest {
    #[prost(int32, tag = "1")]
    pub(crate) process_id: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) cols: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) rows: u32,
}

/// `google.protobuf.Empty`, and the responses without fields.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    /// The bytes that `protoc --encode` gives for the published definitions.
    #[test]
    fn messages_have_the_published_field_numbers() {
        let config = ProcessConfig {
            command: vec!["a".to_owned()],
            env_vars: HashMap::from([("K".to_owned(), "V".to_owned())]),
            cwd: Some("d".to_owned()),
        };
        let encoded = b"\x0a\x01a\x12\x06\x0a\x01K\x12\x01V\x1a\x01d";
        assert_eq!(config.encode_to_vec(), encoded);
        let request = StartRequest { config: Some(config), pty: Some(Pty { cols: 80, rows: 24 }) };
        let encoded = [&b"\x0a\x0e"[..], encoded, b"\x12\x04\x08\x50\x10\x18"].concat();
        assert_eq!(request.encode_to_vec(), encoded);
        for (event, encoded) in [
            (Event::Init(InitEvent { process_id: 7 }), &b"\x0a\x02\x08\x07"[..]),
            (Event::Stdout(b"o".to_vec()), b"\x12\x01o"),
            (Event::Stderr(b"e".to_vec()), b"\x1a\x01e"),
            (Event::Exit(ExitEvent { exit_code: 3 }), b"\x22\x02\x08\x03"),
        ] {
            assert_eq!(StartResponse { event: Some(event) }.encode_to_vec(), encoded);
        }
        let executed = ExecuteResponse { exit_code: 1, stdout: vec![111], stderr: vec![101] };
        assert_eq!(executed.encode_to_vec(), b"\x08\x01\x12\x01o\x1a\x01e");
        let eof = WriteStdinRequest { process_id: 7, payload: Some(Payload::Eof(Empty {})) };
        assert_eq!(eof.encode_to_vec(), b"\x08\x07\x1a\x00");
        let signal = SendSignalRequest { process_id: 7, signal: 15 };
        assert_eq!(signal.encode_to_vec(), b"\x08\x07\x10\x0f");
        let resize = ResizeTtyRequest { process_id: 7, cols: 120, rows: 40 };
        assert_eq!(resize.encode_to_vec(), b"\x08\x07\x10\x78\x18\x28");
    }
}
