//! Enters the view that a request runs under, by its variant, and finds the item that it names there.

use super::policy;
use crate::pipeline::clients::record_unknown_variant;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::pool::source::ServerSource;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use mcp_vary::error::{Error, Identifier};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::variant::{ServerVariant, Status};
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, VariantReason};
use mcp_vary_catalog::shown::Prompt;
use mcp_vary_observation::RankingDetails;
use mcp_vary_rates::Counted;
use mcp_vary_session::client_uses::ClientRequest;
use mcp_vary_view::{ArgumentError, wrong_arguments};
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::meta::CLIENT_CAPABILITIES;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;
use serde_json::json;
use std::sync::Arc;
use tracing::{debug, warn};

/// Enters the view that the request runs under: that of its variant (SV-8), in the presentation that rules set for the
/// client. Records the variant, and counts uses of deprecated variants (SV-25) and changes of the variant (SV-21).
///
/// # Errors
///
/// `-32602` for a variant that does not exist for the client, and that of a limit that refuses the change.
pub(crate) async fn enter<'r>(context: &'r RequestContext<'r>) -> Result<ViewScope<'r>, RpcError> {
    let (index, reason) = selected_variant(context)?;
    let snapshot = context.snapshot;
    if let Some(limits) = snapshot.config.rates.counting(Counted::Switches) {
        policy::count_variant(context, limits, index, reason.by).await?;
    }
    notify_of_selected(context, index);
    let method = context.request.method;
    let variant = index.get(snapshot.enabled_variants());
    let by = reason.by.as_str();
    let series = index.get(snapshot.variant_metrics.as_slice());
    let id = variant.map(|variant| variant.id.as_str());
    let is_of_operator = context.client.observation.is_of_operator();
    context.client.observation.entered(series, id, by);
    if let Some(variant) = variant {
        let rule = reason.rule.as_deref();
        debug!(variant = %variant.id, by, rule, method, "variant selected");
        if let Some(record) = context.client.observation.record() {
            record.set_variant(&variant.id, &reason, RankingDetails::default());
            if !is_of_operator {
                record.use_variant(context.client.connection, || ranking_details(context));
            }
        }
    }
    if !is_of_operator {
        count_client(context, variant.map(|variant| (variant, &reason)));
    }
    let presentation = context.client.presentation;
    Ok(context.in_view(snapshot.variant_set.presented_view(index, presentation)))
}

/// What ranked the variants of a client that declares its hints with this request.
fn ranking_details(context: &RequestContext<'_>) -> Option<RankingDetails> {
    let declared = context.request.params.meta.get(CLIENT_CAPABILITIES)?;
    let declared = context.snapshot.parse_capabilities(declared).ok()?;
    let selector = &context.snapshot.selector;
    Some(selector.ranking_details(&declared, &context.client.offers))
}

/// Counts a request of the client under a variant, which was selected for this reason; `None` if variants are off.
fn count_client(context: &RequestContext<'_>, variant: Option<(&ServerVariant, &VariantReason)>) {
    let services = &context.snapshot.services;
    let unnamed;
    let (client, latest) = match (&context.client.session, &context.request.client) {
        (Some(session), _) => (&session.negotiated.client, &session.latest_use),
        (None, Some(declared)) => (&declared.name, &declared.latest),
        (None, None) => {
            unnamed = services.client_uses.client_in("{}");
            (&unnamed.name, &unnamed.latest)
        }
    };
    let now = (context.snapshot.config.environment.now)();
    services.client_uses.note(&ClientRequest {
        client,
        variant: variant.map(|(variant, reason)| (&variant.id, reason)),
        is_call: context.request.method == "tools/call",
        now,
        latest,
    });
    if matches!(context.request.method, "tools/list" | "tools/call") && client.name != OWN_NAME {
        let principal = context.client.principal.as_deref();
        let person = principal.filter(|principal| !principal.is_anonymous());
        let search = || services.savings.of(&client.name, person);
        let counted = match person {
            Some(_) => search(),
            None => Arc::clone(latest.cost.get_or_init(search)),
        };
        context.client.observation.counts_for(counted);
    }
    if let Some((variant, _)) = variant
        && variant.status == Status::Deprecated
    {
        services.deprecations.note(variant, client.clone(), now);
        context.client.observation.used_deprecated();
    }
}

/// Notifies a session of the lists of a variant that it selected although it is not notified of them yet (SV-16).
fn notify_of_selected(context: &RequestContext<'_>, index: VariantIndex) {
    let Some(session) = &context.client.session else {
        return;
    };
    let snapshot = context.snapshot;
    if !snapshot.config.variants || snapshot.placements.is_offered_to(session, index) {
        return;
    }
    let variant = snapshot.variant_id(index.declared_view());
    if session.note_selected(variant) {
        snapshot.services.hub.add_variant(session.client, variant);
    }
}

