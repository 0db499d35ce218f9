//! `process.v1.ProcessService`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes};
use hyper::header::HeaderMap;
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use toolcrib::ErrorKind;
use toolcrib::backend::{ProcessSignal, ProcessStdin, TerminalSize};

use crate::error_status::grpc_status;
use crate::messages::{
    Empty, Event, ExecuteRequest, ExecuteResponse, Payload, ResizeTtyRequest, SendSignalRequest,
    StartRequest, StartResponse, WriteStdinRequest,
};
use crate::process_events::ProcessEvents;
use crate::processes::{Processes, Start};

/// The largest request. Clients have the same limit for responses by default.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// The largest response: the output of `Execute`, and a little more.
const MAX_RESPONSE_BYTES: usize = MAX_OUTPUT_BYTES + (1 << 10);

/// The output that `Execute` keeps in memory.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// The size of a terminal for a client that does not say it.
const USUAL_SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

type Answering<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

/// Answers a request.
pub(crate) async fn answer<B>(
    processes: Arc<Processes>,
    request: hyper::Request<B>,
) -> hyper::Response<tonic::body::Body>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let timeout = timeout(request.headers());
    let path = request.uri().path().to_owned();
    match path.strip_prefix("/process.v1.ProcessService/") {
        Some("Start") => {
            let mut grpc = limited::<StartResponse, StartRequest>();
            grpc.server_streaming(StartCall { processes, timeout }, request).await
        }
        Some("Execute") => {
            unary(request, move |message| execute(processes.clone(), message, timeout)).await
        }
        Some("WriteStdin") => {
            unary(request, move |message| write_stdin(processes.clone(), message)).await
        }
        Some("SendSignal") => {
            unary(request, move |message| send_signal(processes.clone(), message)).await
        }
        Some("ResizeTTY") => {
            unary(request, move |message| resize_tty(processes.clone(), message)).await
        }
        _ => Status::unimplemented("there is no such method").into_http(),
    }
}

fn limited<Sent, Received>() -> Grpc<ProstCodec<Sent, Received>>
where
    Sent: prost::Message + 'static,
    Received: prost::Message + Default + 'static,
{
    Grpc::new(ProstCodec::default())
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .max_encoding_message_size(MAX_RESPONSE_BYTES)
}

/// Answers a request with one message by a function.
async fn unary<B, Received, Sent, F, Fut>(
    request: hyper::Request<B>,
    call: F,
) -> hyper::Response<tonic::body::Body>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    Received: prost::Message + Default + 'static,
    Sent: prost::Message + Default + 'static,
    F: Fn(Received) -> Fut,
    Fut: Future<Output = Result<Sent, Status>> + Send + 'static,
{
    limited::<Sent, Received>().unary(UnaryCall(call), request).await
}

struct UnaryCall<F>(F);

impl<F, Fut, Received, Sent> UnaryService<Received> for UnaryCall<F>
where
    F: Fn(Received) -> Fut,
    Fut: Future<Output = Result<Sent, Status>> + Send + 'static,
{
    type Response = Sent;
    type Future = Answering<Sent>;

    fn call(&mut self, request: Request<Received>) -> Self::Future {
        let answered = (self.0)(request.into_inner());
        Box::pin(async move { answered.await.map(Response::new) })
    }
}

struct StartCall {
    processes: Arc<Processes>,
    timeout: Option<Duration>,
}

impl ServerStreamingService<StartRequest> for StartCall {
    type Response = StartResponse;
    type ResponseStream = ProcessEvents;
    type Future = Answering<ProcessEvents>;

    fn call(&mut self, request: Request<StartRequest>) -> Self::Future {
        let (processes, timeout) = (self.processes.clone(), self.timeout);
        let StartRequest { config, pty } = request.into_inner();
        Box::pin(async move {
            let stdin = match pty {
                None => ProcessStdin::Open,
                Some(pty) => ProcessStdin::Terminal(terminal_size(pty.rows, pty.cols)?),
            };
            let events = processes.start(Start { config, stdin, timeout })?;
            events.started().await.map(Response::new)
        })
    }
}

