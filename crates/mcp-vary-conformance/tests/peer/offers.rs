//! What the scripted server declares: capabilities, and variants in the order that a client's hints ask for.

use serde_json::{Value, json};

use super::{COHORTS, IncomingRequest, NEGOTIATION, NO_EXTENSIONS, Peer, Refusal, VARIANTS};

/// The variant that a session gets first, as if by chance.
fn cohort(session: Option<usize>) -> usize {
    session.map_or(0, |number| {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed >> 63
    })
}

impl Peer {
    pub(super) fn capabilities(&self, request: &IncomingRequest<'_>) -> Result<Value, Refusal> {
        if self.has("EXT-4/served-without-extensions") && request.capabilities == json!({}) {
            return Err(Refusal(-32603, "Internal error".to_owned(), Value::Null));
        }
        if self.has("SV-4/hints-are-optional") && self.hints(request).is_null() {
            return Err(Refusal(-32602, "No hints".to_owned(), Value::Null));
        }
        let mut capabilities = json!({
            "tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {},
            "extensions": {NEGOTIATION: {"version": "1.0"}},
        });
        let extensions = &mut capabilities["extensions"];
        if self.has("CN-7/undeclared-extension-ignores-tags") || self.has(NO_EXTENSIONS) {
            *extensions = json!({});
        }
        if self.offers_variants() {
            extensions[VARIANTS] = self.variant_settings(request);
        }
        match self.fault {
            "EXT-1/prefixed-identifiers" => extensions["noprefix"] = json!({}),
            "EXT-1/prefixes-are-domains" => extensions["flag/thing"] = json!({}),
            "EXT-2/declared-in-extensions" => {
                let extensions = capabilities.as_object_mut().unwrap().remove("extensions");
                capabilities["experimental"] = extensions.unwrap();
            }
            "EXT-2/extensions-are-a-map" => *extensions = json!([]),
            "EXT-2/settings-are-objects" => extensions["com.example/flag"] = json!(true),
            "CN-17/no-features-of-the-server" => extensions[NEGOTIATION]["features"] = json!([]),
            "CN-17/version-is-text" => extensions[NEGOTIATION]["version"] = json!(1),
            _ => {}
        }
        let is_unknown = request.settings("com.example/unknown").is_some();
        let is_compact = self.hint(request, "contextSize").as_deref() == Some("compact");
        let is_agent = request
            .tags(self)
            .is_some_and(|tags| tags.contains(&"agent".to_owned()));
        if (is_agent && self.has("CN-16/capabilities-do-not-depend-on-tags"))
            || (is_unknown && self.has("EXT-5/unknown-extensions-are-ignored"))
            || (is_compact && self.has("SV-11/capabilities-do-not-depend-on-variants"))
        {
            capabilities["logging"] = json!({});
        }
        Ok(capabilities)
    }

    fn variant_settings(&self, request: &IncomingRequest<'_>) -> Value {
        let mut variants = self.variants(request);
        let is_plain = request.settings(VARIANTS) == Some(&json!({}));
        let event = if is_plain { "plain" } else { "other" };
        let is_third = self
            .connections
            .follows(event, &["other", "plain", "plain"]);
        match self.fault {
            "SV-7/same-hints-same-order" if is_third && event == "plain" => variants.swap(0, 1),
            "SV-3/subset-has-a-fallback" => variants.truncate(1),
            "SV-4/descriptions-are-accepted"
                if self.hints(request).get("description").is_some() =>
            {
                variants.clear()
            }
            "SV-2/no-empty-list" => variants.clear(),
            _ => {}
        }
        let mut settings =
            json!({"availableVariants": variants, "moreVariantsAvailable": !request.is_guest});
        match self.fault {
            "SV-2/list-is-an-array" => settings["availableVariants"] = json!({}),
            "SV-2/more-variants-is-boolean" => settings["moreVariantsAvailable"] = json!("yes"),
            _ => {}
        }
        settings
    }

    fn hints<'a>(&self, request: &'a IncomingRequest<'_>) -> &'a Value {
        let settings = request.settings(VARIANTS);
        settings
            .and_then(|settings| settings.get("variantHints"))
            .unwrap_or(&Value::Null)
    }

    /// The client's first preference for `key`.
    fn hint(&self, request: &IncomingRequest<'_>, key: &str) -> Option<String> {
        let hints = &self.hints(request)["hints"];
        if self.has("SV-4/bad-hints-are-ignored-alone") && hints["com.example/number"].is_number() {
            return None;
        }
        match &hints[key] {
            Value::String(value) => Some(value.clone()),
            Value::Array(_) if self.has("SV-4/text-or-array") => None,
            Value::Array(values) => values.first()?.as_str().map(str::to_owned),
            _ => None,
        }
    }

    /// The variants, the client's default first.
    pub(super) fn variants(&self, request: &IncomingRequest<'_>) -> Vec<Value> {
        let mut variants = self.all_variants();
        let size = self.hint(request, "contextSize");
        let nobody = self.hints(request)["hints"].get("com.example/nobody");
        let first = match (self.fault, size.as_deref()) {
            ("SV-3/first-is-stable", None) => 2,
            ("SV-3/hints-leave-the-first-stable", Some("verbose")) => 2,
            ("SV-4/unknown-hints-are-ignored", _) if nobody.is_some() => 1,
            ("SV-5/hints-rank", _) => 0,
            (_, Some("compact")) => 1,
            (COHORTS, None) => cohort(request.number),
            _ => 0,
        };
        let first = variants.remove(first);
        variants.insert(0, first);
        if request.is_guest {
            variants.retain(|variant| variant["id"] != "old");
        }
        variants
    }

    fn all_variants(&self) -> Vec<Value> {
        let variant = |id: &str, size: &str, status: &str| json!({"id": id, "description": format!("The variant {id}."), "hints": {"contextSize": size}, "status": status});
        let mut variants = vec![
            variant("standard", "standard", "stable"),
            variant("compact", "compact", "stable"),
            variant("preview", "verbose", "experimental"),
            variant("old", "tiny", "deprecated"),
        ];
        variants[3]["deprecationInfo"] = json!({"message": "Use standard.", "replacement": "standard", "removalDate": "2030-06-01"});
        match self.fault {
            "SV-1/ids-are-text" => variants[2]["id"] = json!(7),
            "SV-1/unique-ids" => variants.push(variant("compact", "compact", "stable")),
            "SV-1/descriptions-are-text" => variants[1]["description"] = json!(null),
            "SV-1/hints-are-texts" => variants[1]["hints"]["com.example/level"] = json!(7),
            "SV-1/known-status" => variants[2]["status"] = json!("beta"),
            "SV-1/deprecation-info" => variants[3]["deprecationInfo"]["message"] = json!(null),
            "SV-1/removal-date" => {
                variants[3]["deprecationInfo"]["removalDate"] = json!("next summer")
            }
            "SV-1/replacement-is-another" => {
                variants[3]["deprecationInfo"]["replacement"] = json!("old")
            }
            "SV-1/replacement-exists" => {
                variants[3]["deprecationInfo"]["replacement"] = json!("nowhere")
            }
            "SV-3/few-variants" => {
                variants.extend(["five", "six"].map(|id| variant(id, id, "stable")));
            }
            _ => {}
        }
        variants
    }
}
