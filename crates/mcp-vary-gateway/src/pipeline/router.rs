//! The method table: the gateway on one screen.

use std::sync::Arc;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::method_names::is_of_the_protocol;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use crate::pipeline::member_check;
use crate::pipeline::methods::{
    Dispatch, completion, extensions, initialize, lists, logging, prompts, resources,
    subscriptions, tasks, tools,
};
use crate::pipeline::request::{IncomingRequest, MethodAction, TaskAction, method_not_found};
use crate::pipeline::request_context::RequestContext;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::client::Client;

/// The eras in which a method exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Eras {
    Legacy,
    Modern,
    Both,
}

/// `initialize` and notifications are not here: the frontends handle them, because they create and use sessions.
#[rustfmt::skip]
const METHODS: &[(&str, Eras, MethodAction)] = &[
    ("ping", Eras::Legacy, MethodAction::Ping),
    ("server/discover", Eras::Modern, MethodAction::Discover),
    ("logging/setLevel", Eras::Legacy, MethodAction::SetLevel),
    ("tools/list", Eras::Both, MethodAction::List(ListKind::Tools)),
    ("tools/call", Eras::Both, MethodAction::CallTool),
    ("resources/list", Eras::Both, MethodAction::List(ListKind::Resources)),
    ("resources/templates/list", Eras::Both, MethodAction::List(ListKind::Templates)),
    ("resources/read", Eras::Both, MethodAction::ReadResource),
    ("resources/directory/read", Eras::Both, MethodAction::Extension),
    ("prompts/list", Eras::Both, MethodAction::List(ListKind::Prompts)),
    ("prompts/get", Eras::Both, MethodAction::GetPrompt),
    ("completion/complete", Eras::Both, MethodAction::Complete),
    ("resources/subscribe", Eras::Legacy, MethodAction::Subscribe),
    ("resources/unsubscribe", Eras::Legacy, MethodAction::Unsubscribe),
    ("subscriptions/listen", Eras::Modern, MethodAction::Listen),
    ("tasks/get", Eras::Both, MethodAction::Task(TaskAction::Get)),
    ("tasks/update", Eras::Both, MethodAction::Task(TaskAction::Update)),
    ("tasks/cancel", Eras::Both, MethodAction::Task(TaskAction::Cancel)),
    ("tasks/result", Eras::Legacy, MethodAction::Task(TaskAction::Result)),
    ("tasks/list", Eras::Legacy, MethodAction::ListTasks),
];

/// Answers a request, or forwards it to its server.
pub(crate) async fn dispatch(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Arc<Client>,
    request: IncomingRequest<'_>,
) -> Dispatch {
    let id = request.id;
    let observation = &client.observation;
    let pending = observation.dispatched(request.method, &request.params);
    observation.speaks(client.revision);
    let outcome = match method_action(request.method, client.era()) {
        Ok(action) => handle(snapshot, client, request, action).await,
        Err(failure) => Err(failure),
    };
    let mut outcome =
        outcome.unwrap_or_else(|failure| Dispatch::Done(failure.reply(Some(id), client.era())));
    pending.end();
    match &mut outcome {
        Dispatch::Done(reply) => observation.answered(reply),
        // Observed with its response.
        Dispatch::InFlight(running) => running.observation.in_flight(),
        Dispatch::Listen(_) => observation.stream_opened(),
    }
    outcome
}

pub(crate) fn method_action(method: &str, era: Era) -> Result<MethodAction, RpcError> {
    let row = METHODS.iter().find(|(name, _, _)| *name == method);
    match row {
        Some((_, Eras::Both, action)) => Ok(*action),
        Some((_, Eras::Legacy, action)) if era == Era::Legacy => Ok(*action),
        Some((_, Eras::Modern, action)) if era == Era::Modern => Ok(*action),
        None if !is_of_the_protocol(method) => Ok(MethodAction::Extension),
        _ => Err(method_not_found(method)),
    }
}

/// Whether no server can read these `params` of `method` differently than the gateway; false for a method of neither era.
pub fn accepts_params(method: &str, params: &Params<'_>) -> bool {
    let eras = [Era::Legacy, Era::Modern].into_iter();
    let mut actions = eras.filter_map(|era| method_action(method, era).ok());
    let action = actions.next();
    action.is_some_and(|action| member_check::check(action, params).is_ok())
}

async fn handle(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Arc<Client>,
    request: IncomingRequest<'_>,
    action: MethodAction,
) -> Result<Dispatch, RpcError> {
    member_check::check(action, &request.params)
        .map_err(|refusal| refusal.into_counted_error(&snapshot.services.counters))?;
    let context = &mut RequestContext::open(snapshot, client, request, action).await?;
    // The futures of rare methods are boxed, so that the future of a call stays small.
    match action {
        MethodAction::Ping => Ok(context.answer("{}")),
        MethodAction::Discover => initialize::discover(context),
        MethodAction::SetLevel => Box::pin(logging::set_level(context)).await,
        MethodAction::List(kind) => lists::list(context, kind).await,
        MethodAction::CallTool => tools::call_tool(context).await,
        MethodAction::ReadResource => Box::pin(resources::read(context)).await,
        MethodAction::GetPrompt => Box::pin(prompts::get(context)).await,
        MethodAction::Complete => Box::pin(completion::complete(context)).await,
        MethodAction::ListTasks => Box::pin(tasks::list::list_tasks(context)).await,
        MethodAction::Task(_) => Box::pin(tasks::request(context)).await,
        MethodAction::Extension => Box::pin(extensions::request(context)).await,
        MethodAction::Subscribe => Box::pin(subscriptions::subscribe(context)).await,
        MethodAction::Unsubscribe => subscriptions::unsubscribe(context),
        MethodAction::Listen => Box::pin(subscriptions::listen(context)).await,
    }
}
