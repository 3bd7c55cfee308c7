//! The variant that a request runs under, and the cursors that belong to it.

use mcp_vary::cursor::{self, CursorBinding};
use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::variant::{ServerVariant, Status, VariantId};
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, VariantReason};
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO};
use mcp_vary_wire::response::RpcError;
use serde_json::Value;
use tracing::debug;

use crate::audit::RankingDetails;
use crate::pipeline::methods::RequestContext;
use crate::session::client_uses::ClientRequest;

impl RequestContext<'_> {
    /// The view that this request runs under: that of its variant (SV-8), in the presentation that rules set for the
    /// client. Uses of deprecated variants are counted (SV-25), and changes of the variant (SV-21).
    ///
    /// # Errors
    ///
    /// `-32602` for a variant that does not exist for the client, and that of a limit that refuses the change.
    pub(crate) fn active_view(&self) -> Result<ViewIndex, RpcError> {
        let (index, reason) = self.selected_variant()?;
        self.count_variant(index, reason.by)?;
        self.record_selection(index);
        let gateway = self.snapshot;
        let variant = index.get(gateway.variant_set.variants.as_slice());
        if let Some(variant) = variant.filter(|_| gateway.config.variants) {
            let (method, by) = (self.request.method, reason.by.as_str());
            let rule = reason.rule.as_deref();
            debug!(variant = %variant.id, by, rule, method, "variant selected");
            if let Some(record) = self.client.observation.record() {
                record.set_variant(variant.id.as_str(), &reason, RankingDetails::default());
                record.use_variant(self.client.connection, || self.ranking_details());
            }
        }
        let variant = variant.filter(|_| gateway.config.variants);
        self.with_client_name(|client| {
            self.count_client(client, variant.map(|it| (it, reason.by.as_str())));
        });
        Ok(gateway
            .variant_set
            .presented_view(index, self.client.presentation))
    }

    /// What ranked the variants of a client that declares its hints with this request.
    fn ranking_details(&self) -> Option<RankingDetails> {
        let declared = self.request.params.meta.get(CLIENT_CAPABILITIES)?;
        let declared = self.snapshot.parse_capabilities(declared).ok()?;
        let selector = &self.snapshot.selector;
        Some(selector.ranking_details(&declared, &self.client.offers))
    }

    /// Counts a request of `client` under a variant, which was selected for this reason; `None` if variants are off.
    fn count_client(&self, client: &ClientName, variant: Option<(&ServerVariant, &'static str)>) {
        let services = &self.snapshot.services;
        let now = (self.snapshot.config.environment.now)();
        services.client_uses.note(&ClientRequest {
            client,
            variant: variant.map(|(variant, reason)| (&variant.id, reason)),
            is_call: self.request.method == "tools/call",
            now,
        });
        let deprecated = variant.filter(|(variant, _)| variant.status == Status::Deprecated);
        if let Some((deprecated, _)) = deprecated {
            services.deprecations.note(deprecated, client.clone(), now);
        }
    }

    /// Calls `then` with the client's name, from its session or from this request.
    fn with_client_name(&self, then: impl FnOnce(&ClientName)) {
        let info = self.request.params.meta.get(CLIENT_INFO).unwrap_or("{}");
        match &self.client.session {
            Some(session) => then(&session.negotiated.client),
            None => then(&self.snapshot.services.client_uses.name_in(info)),
        }
    }

    /// Notifies a session of the lists of a variant that it selected although it is not notified of them yet (SV-16).
    fn record_selection(&self, index: VariantIndex) {
        let session = self.client.session.as_ref();
        let Some(session) = session.filter(|_| self.snapshot.config.variants) else {
            return;
        };
        if self.snapshot.placements.is_offered_to(session, index) {
            return;
        }
        let variant = self.snapshot.variant_id(index.declared_view());
        if session.note_selected(variant) {
            let audience = &self.snapshot.services.hub;
            audience.add_variant(session.client, variant);
        }
    }

    fn selected_variant(&self) -> Result<(VariantIndex, VariantReason), RpcError> {
        let meta = &self.request.params.meta;
        let Some(requested) = meta.get(SERVER_VARIANT_META) else {
            let offers = &self.client.offers;
            return Ok((offers.default_variant(), offers.reason.clone()));
        };
        if !self.snapshot.config.variants {
            return Err(RpcError::from(&Error::VariantsNotSupported));
        }
        let id = json::unquoted(requested);
        let offers = &self.client.offers;
        let index = id.and_then(|id| self.snapshot.variant_index(&id));
        // SV-9: for a pinned credential other variants do not exist.
        let index = index.filter(|index| offers.allows(*index));
        let index = index.ok_or_else(|| {
            let requested = json::to_value(requested).unwrap_or_default();
            self.record_refused(&requested);
            self.snapshot.selector.invalid_variant(offers, &requested)
        })?;
        Ok((index, DecidedBy::Selector.into()))
    }

    /// Counts and records that the client selected a variant that does not exist for it.
    fn record_refused(&self, requested: &Value) {
        let counters = &self.snapshot.services.counters;
        counters.increment(Counter::RefusedUnknownVariants);
        if let Some(record) = self.client.observation.record() {
            let text = requested.as_str().map(str::to_owned);
            record.refuse_variant(&text.unwrap_or_else(|| requested.to_string()));
        }
    }

    /// The cursor of the request, JSON text. Some clients write `null` for none.
    pub(super) fn cursor(&self) -> Option<&str> {
        let cursor = self.request.params.members.get("cursor");
        cursor.filter(|cursor| *cursor != "null")
    }

    /// The position in the list where the client continues; `None` at the beginning.
    pub(crate) fn list_cursor(
        &self,
        view: ViewIndex,
        kind: ListKind,
    ) -> Result<Option<String>, RpcError> {
        let Some(cursor) = self.cursor() else {
            return Ok(None);
        };
        let cursor: String = serde_json::from_str(cursor).map_err(|_| {
            let wrong = RpcError::invalid_params("`cursor` must be a string");
            self.with_active_variant(view, wrong)
        })?;
        let binding = self.cursor_binding(view, kind);
        let bookmark = cursor::open(&self.snapshot.services.cursor_keys, &binding, &cursor);
        bookmark.map(Some).map_err(|error| {
            let error = error.into_error(binding.variant, |_| true);
            self.without_variant(RpcError::from(&error))
        })
    }

    pub(crate) fn seal_cursor(&self, view: ViewIndex, kind: ListKind, bookmark: &str) -> String {
        let binding = self.cursor_binding(view, kind);
        cursor::seal(&self.snapshot.services.cursor_keys, &binding, bookmark)
    }

    fn cursor_binding(&self, view: ViewIndex, kind: ListKind) -> CursorBinding<'_> {
        CursorBinding {
            variant: self.snapshot.variant_id(view),
            method: kind.method(),
            principal: self.client.sealed_principal(),
        }
    }

    pub(crate) fn invalid_cursor(&self, view: ViewIndex) -> RpcError {
        let active = self.snapshot.variant_id(view).clone();
        self.without_variant(RpcError::from(&Error::InvalidCursor { active }))
    }

    /// Removes the variant from an error if variants are off (EXT-3).
    fn without_variant(&self, failure: RpcError) -> RpcError {
        if self.snapshot.config.variants {
            failure
        } else {
            RpcError::new(failure.code(), failure.message())
        }
    }

    /// The id of the active variant, for the errors of servers: a client that neither declared server variants nor selected
    /// one gets them as they are.
    pub(crate) fn variant_for_errors(&self, view: ViewIndex) -> Option<VariantId> {
        let is_selected = self.request.params.meta.contains(SERVER_VARIANT_META);
        let knows_variants = self.client.knows_variants || is_selected;
        self.active_variant(view).filter(|_| knows_variants)
    }

    /// The id of the active variant, unless variants are off.
    pub(crate) fn active_variant(&self, view: ViewIndex) -> Option<VariantId> {
        let on = self.snapshot.config.variants;
        on.then(|| self.snapshot.variant_id(view).clone())
    }
}
