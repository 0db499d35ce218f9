//! JSON messages as lines.
//!
//! A line that is too long or invalid is answered with an error, so that the client does not wait for a response.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use crate::fast_parse;

/// The longest accepted message: longer than any file that a tool writes at once.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// NdjsonTransport in, lines out.
pub(crate) struct NdjsonTransport<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
}

/// The result of reading a line.
enum Line {
    Whole(Vec<u8>),
    TooLong(usize),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> NdjsonTransport<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        NdjsonTransport {
            input: BufReader::with_capacity(64 << 10, input),
            output: Arc::new(Mutex::new(output)),
        }
    }

    /// The next line, without its newline. `None` at the end of the input.
    async fn read_line(&mut self) -> io::Result<Option<Line>> {
        let (mut line, mut length) = (Vec::new(), 0);
        loop {
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((length > 0).then(|| whole(line, length)));
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            length += part.len();
            if length <= MAX_MESSAGE_BYTES {
                line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                return Ok(Some(whole(line, length)));
            }
        }
    }
}

fn whole(line: Vec<u8>, length: usize) -> Line {
    if length > MAX_MESSAGE_BYTES { Line::TooLong(length) } else { Line::Whole(line) }
}

impl<R, W> Transport<RoleServer> for NdjsonTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let line = serde_json::to_vec(&item).map_err(io::Error::other)?;
            write_line(&output, line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let problem = match self.read_line().await {
                Err(_) | Ok(None) => return None,
                Ok(Some(Line::Whole(line))) if line.trim_ascii().is_empty() => continue,
                Ok(Some(Line::Whole(line))) => match message(&line) {
                    Ok(message) => return Some(message),
                    Err(error) => invalid_line(&line, &error),
                },
                Ok(Some(Line::TooLong(bytes))) => too_long(bytes),
            };
            // A client that does not read this response reads no other. The next read reports the closed
            // connection.
            let _ = write_line(&self.output, problem.to_string().into_bytes()).await;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }
}

fn message(line: &[u8]) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
    fast_parse::call(line).map_or_else(|| serde_json::from_slice(line), Ok)
}

async fn write_line(output: &Mutex<impl AsyncWrite + Unpin>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// The response to an invalid line, with its id if that can be parsed.
fn invalid_line(line: &[u8], error: &serde_json::Error) -> Value {
    match serde_json::from_slice::<Value>(line) {
        Ok(value) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_number());
            let message = "not a JSON-RPC 2.0 request, notification or response";
            failure(id.cloned().unwrap_or(Value::Null), -32600, message)
        }
        Err(_) => failure(Value::Null, -32700, &format!("not valid JSON: {error}")),
    }
}

fn too_long(bytes: usize) -> Value {
    let message = format!("the line has {bytes} bytes, more than the {MAX_MESSAGE_BYTES} allowed");
    failure(Value::Null, -32600, &message)
}

fn failure(id: Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
