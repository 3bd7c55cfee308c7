//! Which variant a client gets that names none in `_meta`.
//!
//! First that applies: the pin of its credential, the address (`/mcp/v/<id>`), the header `MCP-Server-Variant`,
//! the operator's rules for clients, the ranking by hints. What applies becomes the first of the offers; a
//! selector in `_meta` still chooses among all of them. A pin leaves nothing to choose: for that client the other
//! variants do not exist.

use std::sync::Arc;

use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::Status;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, Offers, VariantRequest};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use serde_json::Value;
use tracing::debug;

use crate::pipeline::snapshot::ConfigSnapshot;

/// What a client requested as JSON text of printable ASCII, cut.
fn log_selection(requested: &Value) -> String {
    let mut shown = String::new();
    for character in requested.to_string().chars().take(128) {
        match character {
            ' '..='~' => shown.push(character),
            other => shown.extend(other.escape_unicode()),
        }
    }
    shown
}

impl ConfigSnapshot {
    /// The variants of a client, `order` by its hints, with the one in front that is chosen for it.
    ///
    /// `rule` is what the rules for clients say; those for a session were applied when it began.
    ///
    /// # Errors
    ///
    /// `-32602` when address or header name no variant that there is for the client; `-32020`, or `-32602` to legacy
    /// clients, when the header contradicts `_meta` or the address where that is not allowed.
    pub(crate) fn select_variant(
        &self,
        order: &Arc<[VariantIndex]>,
        told: &VariantRequest,
        params: &Params<'_>,
        rule: impl FnOnce() -> Option<VariantIndex>,
    ) -> Result<Offers, RpcError> {
        let mut offers = self.pinned_variant(order, told)?;
        let Some(named) = told.path.as_ref().or(told.header.as_ref()) else {
            if offers.pin.is_none() {
                let ruled = rule();
                if ruled.is_some() {
                    offers.decided_by = DecidedBy::Rule;
                }
                offers.order = self.promoted(order, ruled);
            }
            return Ok(offers);
        };
        if !self.config.variants {
            return Err(RpcError::from(&Error::VariantsNotSupported));
        }
        let index = self.variant_index(named).filter(|it| offers.allows(*it));
        let requested = || Value::String(named.clone());
        let index = index.ok_or_else(|| self.invalid_variant(&offers, &requested()))?;
        self.check_header(told, params)?;
        if offers.pin.is_none() {
            offers.order = self.promoted(order, Some(index));
        }
        offers.decided_by = match told.path {
            Some(_) => DecidedBy::Address,
            None => DecidedBy::Header,
        };
        Ok(offers)
    }

    /// What a credential leaves of `order`.
    ///
    /// # Errors
    ///
    /// `-32602` when it has one variant and that one is gone: then there is none for it.
    fn pinned_variant(
        &self,
        order: &Arc<[VariantIndex]>,
        told: &VariantRequest,
    ) -> Result<Offers, RpcError> {
        let Some(pin) = &told.pin else {
            let order = Arc::clone(order);
            return Ok(Offers {
                order,
                pin: None,
                decided_by: DecidedBy::default(),
            });
        };
        let Some(index) = self.variant_index(pin.as_str()) else {
            let requested = Value::String(pin.to_string());
            let none = Error::invalid_variant(&requested, Some(Vec::new()));
            return Err(RpcError::from(&none));
        };
        let is_told = self.config.variants;
        Ok(Offers {
            order: is_told.then_some(index).into_iter().collect(),
            pin: Some(index),
            decided_by: DecidedBy::default(),
        })
    }

    /// SV-18: `_meta` and the address win over the header, unless the operator wants them to agree.
    fn check_header(&self, told: &VariantRequest, params: &Params<'_>) -> Result<(), RpcError> {
        let header = told.header.as_deref();
        let Some(header) = header.filter(|_| self.config.selection.strict_header) else {
            return Ok(());
        };
        let path = told.path.clone().map(Value::String);
        let selector = params.meta.get(SERVER_VARIANT_META);
        let selector = selector.map(|text| serde_json::from_str(text).unwrap_or_default());
        let others = [path, selector];
        let Some(other) = others.iter().flatten().find(|other| **other != *header) else {
            return Ok(());
        };
        let era = if params.is_modern() {
            Era::Modern
        } else {
            Era::Legacy
        };
        Err(RpcError::from(&Error::header_variant_mismatch(
            header, other, era,
        )))
    }

