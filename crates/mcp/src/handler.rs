//! What is asked of the server, and its answers.

use std::sync::{Arc, Mutex};

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
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use toolcrib::{Call, Cancel, Category, Dialect, Error, Options, Reply, Runtime, ToolInfo};

use crate::approve::{Answered, Asked, Page, Way, input_answer, input_request};
use crate::client_session::Client;
use crate::instructions::instructions;
use crate::leader_follower::{Job, Turns};
use crate::progress::Reporter;
use crate::protocol_types::{self, Manner};
use crate::request_state::{Opened, Seal, bound_to};
use crate::stdio::ServeError;
use crate::tool_request::{Request, wants_dry_run};

/// How a server is to be, besides its runtime.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// Only tell what would be done, in every call.
    pub dry_run: bool,
    /// The name of the program and its version.
    pub program: (String, String),
    /// The directories that it serves, as the model is told them.
    pub roots: Vec<String>,
    /// The words of the tools.
    pub dialect: Dialect,
    /// Results also as objects, with their schemas in the list. Several clients then show the model those
    /// instead of the text.
    pub structured: bool,
}

impl ServeOptions {
    fn manner(&self) -> Manner {
        let structured = self.structured || self.dialect.is_structured();
        Manner { dialect: self.dialect, structured }
    }
}

/// The one input that a call may need: the answer to a question.
const PERMISSION: &str = "permission";

/// For so long a client may keep what we say of ourselves: it does not change while we run.
const FRESH_MILLISECONDS: u64 = 60 * 60 * 1_000;

/// The first version of the protocol in which a server asks by answering.
const ASKS_BY_ANSWERING: &str = "2026-07-28";

/// What a client asks, answered by the tools of a runtime. Public for who wraps it in a handler that answers
/// more.
pub struct Handler {
    runtime: Arc<Runtime>,
    tools: Vec<Tool>,
    options: ServeOptions,
    seal: Seal,
    /// The client of a transport that has one client only.
    sole: Arc<Client>,
    running: Arc<Semaphore>,
    /// Where short calls are made, if not where all others are.
    turns: Option<Turns>,
}

impl Handler {
    /// More calls than this at a time wait for their turn.
    const THREADS: usize = 64;

    /// Threads that end the sessions of clients that are gone, however many calls run.
    const ENDING_THREADS: usize = 4;