async fn execute(
    processes: Arc<Processes>,
    ExecuteRequest { config }: ExecuteRequest,
    timeout: Option<Duration>,
) -> Result<ExecuteResponse, Status> {
    let stdin = ProcessStdin::Content(Vec::new());
    let mut events = processes.start(Start { config, stdin, timeout })?;
    let mut response = ExecuteResponse::default();
    while let Some(event) = events.next().await {
        match event? {
            Event::Init(_) => {}
            Event::Stdout(bytes) => response.stdout.extend_from_slice(&bytes),
            Event::Stderr(bytes) => response.stderr.extend_from_slice(&bytes),
            Event::Exit(exit) => {
                response.exit_code = exit.exit_code;
                return Ok(response);
            }
        }
        if response.stdout.len() + response.stderr.len() > MAX_OUTPUT_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the process wrote more than {MAX_OUTPUT_BYTES} bytes and was killed: use Start, or write to a file"
            )));
        }
    }
    Err(Status::internal("the process ended by an error in this program"))
}

async fn write_stdin(
    processes: Arc<Processes>,
    WriteStdinRequest { process_id, payload }: WriteStdinRequest,
) -> Result<Empty, Status> {
    let running = processes.get(process_id)?;
    let write = processes.begin_write()?;
    let written = on_thread(move || {
        let _write = write;
        match payload {
            None => Ok(()),
            Some(Payload::Input(bytes)) => running.control.write_stdin(&bytes),
            Some(Payload::Eof(_)) => running.control.close_stdin(),
        }
    });
    match written.await? {
        Ok(()) => Ok(Empty {}),
        // It has closed its stdin, or the client has.
        Err(error) if error.kind() == ErrorKind::Io => {
            Err(Status::failed_precondition(error.text()))
        }
        Err(error) => Err(grpc_status(&error)),
    }
}

async fn send_signal(
    processes: Arc<Processes>,
    SendSignalRequest { process_id, signal }: SendSignalRequest,
) -> Result<Empty, Status> {
    let running = processes.get(process_id)?;
    let signal = match signal {
        2 => ProcessSignal::Interrupt,
        9 => ProcessSignal::Kill,
        15 => ProcessSignal::Terminate,
        _ => {
            return Err(Status::invalid_argument("the signal is none of SIGINT, SIGKILL, SIGTERM"));
        }
    };
    let sent = on_thread(move || running.control.signal(signal)).await?;
    sent.map(|()| Empty {}).map_err(|error| grpc_status(&error))
}

async fn resize_tty(
    processes: Arc<Processes>,
    ResizeTtyRequest { process_id, cols, rows }: ResizeTtyRequest,
) -> Result<Empty, Status> {
    let running = processes.get(process_id)?;
    let size = terminal_size(rows, cols)?;
    let resized = on_thread(move || running.control.resize(size)).await?;
    resized.map(|()| Empty {}).map_err(|error| match error.kind() {
        ErrorKind::Invalid => Status::failed_precondition(error.text()),
        _ => grpc_status(&error),
    })
}

/// Does something that may block.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Status::internal("the request failed by an error in this program"))
}

/// The size of a terminal. Zero stands for the usual one.
fn terminal_size(rows: u32, columns: u32) -> Result<TerminalSize, Status> {
    let fits = |value: u32, usual: u16| match value {
        0 => Ok(usual),
        value => u16::try_from(value)
            .map_err(|_| Status::invalid_argument("a terminal has at most 65535 rows and columns")),
    };
    let (rows, columns) = (fits(rows, USUAL_SIZE.rows)?, fits(columns, USUAL_SIZE.columns)?);
    Ok(TerminalSize { rows, columns })
}

/// The time limit of a request: a number and a unit in `grpc-timeout`.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    // The protocol allows eight digits.
    let number: u64 = number.parse().ok().filter(|_| number.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_time_limit_has_a_unit() {
        let limit = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", HeaderValue::from_static(text));
            timeout(&headers)
        };
        assert_eq!(limit("5S"), Some(Duration::from_secs(5)));
        assert_eq!(limit("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(limit("1500m"), Some(Duration::from_millis(1_500)));
        for bad in ["", "S", "5", "5x", "-5S", "123456789S"] {
            assert_eq!(limit(bad), None, "{bad}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    #[test]
    fn a_terminal_has_a_size() {
        assert_eq!(terminal_size(0, 0).unwrap(), USUAL_SIZE);
        assert_eq!(terminal_size(40, 120).unwrap(), TerminalSize { rows: 40, columns: 120 });
        assert!(terminal_size(65_536, 80).is_err());
    }
}
