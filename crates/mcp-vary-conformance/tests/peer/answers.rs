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
                Ok(json!({
                    "protocolVersion": "2025-11-25", "capabilities": capabilities,
                    "serverInfo": {"name": "peer"},
                }))
            }
            "server/discover" => {
                let capabilities = self.capabilities(request)?;
                Ok(json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                }))
            }
            "resources/list" if self.has(NO_EXTENSIONS) => Err(unknown_method("resources/list")),
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
                let is_wrong = self.has("CN-15/json-resources-are-json");
                let is_wrong = is_wrong && request.tags(self).is_some();
                let text = if is_wrong { "a: 1" } else { "{\"a\":1}" };
                let is_other = self.has("CN-15/contents-have-the-uri");
                let uri = if is_other { "test://other" } else { uri };
                let content = json!({"uri": uri, "mimeType": "application/json", "text": text});
                Ok(json!({"contents": [content]}))
            }
            "prompts/get" => {
                self.resolve(request, "prompts/list", "name", &variant)?;
                let block = json!({"type": "text", "text": "Hello."});
                let is_wrong = self.has("CN-15/prompt-content-is-one-block");
                let content = if is_wrong { json!([block]) } else { block };
                Ok(json!({"messages": [{"role": "user", "content": content}]}))
            }
            "resources/subscribe" if self.has("SV-14/subscribe-to-unknown") => Ok(json!({})),
            "resources/subscribe" => {
                self.resolve(request, "resources/list", "uri", &variant)?;
                Ok(json!({}))
            }
            "resources/unsubscribe" if self.has("SV-14/unsubscribe-is-accepted") => {
                Err(invalid("Not subscribed", Value::Null))
            }
            "resources/unsubscribe" => Ok(json!({})),
            "completion/complete" => self.complete(request, &variant),
            method => Err(unknown_method(method)),
        }
    }

    fn complete(&self, request: &IncomingRequest<'_>, variant: &str) -> Result<Value, Refusal> {
        let is_leaky = self.has("SV-12/completions-of-another-variant");
        let variant = if is_leaky { "standard" } else { variant };
        let mut prompts = elements("prompts/list", variant).into_iter();
        let is_known = prompts.any(|it| it["name"] == request.params["ref"]["name"]);
        let refusal = about_variant("Unknown prompt", variant, false);
        is_known
            .then(|| json!({"completion": {"values": []}}))
            .ok_or(refusal)
    }

    /// The variant of a request.
    fn select(&self, request: &IncomingRequest<'_>) -> Result<String, Refusal> {
        let offered = self.variants(request);
        let ids = offered.iter().filter_map(|variant| variant["id"].as_str());
        let ids: Vec<&str> = ids.collect();
        let default = ids[0].to_owned();
        let before = self.last_selector(request);
        if !matches!(request.method, "initialize" | "server/discover") {
            self.connections.follows("other", &[]);
        }
        let Some(selector) = request.selector() else {
            let was_compact = before.as_deref() == Some("compact");
            let is_sticky = was_compact && self.has("SV-8/selection-is-per-request");
            let lists_resources = request.method == "resources/list";
            let is_other = lists_resources && self.has("SV-8/default-is-the-first");
            let selected = (is_sticky || is_other).then(|| "compact".to_owned());
            return Ok(selected.unwrap_or(default));
        };
        if self.has("SV-10/unsupported-selector") {
            return Ok(default);
        }
        if !self.offers_variants() {
            return Err(invalid("Server variants not supported", Value::Null));
        }
        let Some(id) = selector.as_str().filter(|id| !id.is_empty()) else {
            let refusal = self.unknown_variant(request, selector, &ids);
            return self
                .has("SV-9/selector-is-text")
                .then_some(default)
                .ok_or(refusal);
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
        let refusal = self.unknown_variant(request, selector, &ids);
        self.has(ignoring).then_some(default).ok_or(refusal)
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
                let is_nameless = self.has("SV-13/unreadable-cursor-names-the-variant");
                return Err(about_variant("Invalid cursor", variant, is_nameless));
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
        let tags = request.tags(self).unwrap_or_default();
        if hides && tags.contains(&"!interactive".to_owned()) {
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
        let has = |variant| elements(list, variant).iter().any(|it| it[key] == name);
        let kind = list.trim_end_matches("s/list");
        let leaky = format!("SV-12/{kind}s-of-another-variant");
        let nameless = format!("SV-12/unknown-{kind}-names-the-variant");
        let is_hidden = request.is_guest && name == "debug";
        let is_hidden = is_hidden && !self.has("SV-20/variants-open-no-tools");
        let subscribes = request.method == "resources/subscribe";
        if !is_hidden && has(variant) || (self.has(&leaky) && !subscribes && has("standard")) {
            return Ok(name);
        }
        let is_nameless = self.has(&nameless) && !subscribes;
        let message = format!("Unknown: {name}");
        Err(about_variant(&message, variant, is_nameless))
    }

    /// The selector of the request before, if both list tools.
    fn last_selector(&self, request: &IncomingRequest<'_>) -> Option<String> {
        let id = request.selector().and_then(Value::as_str);
        let now = id
            .filter(|_| request.method == "tools/list")
            .map(str::to_owned);
        std::mem::replace(&mut *self.selector.lock().unwrap(), now)
    }
}

fn has_array_of_features(request: &IncomingRequest<'_>) -> bool {
    let settings = request.settings(super::NEGOTIATION);
    let features = settings.and_then(|settings| settings.get("features"));
    features.is_none_or(Value::is_array)
}

fn invalid(message: &str, data: Value) -> Refusal {
    Refusal(INVALID_PARAMS, message.to_owned(), data)
}

/// A refusal that names the variant, or, as a fault, does not.
fn about_variant(message: &str, variant: &str, is_nameless: bool) -> Refusal {
    let data = json!({"activeVariant": variant});
    invalid(message, if is_nameless { Value::Null } else { data })
}

fn unknown_method(method: &str) -> Refusal {
    Refusal(-32601, format!("Unknown method: {method}"), Value::Null)
}