    /// What messages are read and written on, and the threads that calls run on.
    pub(crate) fn threads() -> std::io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(Self::THREADS + Self::ENDING_THREADS)
            .build()
    }

    /// A handler. Requests over HTTP belong to the session of their client; all others share one.
    pub fn new(runtime: Runtime, options: ServeOptions) -> Result<Self, ServeError> {
        let tools = protocol_types::tools(&runtime, options.manner())
            .map_err(|error| ServeError::new(&error))?;
        let seal = Seal::new().map_err(|error| ServeError::new(&error))?;
        let runtime = Arc::new(runtime);
        let running = Arc::new(Semaphore::new(Self::THREADS));
        Ok(Handler { runtime, tools, options, seal, sole: Arc::default(), running, turns: None })
    }

    /// The same, with short calls made in turns.
    pub(crate) fn taking(self, turns: Turns) -> Self {
        Handler { turns: Some(turns), ..self }
    }

    /// Has a call made: by the thread that moves the messages, if it only looks at files, which is short more often
    /// than not; otherwise by one of its own.
    fn begin(&self, tool: &str, job: Job) {
        let looks = |tool: &ToolInfo<'_>| tool.category == Category::File && tool.hints.read_only;
        let is_short = self.runtime.tool_named(tool).is_some_and(|tool| looks(&tool));
        let left = match &self.turns {
            Some(turns) if is_short => turns.hand_in(job),
            _ => Err(job),
        };
        if let Err(job) = left {
            tokio::task::spawn_blocking(job);
        }
    }

    /// The client of a transport that has one client only.
    pub(crate) fn sole_client(&self) -> Arc<Client> {
        self.sole.clone()
    }

    /// How the client of this call can be asked.
    fn way(
        &self,
        request: &Request,
        context: &RequestContext<RoleServer>,
    ) -> Result<Way, ErrorData> {
        let can = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
        let modern =
            context.protocol_version().is_some_and(|version| version.as_str() >= ASKS_BY_ANSWERING);
        Ok(match (can, modern) {
            (false, _) => Way::Nobody,
            (true, false) => {
                Way::Request { context: Box::new(context.clone()), runtime: Handle::current() }
            }
            (true, true) => {
                let call = bound_to(&request.tool, &request.arguments);
                let state = request.state.as_ref();
                let asked = match state.map(|state| self.seal.open(state, &call)) {
                    None | Some(Opened::Void) => None,
                    Some(Opened::Question(asked)) => Some(asked),
                    Some(Opened::Forged) => {
                        let message = "requestState was not issued by this server for this call";
                        return Err(ErrorData::invalid_params(message, None));
                    }
                };
                let response = request.responses.as_ref().and_then(|all| all.get(PERMISSION));
                let before =
                    asked.zip(response).map(|(asked, response)| (asked, input_answer(response)));
                Way::Answered(Box::new(Answered { before, open: Mutex::new(None) }))
            }
        })
    }

    /// One call, from what a client sent to what it gets. Every call of every transport is made here, so that
    /// each has the same options.
    async fn call(
        &self,
        request: Request,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let dry_run = self.options.dry_run || wants_dry_run(&context.meta)?;
        let way = Arc::new(self.way(&request, &context)?);
        let Request { tool, arguments, .. } = request;
        let reporter =
            Arc::new(Reporter::new(context.peer.clone(), context.meta.get_progress_token()));
        let permit = tokio::select! {
            permit = self.running.clone().acquire_owned() => permit,
            () = context.ct.cancelled() => return Ok(cancelled().into()),
        };
        let work = Work {
            runtime: self.runtime.clone(),
            client: Client::of(&context).unwrap_or_else(|| self.sole.clone()),
            call: Call::new(tool.clone(), arguments.clone()),
            dry_run,
            dialect: self.options.dialect,
            way: way.clone(),
            reporter: reporter.clone(),
            cancel: Arc::default(),
        };
        let cancel = work.cancel.clone();
        let (tell, mut running) = oneshot::channel();
        let job = move || {
            let outcome = work.run();
            drop(permit);
            // Nobody may wait for it any more.
            let _ = tell.send(outcome);
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
        let question = match &*way {
            Way::Answered(answered) => answered.open(),
            _ => None,
        };
        match question.and_then(|question| self.ask(&tool, &arguments, question)) {
            Some(question) => Ok(question.into()),
            None => Ok(self.result(&tool, &outcome).into()),
        }
    }

    fn result(&self, name: &str, outcome: &Result<Reply, Error>) -> CallToolResult {
        let tool = self.runtime.tool_named(name).map(|tool| tool.name);
        protocol_types::result(self.options.manner(), tool, outcome)
    }

    /// The answer that is a question.
    fn ask(
        &self,
        tool: &str,
        arguments: &Value,
        (asked, page): (Asked, Page),
    ) -> Option<InputRequiredResult> {
        let state = self.seal.seal(asked, &bound_to(tool, arguments))?;
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
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(self.tools.clone());
        (list.ttl_ms, list.cache_scope) = (Some(FRESH_MILLISECONDS), Some(CacheScope::Public));
        Ok(list)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(FRESH_MILLISECONDS)
            .with_cache_scope(CacheScope::Public))
    }

    // There is nothing of these, and to answer with an empty list would say that there could be.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    // On the heap: the protocol's layers would move it along from one to the next.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(self.call(Request::typed(request), context))
    }

    /// A call that is none to the protocol's types, most often because its arguments are not an object.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != CallToolRequestMethod::VALUE {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let response = Box::pin(self.call(Request::untyped(request.params)?, context)).await?;
        let result = match response {
            CallToolResponse::InputRequired(question) => serde_json::to_value(question),
            CallToolResponse::Complete(result) => serde_json::to_value(result),
            _ => Ok(Value::Null),
        };
        result
            .map(CustomResult::new)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// One call, as a thread makes it.
struct Work {
    runtime: Arc<Runtime>,
    client: Arc<Client>,
    call: Call,
    dry_run: bool,
    dialect: Dialect,
    way: Arc<Way>,
    reporter: Arc<Reporter>,
    cancel: Arc<Cancel>,
}

impl Work {
    fn run(self) -> Result<Reply, Error> {
        let _listed = self.client.calls().add(self.cancel.clone());
        let reporter = &self.reporter;
        let options = Options {
            dry_run: self.dry_run,
            cancel: &self.cancel,
            approver: &*self.way,
            dialect: self.dialect,
            progress: &|progress| reporter.tell(progress),
        };
        self.runtime.call(self.client.session(&self.runtime), self.call, options)
    }
}

/// The client does not want the answer any more; the protocol wants one all the same.
fn cancelled() -> CallToolResult {
    CallToolResult::error(vec![rmcp::model::ContentBlock::text(
        "the call was cancelled by its caller",
    )])
}
