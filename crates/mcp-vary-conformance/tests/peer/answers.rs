//! What the scripted server answers to each method.

use serde_json::{Value, json};

use super::content::elements;
use super::{IncomingRequest, LIMITED, NO_EXTENSIONS, Peer, Refusal, UNANNOTATED};

const INVALID_PARAMS: i64 = -32602;
const PAGE: usize = 2;

impl Peer {
    pub(super) fn handle(&self, request: &IncomingRequest<'_>) -> Result<Value, Refusal> {
        let variant = self.select(request)?;
        match request.method {
            "initialize" => {
                let capabilities = self.capabilities(request)?;
                Ok(
                    json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "peer"}}),
                )
            }
            "server/discover" => {
                let capabilities = self.capabilities(request)?;
                Ok(
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities}),
                )
            }
            "resources/list" if self.has(NO_EXTENSIONS) => {
                Err(Refusal(-32601, "Method not found".to_owned(), Value::Null))
            }
            "tools/list" | "resources/list" | "prompts/list" => self.list(request, &variant),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "tools/call" => {
                let name = self.resolve(request, "tools/list", "name", &variant)?;
                if self.has("CN-2/features-of-wrong-types") && !has_array_of_features(request) {
                    return Err(invalid("Invalid features", Value::Null));
                }
                Ok(self.call(request, name))
            }
            "resources/read" => {
                let uri = self.resolve(request, "resources/list", "uri", &variant)?;
                let is_wrong =
                    self.has("CN-15/json-resources-are-json") && request.tags(self).is_some();
                let text = if is_wrong { "a: 1" } else { "{\"a\":1}" };
                Ok(
                    json!({"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}),
                )
            }
            "prompts/get" => {
                self.resolve(request, "prompts/list", "name", &variant)?;
                let block = json!({"type": "text", "text": "Hello."});
                let is_wrong = self.has("CN-15/prompt-content-is-one-block");
                let content = if is_wrong { json!([block]) } else { block };
                Ok(json!({"messages": [{"role": "user", "content": content}]}))
            }
            "resources/subscribe" if self.has("SV-14/subscribe-to-unknown") => Ok(json!({})),
            "resources/subscribe" => self
                .resolve(request, "resources/list", "uri", &variant)
                .map(|_| json!({})),
            "resources/unsubscribe" if self.has("SV-14/unsubscribe-is-accepted") => {
                Err(invalid("Not subscribed", Value::Null))
            }
            "resources/unsubscribe" => Ok(json!({})),
            "completion/complete" => Ok(json!({"completion": {"values": []}})),
            method => Err(Refusal(
                -32601,
                format!("Unknown method: {method}"),
                Value::Null,
            )),
        }
    }

    /// The variant of a request.
    fn select(&self, request: &IncomingRequest<'_>) -> Result<String, Refusal> {
        let offered = self.variants(request);
        let ids: Vec<&str> = offered
            .iter()
            .filter_map(|variant| variant["id"].as_str())
            .collect();
        let default = ids[0].to_owned();
        let before = self.last_selector(request);
        if !matches!(request.method, "initialize" | "server/discover") {
            self.connections.follows("other", &[]);
        }
        let Some(selector) = request.selector() else {
            let is_sticky =
                self.has("SV-8/selection-is-per-request") && before.as_deref() == Some("compact");
            let is_other =
                self.has("SV-8/default-is-the-first") && request.method == "resources/list";
            return Ok(if is_sticky || is_other {
                "compact".to_owned()
            } else {
                default
            });
        };
        if self.has("SV-10/unsupported-selector") {
            return Ok(default);
        }
        if !self.offers_variants() {
            return Err(invalid("Server variants not supported", Value::Null));
        }
        let Some(id) = selector.as_str().filter(|id| !id.is_empty()) else {
            return if self.has("SV-9/selector-is-text") {
                Ok(default)
            } else {
                Err(self.unknown_variant(request, selector, &ids))
            };
        };
        self.limit(id, &default)?;
        if self.is_broken(request, id, before.as_deref()) {
            return Err(Refusal(-32603, "Internal error".to_owned(), Value::Null));
        }
        let is_leaked = self.has("SV-20/variants-of-another-are-refused") && id == "old";
        if is_leaked || ids.contains(&id) || (id == "preview" && self.has("SV-1/ids-are-text")) {
            return Ok(id.to_owned());
        }
        let ignoring = match request.method {
            "tools/call" => "SV-9/unknown-variant-in-tools-call",
            "resources/list" => "SV-9/unknown-variant-in-resources-list",
            "resources/read" => "SV-9/unknown-variant-in-resources-read",
            "resources/subscribe" => "SV-9/unknown-variant-in-resources-subscribe",
            "prompts/list" => "SV-9/unknown-variant-in-prompts-list",
            "prompts/get" => "SV-9/unknown-variant-in-prompts-get",
            "completion/complete" => "SV-9/unknown-variant-in-completion",
            _ => return Err(self.unknown_variant(request, selector, &ids)),
        };
        if self.has(ignoring) {
            Ok(default)
        } else {
            Err(self.unknown_variant(request, selector, &ids))
        }
    }

    /// Refuses a variant that is selected after too many others.
    fn limit(&self, id: &str, default: &str) -> Result<(), Refusal> {
        const MOST: u32 = 8;
        let mut switches = self.switches.lock().unwrap();
        if switches.0.as_deref() != Some(id) {
            *switches = (Some(id.to_owned()), switches.1 + 1);
        }
        let is_nameless = self.has("SV-21/limits-name-the-variant");
        if switches.1 <= MOST || !(is_nameless || self.has(LIMITED)) {
            return Ok(());
        }
        let data = json!({"activeVariant": default});
        let data = if is_nameless { Value::Null } else { data };
        Err(Refusal(-32000, "Too many switches".to_owned(), data))
    }

    /// Whether a fault fails this request in the variant `id`, after one that selected `before`.
    fn is_broken(&self, request: &IncomingRequest<'_>, id: &str, before: Option<&str>) -> bool {
        match (request.method, id) {
            ("tools/list", "old") => {
                self.has("SV-8/tools-in-every-variant") && request.params.get("cursor").is_none()
            }
            ("resources/list", "old") => self.has("SV-8/resources-in-every-variant"),
            ("prompts/list", "old") => self.has("SV-8/prompts-in-every-variant"),
            ("tools/call", "standard") => self.has("SV-8/calls-take-a-selector"),
            ("resources/read", "standard") => self.has("SV-8/reads-take-a-selector"),
            ("resources/subscribe", "standard") => self.has("SV-8/subscriptions-take-a-selector"),
            ("prompts/get", "standard") => self.has("SV-8/prompts-take-a-selector"),
            ("tools/list", "standard") => {
                let was_unknown = before.is_some_and(|before| before.starts_with("mcp-vary"));
                self.has("SV-9/connection-survives") && was_unknown
            }
            _ => false,
        }
    }

    fn unknown_variant(
        &self,
        request: &IncomingRequest<'_>,
        selector: &Value,
        ids: &[&str],
    ) -> Refusal {
        let mut data = json!({"requestedVariant": selector, "availableVariants": ids});
        match self.fault {
            "SV-9/requested-variant" => data["requestedVariant"] = Value::Null,
            "SV-9/visible-variants-only" => data["availableVariants"] = json!([selector]),
            "SV-9/unknown-variant-in-tools-list" if request.method == "tools/list" => {
                return invalid("Unknown variant", data);
            }
            _ => {}
        }
        invalid("Invalid server variant", data)
    }

    /// The page of a list that the cursor names: `variant:start`.
    fn list(&self, request: &IncomingRequest<'_>, variant: &str) -> Result<Value, Refusal> {
        let mut start = 0;
        if let Some(cursor) = request.params["cursor"].as_str() {
            let Some((of, from)) = cursor.split_once(':') else {
                let data = json!({"activeVariant": variant});
                let names = !self.has("SV-13/unreadable-cursor-names-the-variant");
                return Err(invalid(
                    "Invalid cursor",
                    if names { data } else { Value::Null },
                ));
            };
            if of != variant && !self.has("SV-13/other-variant-is-refused") {
                let data = json!({"cursorVariant": of, "requestedVariant": variant});
                let is_wrong = self.has("SV-13/error-of-another-variant");
                let message = if is_wrong {
                    "Invalid cursor"
                } else {
                    "Cursor invalid for requested variant"
                };
                return Err(invalid(message, data));
            }
            start = from.parse().unwrap();
        }
        let mut all = elements(request.method, variant);
        let hides = match request.method {
            "tools/list" => self.has("CN-16/tools-do-not-depend-on-tags"),
            "resources/list" => self.has("CN-16/resources-do-not-depend-on-tags"),
            _ => self.has("CN-16/prompts-do-not-depend-on-tags"),
        };
        if hides
            && request
                .tags(self)
                .is_some_and(|tags| tags.contains(&"!interactive".to_owned()))
        {
            all.remove(0);
        }
        if request.is_guest {
            all.retain(|element| element["name"] != "debug");
        }
        if self.has(UNANNOTATED) {
            for element in &mut all {
                element.as_object_mut().unwrap().remove("annotations");
            }
        }
        let member = request.method.split('/').next().unwrap();
        let page: Vec<Value> = all.iter().skip(start).take(PAGE).cloned().collect();
        let is_cached = self.has("SV-17/lists-are-not-cached") && member == "tools";
        let mut result = json!({member: page, "ttlMs": if is_cached { 1000 } else { 0 }});
        if start + PAGE < all.len() {
            result["nextCursor"] = json!(format!("{variant}:{}", start + PAGE));
        }
        Ok(result)
    }

    /// The name in a request, if the variant has it.
    fn resolve<'a>(
        &self,
        request: &'a IncomingRequest<'_>,
        list: &str,
        key: &str,
        variant: &str,
    ) -> Result<&'a str, Refusal> {
        let name = request.params[key].as_str().unwrap();
        let has = |variant| {
            elements(list, variant)
                .iter()
                .any(|element| element[key] == name)
        };
        let (leaky, nameless) = match list {
            "tools/list" => (
                "SV-12/tools-of-another-variant",
                "SV-12/unknown-tool-names-the-variant",
            ),
            "resources/list" => (
                "SV-12/resources-of-another-variant",
                "SV-12/unknown-resource-names-the-variant",
            ),
            _ => (
                "SV-12/prompts-of-another-variant",
                "SV-12/unknown-prompt-names-the-variant",
            ),
        };
        let is_hidden = request.is_guest && name == "debug";
        let is_hidden = is_hidden && !self.has("SV-20/variants-open-no-tools");
        if !is_hidden && has(variant) || (self.has(leaky) && has("standard")) {
            return Ok(name);
        }
        let is_nameless = self.has(nameless) && request.method != "resources/subscribe";
        let data = json!({"activeVariant": variant});
        Err(invalid(
            &format!("Unknown: {name}"),
            if is_nameless { Value::Null } else { data },
        ))
    }

    /// The selector of the request before, if both list tools.
    fn last_selector(&self, request: &IncomingRequest<'_>) -> Option<String> {
        let id = request
            .selector()
            .and_then(Value::as_str)
            .map(str::to_owned);
        let now = id.filter(|_| request.method == "tools/list");
        std::mem::replace(&mut *self.selector.lock().unwrap(), now)
    }
}

fn has_array_of_features(request: &IncomingRequest<'_>) -> bool {
    let features = request
        .settings(super::NEGOTIATION)
        .and_then(|settings| settings.get("features"));
    features.is_none_or(Value::is_array)
}

fn invalid(message: &str, data: Value) -> Refusal {
    Refusal(INVALID_PARAMS, message.to_owned(), data)
}
