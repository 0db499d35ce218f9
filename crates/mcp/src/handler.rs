//! The MCP request handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rmcp::model::{
    CacheScope, CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString as _, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, Implementation, InputRequiredResult,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use toolcrib::{
    Call, CallOrigin, Cancel, Category, Dialect, Error, Options, Reply, Runtime, ToolInfo,
    similar_names, visible_name,
};
use toolcrib_monitor::protocol::Server;
use toolcrib_monitor::{FirstAnswer, Monitor, SharedCall, SharedQuestions};

use crate::approve::{
    ApprovalChannel, InputRequiredApproval, Page, QuestionPart, UNSEEN_DECLINE, input_answer,
    input_request, is_declined,
};
use crate::call_origin;
use crate::caller::{Caller, Lacking};
use crate::client_session::Client;
use crate::instructions::instructions;
use crate::leader_follower::{CallSubmitter, Job};
use crate::progress::Reporter;
use crate::scope::Scope;
use crate::sealed_request_state::{OpenedState, StateSealer, associated_data_of};
use crate::serve_error::ServeError;
use crate::to_protocol::{self, Presentation};
use crate::tool_request::{CallOptions, Request};

/// Options of a server, besides its runtime.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// Makes every call a dry run.
    pub dry_run: bool,
    /// The name of the program and its version.
    pub program: (String, String),
    /// The directories that it serves, as shown to the model.
    pub roots: Vec<String>,
    /// The names of tools and fields.
    pub dialect: Dialect,
    /// Also returns results as objects, with their schemas in the list. Several clients then show the model these
    /// instead of the text.
    pub structured: bool,
    /// Shows its calls and questions to the user's other programs.
    pub monitor: Option<Arc<Monitor>>,
    /// Where other machines can answer its questions.
    pub shared_questions: Option<Arc<dyn SharedQuestions>>,
}

impl ServeOptions {
    fn presentation(&self) -> Presentation {
        let structured = self.structured || self.dialect.is_structured();
        Presentation { dialect: self.dialect, structured }
    }
}

/// The only input that a call may require: an approval.
const PERMISSION: &str = "permission";

/// Characters of the name of a client.
const MAX_CLIENT_CHARS: usize = 200;

/// The time for which a client may cache the server's description and tool list. They do not change while it runs.
const CACHE_MILLISECONDS: u64 = 60 * 60 * 1_000;

/// The first protocol version whose results have a `resultType`, which may be `InputRequired`, and whose lists say how
/// long they may be kept.
const FIRST_VERSION_WITH_RESULT_TYPES: &str = "2026-07-28";

/// Answers requests with the tools of a runtime. It is public so that another handler can wrap it.
pub struct Handler {
    runtime: Arc<Runtime>,
    /// The tools as clients see them. Made for the first client that asks, since it takes longer than the rest of the
    /// start.
    tools: OnceLock<Result<Vec<Tool>, ErrorData>>,
    options: ServeOptions,
    sealer: StateSealer,
    monitor: Arc<Monitor>,
    /// Whether the monitor knows the name of a client.
    has_named_client: AtomicBool,
    /// The client of a transport with a single client.
    sole: Arc<Client>,
    running: Arc<Semaphore>,
    /// Runs short calls on the message thread, if the transport supports it.
    submitter: Option<CallSubmitter>,
}

impl Handler {
    /// The maximum number of concurrent calls.
    pub(crate) const THREADS: usize = 64;

    /// Threads for ending the sessions of disconnected clients, independent of the number of calls.
    const ENDING_THREADS: usize = 4;

