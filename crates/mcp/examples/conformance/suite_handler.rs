//! A handler that wraps ours: it answers the requests that the product does not support.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::Ordering;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib_mcp::Handler;

use crate::changes::{Changes, NEW_TOOL};
use crate::input_required_tools::{self, Rounds, Step};
use crate::{asking, changes, contents, logging, prompts, resources};

type Context = RequestContext<RoleServer>;

/// Everything that the suite requires.
pub(crate) struct Fixtures {
    ours: Handler,
    rounds: Rounds,
    changes: Changes,
}

impl Fixtures {
    pub(crate) fn around(ours: Handler) -> Result<Fixtures, Box<dyn std::error::Error>> {
        Ok(Fixtures { ours, rounds: Rounds::new()?, changes: Changes::new() })
    }

    /// Tools that our handler does not have.
    fn tools(&self) -> impl Iterator<Item = &'static str> {
        let groups = [
            contents::TOOLS,
            logging::TOOLS,
            asking::TOOLS,
            input_required_tools::TOOLS,
            changes::TOOLS,
        ];
        let new = self.changes.tools.load(Ordering::Relaxed).then_some(NEW_TOOL);
        groups.into_iter().flatten().copied().chain(new)
    }

    fn step(
        &self,
        name: &str,
        (responses, state): (Option<&InputResponses>, Option<&str>),
        context: &Context,
    ) -> Result<Step, ErrorData> {
        let client = context.client_capabilities().unwrap_or_default();
        self.rounds.step(name, &client, responses, state)
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.ours.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        info
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut found = self.ours.discover(context).await?;
        found.capabilities = self.get_info().capabilities;
        Ok(found)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.ours.list_tools(page, context).await?;
        list.tools.extend(self.tools().filter_map(described));
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let made_up = self.tools().find(|tool| *tool == name).and_then(described);
        made_up.or_else(|| self.ours.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        let is_of = |group: &[&str]| group.contains(&&*name);
        let content = if let Some(content) = contents::content(&name) {
            content
        } else if is_of(logging::TOOLS) {
            logging::run(&context).await
        } else if is_of(asking::TOOLS) {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            asking::run(&name, &arguments, &context).await?
        } else if is_of(changes::TOOLS) {
            self.changes.make(&name)
        } else if is_of(input_required_tools::TOOLS) {
            let given = (request.input_responses.as_ref(), request.request_state.as_deref());
            match self.step(&name, given, &context)? {
                Step::Ask(question) => return Ok(question.into()),
                Step::Done(answers) => json!([prompts::text(&format!("Answered: {answers}"))]),
            }
        } else {
            return self.ours.call_tool(request, context).await;
        };
        Ok(answer::<CallToolResult>(json!({"content": content}))?.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.ours.on_custom_request(request, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        answer(prompts::list(self.changes.prompts.load(Ordering::Relaxed)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let messages = if request.name == input_required_tools::PROMPT {
            let given = (request.input_responses.as_ref(), request.request_state.as_deref());
            match self.step(&request.name, given, &context)? {
                Step::Ask(question) => return Ok(question.into()),
                Step::Done(answers) => prompts::of_user(vec![prompts::text(&answers.to_string())]),
            }
        } else {
            let arguments: BTreeMap<String, String> =
                made_of(json!(request.arguments.unwrap_or_default()))?;
            prompts::messages(&request.name, &arguments)
                .ok_or_else(|| ErrorData::invalid_params("no such prompt", None))?
        };
        Ok(answer::<GetPromptResult>(messages)?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        answer(prompts::completions(&request.argument.value))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        answer(resources::list())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        answer(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&request.uri).ok_or_else(|| {
            ErrorData::resource_not_found("no such resource", Some(json!({"uri": request.uri})))
        })?;
        Ok(answer::<ReadResourceResult>(contents)?.into())
    }

    // A level is accepted and ignored.
    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    // No resource changes, so there are no notifications.
    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, listener: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.tell(listener).await;
        Ok(())
    }
}

/// A test tool, as in the list.
fn described(name: &str) -> Option<Tool> {
    let description = "For the conformance suite.";
    let schema = contents::schema(name);
    made_of(json!({"name": name, "description": description, "inputSchema": schema})).ok()
}

/// A complete result, which requires no further input.
fn answer<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = "complete".into();
    made_of(result)
}

/// Builds a protocol type from JSON, as in the pages of the suite.
pub(crate) fn made_of<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(internal)
}

/// An internal error, or an invalid request.
pub(crate) fn internal(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