    /// SV-9: names every variant that there is for the client, those of its order first: each can be chosen.
    pub(crate) fn invalid_variant(&self, offers: &Offers, requested: &Value) -> RpcError {
        debug!(requested = %log_selection(requested), "variant refused");
        let order = &offers.order;
        let rest = self
            .variant_set
            .indices()
            .filter(|index| !order.contains(index));
        let visible = order.iter().copied().chain(rest);
        let visible = visible.filter(|index| offers.allows(*index));
        let visible = visible.map(|index| self.variant_id(index.declared_view()).clone());
        RpcError::from(&Error::invalid_variant(requested, Some(visible.collect())))
    }

    /// `order` with `first` in front, no longer than may be advertised.
    ///
    /// > The first is the default. (SV-2: whatever fixes a client's default moves that variant to the front.)
    fn promoted(
        &self,
        order: &Arc<[VariantIndex]>,
        first: Option<VariantIndex>,
    ) -> Arc<[VariantIndex]> {
        let Some(first) = first.filter(|first| order.first() != Some(first)) else {
            return Arc::clone(order);
        };
        if order.is_empty() {
            return Arc::clone(order);
        }
        let rest = order.iter().copied().filter(|index| *index != first);
        let mut all: Vec<_> = std::iter::once(first).chain(rest).collect();
        let is_stable = |index: &VariantIndex| {
            let variant = index.get(self.variants.as_slice());
            variant.is_some_and(|variant| variant.status == Status::Stable)
        };
        while all.len() > self.rankings.advertised().max(order.len()) {
            // Beside the default there stays a stable one, if there is one (SV-3).
            let stable = all.iter().skip(1).filter(|index| is_stable(index)).count();
            let goes = (1..all.len())
                .rev()
                .find(|at| stable > 1 || !is_stable(&all[*at]));
            all.remove(goes.unwrap_or(all.len() - 1));
        }
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary::extension::SERVER_VARIANTS;
    use serde_json::json;

    use super::*;
    use crate::pipeline::clients::{legacy_client, modern_client};
    use crate::pipeline::methods::Dispatch;
    use crate::pipeline::request::IncomingRequest;
    use crate::pipeline::router::dispatch;
    use crate::pipeline::runtime::Services;
    use crate::settings::config::Config;
    use mcp_vary_base::environment::Environment;
    use mcp_vary_upstream::{Target, UpstreamConfig};
    use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};

    /// A gateway whose server is not there; what is asked for here needs none.
    async fn gateway(on: bool) -> Arc<ConfigSnapshot> {
        let target = Target::command("no-such-program-of-ours", []);
        let outside = Environment::new(|| 1_000, |bytes| bytes.fill(7));
        let config = Config::new(UpstreamConfig::new("none", target), outside);
        let config = config.with_variants(on);
        let lasting = Arc::new(Services::new(&config));
        Arc::new(ConfigSnapshot::open(config, lasting, None).await)
    }

    /// What a request by a credential of `compact` says beside its message.
    fn pinned() -> VariantRequest {
        VariantRequest {
            pin: Some("compact".parse().unwrap()),
            ..VariantRequest::default()
        }
    }

    /// What a modern client is answered to `method`, that prefers `read-only`, and may name a variant.
    async fn ask(
        gateway: &Arc<ConfigSnapshot>,
        told: &VariantRequest,
        method: &str,
        selector: Option<&str>,
    ) -> Value {
        let mut meta = json!({
            PROTOCOL_VERSION: "2026-07-28",
            CLIENT_CAPABILITIES: {"extensions": {
                SERVER_VARIANTS: {"variantHints": {"hints": {"accessLevel": "readonly"}}},
            }},
        });
        if let Some(selector) = selector {
            meta[SERVER_VARIANT_META] = json!(selector);
        }
        // What a client cannot read says which variant it looked in.
        let text = json!({"uri": "vary://result/none", "_meta": meta}).to_string();
        let params = Params::read(Some(&text)).unwrap();
        let client = match modern_client(gateway, "tools/list", told, &params) {
            Ok(client) => client,
            Err(failure) => return serde_json::from_slice(&failure.to_bytes(None)).unwrap(),
        };
        let asked = IncomingRequest {
            id: "1",
            method,
            params,
            headers: None,
            message: None,
        };
        let Dispatch::Done(reply) = dispatch(gateway, &client, asked).await else {
            panic!("no server is asked");
        };
        serde_json::from_slice(&reply.body).unwrap()
    }