    /// The runtime for messages, with threads for this many calls.
    pub(crate) fn threads(calls: usize) -> std::io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(calls + Self::ENDING_THREADS)
            .build()
    }

    /// Creates a handler. HTTP requests use the session of their client; all others share one. Several handlers may have
    /// the same runtime.
    pub fn new(
        runtime: impl Into<Arc<Runtime>>,
        options: ServeOptions,
    ) -> Result<Self, ServeError> {
        let runtime = runtime.into();
        let sealer = StateSealer::new().map_err(|error| ServeError::new(&error))?;
        let running = Arc::new(Semaphore::new(Self::THREADS));
        let monitor = options.monitor.clone();
        let monitor = monitor.unwrap_or_else(|| Monitor::new(Server::default(), None));
        Ok(Handler {
            runtime,
            tools: OnceLock::new(),
            options,
            sealer,
            monitor,
            has_named_client: AtomicBool::new(false),
            sole: Arc::default(),
            running,
            submitter: None,
        })
    }

    /// Limits the concurrent calls further.
    pub(crate) fn with_max_calls(self, max: usize) -> Self {
        Handler { running: Arc::new(Semaphore::new(max)), ..self }
    }

    /// Runs short calls on the message thread.
    pub(crate) fn with_submitter(self, submitter: CallSubmitter) -> Self {
        Handler { submitter: Some(submitter), ..self }
    }

    /// The tools as clients see them.
    fn shown_tools(&self) -> Result<&[Tool], ErrorData> {
        let shown = self.tools.get_or_init(|| {
            let tools = to_protocol::tools(&self.runtime, self.options.presentation());
            tools.map_err(|error| ErrorData::internal_error(error.to_string(), None))
        });
        shown.as_deref().map_err(Clone::clone)
    }

    /// Runs a call: on the message thread if the tool only reads files, which is usually short; otherwise on
    /// another thread.
    fn begin(&self, tool: &str, job: Job) {
        let looks = |tool: &ToolInfo<'_>| tool.category == Category::File && tool.hints.read_only;
        let is_short = self.runtime.tool_named(tool).is_some_and(|tool| looks(&tool));
        let left = match &self.submitter {
            Some(submitter) if is_short => submitter.submit(job),
            _ => Err(job),
        };
        if let Err(job) = left {
            tokio::task::spawn_blocking(job);
        }
    }

    /// The scope that calls of a tool need, for callers with access tokens.
    pub(crate) fn scope_of(&self, tool: &str) -> Scope {
        let Some(tool) = self.runtime.tool_named(tool) else { return Scope::Read };
        match tool.category {
            Category::Execution => Scope::Exec,
            _ if tool.hints.read_only => Scope::Read,
            Category::File | Category::History => Scope::Write,
            // A tool of the host program can do anything.
            Category::Other => Scope::Exec,
        }
    }

    /// The runtime of the calls.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The client of a transport with a single client.
    pub(crate) fn sole_client(&self) -> Arc<Client> {
        self.sole.clone()
    }

    /// Tells the monitor the name of the first client.
    fn name_client(&self, context: &RequestContext<RoleServer>) {
        if self.has_named_client.load(Ordering::Relaxed) {
            return;
        }
        if let Some(name) = call_origin::client_name(context) {
            self.has_named_client.store(true, Ordering::Relaxed);
            self.monitor.name_client(&name.chars().take(MAX_CLIENT_CHARS).collect::<String>());
        }
    }

    /// How the client of this call can be asked for approval.
    fn approval_channel(
        &self,
        request: &Request,
        context: &RequestContext<RoleServer>,
        client: &Arc<Client>,
    ) -> Result<ApprovalChannel, ErrorData> {
        // A caller without the scope does not answer questions, not even about their own calls.
        let may = Caller::of(context).is_none_or(|caller| caller.may(Scope::Approve));
        let can = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
        let can = can && may;
        Ok(match (can, has_result_types(context)) {
            (false, _) => ApprovalChannel::Unavailable,
            (true, false) => ApprovalChannel::Elicitation {
                context: Box::new(context.clone()),
                runtime: Handle::current(),
                client: client.clone(),
            },
            (true, true) if client.cannot_ask() && self.monitor.has_active_viewer() => {
                ApprovalChannel::Unavailable
            }
            (true, true) => {
                let call = associated_data_of(&request.tool, &request.arguments);
                let state = request.state.as_ref();
                let asked = match state.map(|state| self.sealer.open(state, &call)) {
                    None | Some(OpenedState::Stale) => None,
                    Some(OpenedState::Question(asked, age)) => Some((asked, age)),
                    // Another machine may have issued it, and has ended. The question is asked again.
                    Some(OpenedState::Forged) if self.options.shared_questions.is_some() => None,
                    Some(OpenedState::Forged) => {
                        let message = "requestState was not issued by this server for this call";
                        return Err(ErrorData::invalid_params(message, None));
                    }
                };
                let response = request.responses.as_ref().and_then(|all| all.get(PERMISSION));
                let is_unseen = |age| age < UNSEEN_DECLINE && response.is_some_and(is_declined);
                if let Some((_, age)) = asked
                    && is_unseen(age)
                    && self.monitor.has_active_viewer()
                {
                    client.set_cannot_ask();
                    return Ok(ApprovalChannel::Unavailable);
                }
                let answered_part = asked
                    .zip(response)
                    .map(|((asked, _), response)| (asked, input_answer(response)));
                ApprovalChannel::InputRequired(Box::new(InputRequiredApproval {
                    answered_part,
                    open: Mutex::new(None),
                }))
            }
        })
    }

    /// Runs one call. Every transport uses this function, so that all calls have the same options.
    async fn call(
        &self,
        request: Request,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(caller) = Caller::of(&context) {
            caller.check(&[self.scope_of(&request.tool)]).map_err(lacking_scope)?;
        }
        let options = CallOptions::of(&context.meta)?;
        let client = Client::of(&context).unwrap_or_else(|| self.sole.clone());
        self.name_client(&context);
        let channel = Arc::new(self.approval_channel(&request, &context, &client)?);
        let Request { tool, arguments, .. } = request;
        let reporter =
            Arc::new(Reporter::new(context.peer.clone(), context.meta.get_progress_token()));
        let permit = tokio::select! {
            permit = self.running.clone().acquire_owned() => permit,
            () = context.ct.cancelled() => return Ok(cancelled().into()),
        };
        let origin = call_origin::of(&context);
        let shared = self.options.shared_questions.clone();
        let work = Work {
            shared: shared.map(|shared| SharedIdentity::new(shared, &tool, &arguments, &context)),
            runtime: self.runtime.clone(),
            client,
            monitor: self.monitor.clone(),
            call: Call::new(tool.clone(), arguments.clone()),
            dry_run: self.options.dry_run || options.dry_run,
            dialect: self.options.dialect,
            channel: channel.clone(),
            reporter: reporter.clone(),
            cancel: Arc::default(),
            origin,
        };
        let cancel = work.cancel.clone();
        let (report, mut running) = oneshot::channel();
        let job = move || {
            let outcome = work.run();
            drop(permit);
            // The receiver may be gone.
            let _ = report.send(outcome);
        };
        self.begin(&tool, Box::new(job));
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = context.ct.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                () = reporter.heartbeat(&tool) => {}
            }
        };
        let outcome =
            outcome.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let question = match &*channel {
            ApprovalChannel::InputRequired(answered) => answered.open(),
            _ => None,
        };
        match question.and_then(|question| self.ask(&tool, &arguments, question)) {
            Some(question) => Ok(question.into()),
            None => Ok(self.result(&tool, options.metadata, &outcome).into()),
        }
    }

    fn result(&self, name: &str, metadata: bool, outcome: &Result<Reply, Error>) -> CallToolResult {
        let tool = self.runtime.tool_named(name).map(|tool| tool.name);
        to_protocol::result(self.options.presentation(), metadata, tool, outcome)
    }

    /// The `InputRequired` result with a question.
    fn ask(
        &self,
        tool: &str,
        arguments: &Value,
        (asked, page): (QuestionPart, Page),
    ) -> Option<InputRequiredResult> {
        let state = self.sealer.seal(asked, &associated_data_of(tool, arguments))?;
        let input = input_request(&page)?;
        let inputs = std::iter::once((PERMISSION.to_owned(), input)).collect();
        Some(InputRequiredResult::new(Some(inputs), Some(state)))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let (name, version) = &self.options.program;
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions(instructions(
                &self.options.roots,
                &self.runtime,
                self.options.dialect,
            ));
        config.server_info = Implementation::new(name.clone(), version.clone());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.name_client(&context);
        let mut tools = self.shown_tools()?.to_vec();
        if let Some(caller) = Caller::of(&context) {
            // A tool that is granted and not in the token stays: a client asks for a new token when it is called.
            tools.retain(|tool| caller.granted.contains(self.scope_of(&tool.name)));
        }
        if to_protocol::needs_nullable_fields(context.client_info().as_ref()) {
            tools = tools.into_iter().map(to_protocol::with_nullable_fields).collect();
        }
        let mut list = ListToolsResult::with_all_items(tools);
        if has_result_types(&context) {
            // Private, because the list depends on the client.
            (list.ttl_ms, list.cache_scope) = (Some(CACHE_MILLISECONDS), Some(CacheScope::Private));
        }
        Ok(list)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(CACHE_MILLISECONDS)
            .with_cache_scope(CacheScope::Public))
    }

    // The server has none of these. An empty list would suggest that it supports them.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method(ListPromptsRequestMethod::VALUE))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(unknown_method(ListResourcesRequestMethod::VALUE))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(unknown_method(ListResourceTemplatesRequestMethod::VALUE))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method(CompleteRequestMethod::VALUE))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shown_tools().ok()?.iter().find(|tool| tool.name == name).cloned()
    }

    // Boxed: the protocol's layers would move the large future several times.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(self.call(Request::typed(request), context))
    }

    /// A call that the protocol's types reject, usually because its arguments are not an object.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != CallToolRequestMethod::VALUE {
            return Err(unknown_method(&request.method));
        }
        let has_type = has_result_types(&context);
        let response = Box::pin(self.call(Request::untyped(request.params)?, context)).await?;
        let result = match response {
            CallToolResponse::InputRequired(question) => serde_json::to_value(question),
            CallToolResponse::Complete(mut result) => {
                // The protocol's library removes it from typed results only.
                result.result_type = result.result_type.filter(|_| has_type);
                serde_json::to_value(result)
            }
            _ => Ok(Value::Null),
        };
        result
            .map(CustomResult::new)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// Whether the results of the client's protocol version have a `resultType`, and lists a lifetime.
