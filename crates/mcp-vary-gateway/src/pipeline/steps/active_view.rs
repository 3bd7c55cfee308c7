//! Selects the variant that a request runs under.

use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::variant::{ServerVariant, Status};
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, VariantReason};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO};
use mcp_vary_wire::response::RpcError;
use serde_json::Value;
use tracing::debug;

use super::rates;
use crate::audit::RankingDetails;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::session::client_uses::ClientRequest;

/// Enters the view that the request runs under: that of its variant (SV-8), in the presentation that rules set for the
/// client. Records the variant, and counts uses of deprecated variants (SV-25) and changes of the variant (SV-21).
///
/// # Errors
///
/// `-32602` for a variant that does not exist for the client, and that of a limit that refuses the change.
pub(crate) fn enter<'r>(context: &'r RequestContext<'r>) -> Result<ViewScope<'r>, RpcError> {
    let (index, reason) = selected_variant(context)?;
    rates::count_variant(context, index, reason.by)?;
    notify_of_selected(context, index);
    let (snapshot, method) = (context.snapshot, context.request.method);
    let variant = index.get(snapshot.variant_set.variants.as_slice());
    let variant = variant.filter(|_| snapshot.config.variants);
    let by = reason.by.as_str();
    let series = index.get(snapshot.variant_metrics.as_slice());
    context.client.observation.entered(series, by);
    if let Some(variant) = variant {
        let rule = reason.rule.as_deref();
        debug!(variant = %variant.id, by, rule, method, "variant selected");
        if let Some(record) = context.client.observation.record() {
            record.set_variant(variant.id.as_str(), &reason, RankingDetails::default());
            record.use_variant(context.client.connection, || ranking_details(context));
        }
    }
    count_client(context, variant.map(|variant| (variant, by)));
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
fn count_client(context: &RequestContext<'_>, variant: Option<(&ServerVariant, &'static str)>) {
    let services = &context.snapshot.services;
    let declared;
    let client = match &context.client.session {
        Some(session) => &session.negotiated.client,
        None => {
            let info = context.request.params.meta.get(CLIENT_INFO);
            declared = services.client_uses.name_in(info.unwrap_or("{}"));
            &*declared
        }
    };
    let now = (context.snapshot.config.environment.now)();
    services.client_uses.note(&ClientRequest {
        client,
        variant: variant.map(|(variant, reason)| (&variant.id, reason)),
        is_call: context.request.method == "tools/call",
        now,
    });
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
    let index = id.and_then(|id| context.snapshot.variant_index(&id));
    // SV-9: for a pinned credential other variants do not exist.
    let index = index.filter(|index| offers.allows(*index));
    let index = index.ok_or_else(|| {
        let requested = json::to_value(requested).unwrap_or_default();
        record_refused(context, &requested);
        let selector = &context.snapshot.selector;
        selector.invalid_variant(offers, &requested)
    })?;
    Ok((index, DecidedBy::Selector.into()))
}

/// Counts and records that the client selected a variant that does not exist for it.
fn record_refused(context: &RequestContext<'_>, requested: &Value) {
    context
        .counters()
        .increment(Counter::RefusedUnknownVariants);
    if let Some(record) = context.client.observation.record() {
        let text = requested.as_str().map(str::to_owned);
        record.refuse_variant(&text.unwrap_or_else(|| requested.to_string()));
    }
}