    #[track_caller]
    fn is_invalid(answer: &Value, requested: &str, available: &Value) {
        let error = &answer["error"];
        assert_eq!(error["code"], -32602, "{answer}");
        assert_eq!(error["message"], "Invalid server variant");
        let data = json!({"requestedVariant": requested, "availableVariants": available});
        assert_eq!(error["data"], data);
    }

    #[track_caller]
    fn is_offered_alone(offered: &Value) {
        let variants = offered["availableVariants"].as_array().unwrap();
        let ids: Vec<_> = variants.iter().map(|variant| &variant["id"]).collect();
        assert_eq!(ids, ["compact"]);
        assert_eq!(offered.get("moreVariantsAvailable"), None, "{offered}");
    }

    /// SV-9: a credential with a pin sees one variant, whatever the client prefers or names.
    #[tokio::test]
    async fn for_a_pinned_client_there_is_one_variant() {
        let gateway = gateway(true).await;
        let offered = ask(&gateway, &pinned(), "server/discover", None).await;
        let offered = &offered["result"]["capabilities"]["extensions"][SERVER_VARIANTS];
        is_offered_alone(offered);
        for selector in [None, Some("compact")] {
            let answer = ask(&gateway, &pinned(), "resources/read", selector).await;
            assert_eq!(
                answer["error"]["data"]["activeVariant"], "compact",
                "{answer}"
            );
        }
        // One that there is for others, and one that there is for nobody.
        for other in ["standard", "no-such", ""] {
            let answer = ask(&gateway, &pinned(), "resources/read", Some(other)).await;
            is_invalid(&answer, other, &json!(["compact"]));
            let unpinned = ask(
                &gateway,
                &VariantRequest::default(),
                "resources/read",
                Some("standard"),
            )
            .await;
            assert_eq!(
                unpinned["error"]["data"]["activeVariant"], "standard",
                "{unpinned}"
            );
        }
    }

    /// SV-9: no address and no header leads a pinned client elsewhere.
    #[tokio::test]
    async fn address_and_header_name_the_pinned_variant_or_none() {
        let gateway = gateway(true).await;
        let by_path = |id: &str| VariantRequest {
            path: Some(id.to_owned()),
            ..pinned()
        };
        let by_header = |id: &str| VariantRequest {
            header: Some(id.to_owned()),
            ..pinned()
        };
        for told in [by_path("compact"), by_header("compact")] {
            let answer = ask(&gateway, &told, "resources/read", None).await;
            assert_eq!(
                answer["error"]["data"]["activeVariant"], "compact",
                "{answer}"
            );
        }
        for other in ["standard", "no-such"] {
            for told in [by_path(other), by_header(other)] {
                let answer = ask(&gateway, &told, "resources/read", None).await;
                is_invalid(&answer, other, &json!(["compact"]));
            }
        }
    }

    /// SV-9: a session is opened with the pinned variant alone; a pin that came later counts, too.
    #[tokio::test]
    async fn a_pinned_session_has_one_variant() {
        let gateway = gateway(true).await;
        let text = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        })
        .to_string();
        let params = Params::read(Some(&text)).unwrap();
        let (fixed, result) = gateway.initialize(&pinned(), &params).await.unwrap();
        assert_eq!(fixed.order, ["compact"]);
        let result: Value = serde_json::from_str(&result).unwrap();
        is_offered_alone(&result["capabilities"]["extensions"][SERVER_VARIANTS]);
        let (fixed, _) = gateway
            .initialize(&VariantRequest::default(), &params)
            .await
            .unwrap();
        assert_eq!(fixed.order.len(), 3);
        let session = gateway.services.sessions.open_stdio(fixed);
        let client = legacy_client(&gateway, &session, &pinned(), &params).unwrap();
        assert_eq!(client.offers.pin, gateway.variant_index("compact"));
        assert_eq!(client.offers.order.len(), 1);
    }

    /// A pin to what is gone leaves nothing rather than everything, and one where variants are off is still one.
    #[tokio::test]
    async fn a_pin_never_opens_more() {
        let gone = VariantRequest {
            pin: Some("gone".parse().unwrap()),
            ..VariantRequest::default()
        };
        let answer = ask(&gateway(true).await, &gone, "resources/read", None).await;
        is_invalid(&answer, "gone", &json!([]));
        let off = gateway(false).await;
        let text = r#"{"uri":"x"}"#;
        let params = Params::read(Some(text)).unwrap();
        let offers = off
            .select_variant(&Arc::default(), &pinned(), &params, || None)
            .unwrap();
        assert_eq!(Some(offers.default_variant()), off.variant_index("compact"));
        assert!(offers.order.is_empty());
    }
}