fn has_result_types(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= FIRST_VERSION_WITH_RESULT_TYPES)
}

/// What an answer on another machine is bound to, besides the question.
struct SharedIdentity {
    questions: Arc<dyn SharedQuestions>,
    /// The tool, the arguments and who makes the call.
    identity: Vec<u8>,
    caller: Option<String>,
}

impl SharedIdentity {
    fn new(
        questions: Arc<dyn SharedQuestions>,
        tool: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> SharedIdentity {
        let principal = Caller::of(context).map(|caller| caller.principal.clone());
        let of_principal = principal.as_ref().map(|one| (&one.issuer, &one.subject));
        // A client that names its session has the same one on another machine.
        let session = Client::session_name(context);
        let identity = json!([tool, arguments, of_principal, session]).to_string().into_bytes();
        let caller = principal.map(|one| format!("{} ({})", one.subject, one.issuer));
        SharedIdentity { questions, identity, caller }
    }

    fn call(&self) -> SharedCall<'_> {
        let SharedIdentity { questions, identity, caller } = self;
        SharedCall { questions: &**questions, identity, caller: caller.as_deref() }
    }
}

/// One call, to be run on a thread.
struct Work {
    shared: Option<SharedIdentity>,
    runtime: Arc<Runtime>,
    client: Arc<Client>,
    monitor: Arc<Monitor>,
    call: Call,
    dry_run: bool,
    dialect: Dialect,
    channel: Arc<ApprovalChannel>,
    reporter: Arc<Reporter>,
    cancel: Arc<Cancel>,
    origin: CallOrigin,
}