fn selected_variant(
    context: &RequestContext<'_>,
) -> Result<(VariantIndex, VariantReason), RpcError> {
    let offers = &context.client.offers;
    let Some(requested) = context.request.params.meta.get(SERVER_VARIANT_META) else {
        return Ok((offers.default_variant(), offers.reason.clone()));
    };
    if !context.snapshot.config.variants {
        return Err(RpcError::from(&Error::VariantsNotSupported));
    }
    let id = json::unquoted(requested);
    let known = id.and_then(|id| context.snapshot.variant_index(&id));
    // SV-9: for a pinned credential other variants do not exist.
    let allowed = known.filter(|index| offers.allows(*index));
    let index = allowed.ok_or_else(|| {
        let requested = json::to_value(requested).unwrap_or_default();
        record_unknown_variant(context.snapshot, &context.client.observation, &requested);
        let selector = &context.snapshot.selector;
        selector.invalid_variant(offers, &requested)
    })?;
    Ok((index, DecidedBy::Selector.into()))
}

/// Finds an item of a list. If it is missing, the list is read again, also on the client's dedicated connections
/// (SV-12). If the list cannot be read, the error says so.
pub(crate) async fn find_item<T>(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
    find: impl Fn(&Catalog) -> Option<T>,
    not_found: impl FnOnce() -> RpcError,
) -> Result<T, RpcError> {
    if let Some(found) = find(&context.catalog) {
        return Ok(found);
    }
    // The item may be one of a server that is not connected to for this client. The name does not matter here.
    let not_found = || connection_refusal(context).unwrap_or_else(not_found);
    let has_access_rules = context.variant_set().access().is_some();
    if has_access_rules {
        policy::record_hidden(context, kind, name);
    }
    if let Some(found) = Box::pin(find_when_started(context, kind, name, &find)).await? {
        return Ok(found);
    }
    // What access rules hide is answered as what nobody has, and without a request to a server.
    if has_access_rules {
        return Err(not_found());
    }
    let failure = match context.class.catalog.find(kind, &find).await {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let pool = &context.snapshot.pool;
    let owner = context.client.list_owner();
    let read_again = pool.read_again(&context.class, owner, kind).await;
    let found = read_again.and_then(|class| find(&class.catalog.current()));
    found.ok_or_else(|| failure.unwrap_or_else(not_found))
}

/// Why a server is not connected to for the clients of this class, if there is one.
fn connection_refusal(context: &RequestContext<'_>) -> Option<RpcError> {
    let is_unknown = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
    let mut sources = context.visible_sources().filter(is_unknown);
    sources.find_map(|source| source.refusal())
}

/// Finds an item that a server lists once it is ready. Waits for the servers that are starting, for `start-wait` at
/// most; `None` if all of them are ready or down and have no such item.
///
/// Servers of which access rules allow the client nothing do not count, so that it is answered as if they did not
/// exist.
///
/// # Errors
///
/// `-32603` when a server is still starting after that, and when the name is one of a server that is down and was
/// never reached.
async fn find_when_started<T>(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
    find: &impl Fn(&Catalog) -> Option<T>,
) -> Result<Option<T>, RpcError> {
    let starting = starting_servers(context);
    if starting.is_empty() {
        return refuse_if_down(context, kind, name).await;
    }
    let first_readings = starting.iter().map(|source| source.first_reading());
    let mut readings: FuturesUnordered<_> = first_readings.collect();
    let search = async {
        while readings.next().await.is_some() {
            let catalog = context.class.catalog.fresh(kind).await;
            if let Some(found) = find(&catalog) {
                return Some(found);
            }
        }
        None
    };
    let limit = context.snapshot.config.start_wait;
    let found = tokio::time::timeout(limit, search).await;
    match (found.unwrap_or_default(), &starting_servers(context)[..]) {
        (Some(found), _) => Ok(Some(found)),
        (None, []) => refuse_if_down(context, kind, name).await,
        (None, starting) => Err(still_starting(name, starting)),
    }
}

/// Refuses a name that may be one of a server that is down and was never reached: it has the prefix of the server, or
/// names have none.
async fn refuse_if_down<T>(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
) -> Result<Option<T>, RpcError> {
    let layout = &context.class.catalog.layout;
    let servers = context.class.sources().len();
    let named = context.visible_sources().filter_map(|source| {
        let prefix = layout.name_prefix(&source.name, servers);
        let was_reached = source.snapshot().handshake.is_some();
        let is_its = name.starts_with(&prefix) && !(prefix.is_empty() && was_reached);
        is_its.then_some((prefix.len(), source))
    });
    let Some((length, source)) = named.max_by_key(|(length, _)| *length) else {
        return Ok(None);
    };
    if is_in_some_variant(context, kind, name) {
        return Ok(None);
    }
    if source.snapshot().handshake.is_none()
        && let Err(error) = source.connection.ready().await
    {
        record_down(context, kind, name, source, length > 0);
        return Err(error.into());
    }
    Ok(None)
}

/// Whether a variant that the client may select has a tool or prompt of this name, so that it is of no server that was never reached.
fn is_in_some_variant(context: &RequestContext<'_>, kind: ListKind, name: &str) -> bool {
    let offers = &context.client.offers;
    let variants = VariantIndex::enumerate(context.snapshot.enabled_variants());
    let mut selectable = variants.filter(|(index, _)| offers.allows(*index));
    selectable.any(|(index, _)| match kind {
        ListKind::Tools => context.catalog.tool(index.declared_view(), name).is_some(),
        ListKind::Prompts => context
            .catalog
            .prompt(index.declared_view(), name)
            .is_some(),
        _ => false,
    })
}

/// Records that a name is one of this server, which is down, if it has the prefix of the server, or without one begins with its
/// name as a word, and no other server lists it for other clients.
fn record_down(
    context: &RequestContext<'_>,
    kind: ListKind,
    name: &str,
    source: &ServerSource,
    has_prefix: bool,
) {
    let Some(record) = context.client.observation.record() else {
        return;
    };
    let after = name.strip_prefix(&*source.name);
    let is_its = has_prefix || after.is_some_and(|after| !after.starts_with(char::is_alphanumeric));
    if is_its && context.catalog.merged_item_named(kind, name).is_none() {
        record.set_server(&source.name, None);
        record.forwarded();
    } else if kind == ListKind::Tools {
        record.set_unknown_tool();
    }
}

/// The servers whose first attempt to connect is running, and that exist for the client.
fn starting_servers<'a>(context: &'a RequestContext<'_>) -> Vec<&'a Arc<ServerSource>> {
    let is_starting = |it: &&Arc<ServerSource>| it.is_starting();
    context.visible_sources().filter(is_starting).collect()
}

/// The servers of the client that the catalogue has nothing of, as members of `_meta`: those that are starting, and those that
/// could not be connected to, each as a JSON array of names. None without any.
pub(crate) fn missing_servers(context: &RequestContext<'_>) -> Vec<(&'static str, String)> {
    let sources = std::iter::zip(context.class.sources(), &context.catalog.snapshots);
    let unread = sources.filter(|(_, read)| read.handshake.is_none() && !read.is_hidden);
    let unlisted = unread.map(|(source, _)| source);
    let missing = unlisted.filter(|source| source.refusal().is_none());
    let (starting, down): (Vec<_>, Vec<_>) =
        missing.partition(|source| source.is_starting() || source.is_usable());
    for source in starting
        .iter()
        .filter(|source| source.connection.server_facts().note_missed())
    {
        warn!(
            server = source.name(),
            start_wait = ?context.snapshot.config.start_wait,
            "a client got a list without the tools of this server, which is still starting; if clients list only once, raise `start-wait`"
        );
    }
    let states = [("vary/starting", starting), ("vary/down", down)];
    let present = states.into_iter().filter(|(_, it)| !it.is_empty());
    let members = present.map(|(key, servers)| {
        let names: Vec<&str> = servers.iter().map(|source| &*source.name).collect();
        (key, json!(names).to_string())
    });
    members.collect()
}

fn still_starting(name: &str, starting: &[&Arc<ServerSource>]) -> RpcError {
    let shown = starting.iter().take(SHOWN_SERVERS);
    let quoted: Vec<_> = shown.map(|source| format!("`{}`", source.name)).collect();
    let more = match starting.len().saturating_sub(SHOWN_SERVERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (servers, are) = match starting.len() {
        1 => ("server", "is"),
        _ => ("servers", "are"),
    };
    let names = quoted.join(", ");
    RpcError::internal(format!(
        "`{}` is not known yet: {servers} {names}{more} {are} still starting; try again in a moment",
        excerpt(name.as_bytes(), SHOWN_CHARACTERS)
    ))
}

/// The prompt that the view lists as `name`.
pub(crate) async fn find_prompt(scope: ViewScope<'_>, name: &str) -> Result<Arc<Prompt>, RpcError> {
    let listed = |catalog: &Catalog| catalog.prompt(scope.view, name).cloned();
    let not_found = || scope.not_found(Identifier::Prompt(name.to_owned()));
    find_item(&scope, ListKind::Prompts, name, listed, not_found).await
}

/// The error for arguments that a prompt does not take.
pub(crate) fn invalid_prompt_arguments(
    context: &RequestContext<'_>,
    errors: &[ArgumentError],
) -> RpcError {
    ambiguous_arguments(context.counters(), errors)
        .unwrap_or_else(|| RpcError::invalid_params(wrong_arguments(errors)))
}

/// The error for arguments with look-alike or repeated keys, counted; `None` if `errors` has no such key.
pub(crate) fn ambiguous_arguments(
    counters: &Counters,
    errors: &[ArgumentError],
) -> Option<RpcError> {
    let (counter, error) = errors.iter().find_map(|error| match error {
        ArgumentError::Lookalike { .. } => Some((Counter::RefusedLookalikeMembers, error)),
        ArgumentError::DuplicateKey { .. } => Some((Counter::RefusedDuplicateMembers, error)),
        _ => None,
    })?;
    counters.increment(counter);
    Some(RpcError::invalid_params(format!(
        "invalid arguments: {error}"
    )))
}

/// What the commands of Vary call themselves: no model reads what they get.
const OWN_NAME: &str = "vary";
/// The servers that an error names.
const SHOWN_SERVERS: usize = 3;
/// The characters of a name that an error repeats.
const SHOWN_CHARACTERS: usize = 100;