impl Work {
    fn run(self) -> Result<Reply, Error> {
        let _listed = self.client.calls().add(self.cancel.clone());
        let reporter = &self.reporter;
        let approver = FirstAnswer::new(&self.monitor, &*self.channel, &self.cancel);
        let approver = approver.of_client(self.origin.client.as_deref());
        let approver = approver.sharing(self.shared.as_ref().map(SharedIdentity::call));
        let options = Options {
            dry_run: self.dry_run,
            cancel: &self.cancel,
            approver: &approver,
            dialect: self.dialect,
            origin: &self.origin,
            progress: &|progress| reporter.report(progress),
        };
        self.runtime.call(self.client.session(&self.runtime), self.call, options)
    }
}

/// The error for a caller who may not make a call. The HTTP transport has refused it already, unless it could not read the
/// call.
fn lacking_scope(lacking: Lacking) -> ErrorData {
    let message = match lacking {
        Lacking::Grant(scope) => format!("the operator does not grant you the scope {scope}"),
        Lacking::InToken(scope) => format!("the access token lacks the scope {scope}"),
    };
    ErrorData::invalid_request(message, None)
}

/// The methods of requests that the server answers.
const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/call", "tools/list"];

/// Characters of an unknown method in the error.
const MAX_METHOD_CHARS: usize = 100;

/// The error for a method that the server does not have. It names those that it has.
fn unknown_method(method: &str) -> ErrorData {
    let shown: String = method.chars().take(MAX_METHOD_CHARS).collect();
    let nearest = match similar_names(&shown, METHODS, 1).as_slice() {
        [nearest, ..] => format!("did you mean {nearest}? "),
        [] => String::new(),
    };
    let message = format!(
        "unknown method {}; {nearest}this server has {}",
        visible_name(shown.as_bytes()),
        METHODS.join(", ")
    );
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// The protocol requires a result, although the client ignores it.
fn cancelled() -> CallToolResult {
    CallToolResult::error(vec![rmcp::model::ContentBlock::text(
        "the call was cancelled by its caller",
    )])
}
