//! What the scripted server has: tools, resources and prompts, and what calls of its tools answer.

use serde_json::{Value, json};

use super::{IncomingRequest, NEGOTIATION, Peer};

/// The elements of a list in a variant. `compact` lacks the last one of each.
pub(super) fn elements(method: &str, variant: &str) -> Vec<Value> {
    let describe = |text: &str| format!("{text}, as {variant} has it.");
    let read_only = json!({"readOnlyHint": true});
    let mut elements = match method {
        "tools/list" => vec![
            json!({"name": "delete", "description": describe("Deletes all"), "inputSchema": {"type": "object"}}),
            json!({"name": "weather", "description": describe("The weather"), "annotations": read_only,
                "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}),
            json!({"name": "forecast", "description": describe("The forecast"), "annotations": read_only,
                "inputSchema": {"type": "object"},
                "outputSchema": {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}}),
            json!({"name": "debug", "description": describe("What happened"), "annotations": read_only,
                "inputSchema": {"type": "object"}}),
        ],
        "resources/list" => ["test://a", "test://log"]
            .map(|uri| json!({"uri": uri, "name": uri, "description": describe(uri)}))
            .to_vec(),
        "prompts/list" => ["greet", "explain"]
            .map(|name| json!({"name": name, "description": describe(name)}))
            .to_vec(),
        _ => Vec::new(),
    };
    if variant == "compact" {
        elements.pop();
    }
    elements
}

impl Peer {
    /// The result of a tool, shaped by the client's tags.
    pub(super) fn call(&self, request: &IncomingRequest<'_>, name: &str) -> Value {
        match name {
            "weather" => self.weather(request),
            "forecast" => self.forecast(request),
            "delete" => panic!("a check called a tool that changes something"),
            _ => json!({"content": [text("nothing happened")]}),
        }
    }

    fn weather(&self, request: &IncomingRequest<'_>) -> Value {
        assert_eq!(request.params["arguments"], json!({"city": "test"}));
        let structure = json!({"location": "Bern", "temperature": 8});
        let default = self.for_anyone(&structure);
        let markdown = json!({"content": [text("**Bern**: 8")]});
        let declared = request.settings(NEGOTIATION);
        let declares_nothing = declared.is_some_and(|settings| settings["features"] == json!([]));
        let tags = request.tags(self).unwrap_or_default();
        let has = |tag: &str| tags.iter().any(|has| has == tag);
        if let Some(wrong) = self.wrong_form(&tags, declares_nothing, &default) {
            return wrong;
        }
        if has("agent") && has("format=json") {
            self.calls.follows("agent", &[]);
            let session = request.session.map(str::to_owned);
            let last = std::mem::replace(&mut *self.agent.lock().unwrap(), session.clone());
            // Of the sessions of that check alone, which declares the tags in this order.
            let is_of_check = tags[0] == "format=json";
            let is_second = is_of_check && session.is_some() && last == session;
            if is_second && self.has("CN-18/tags-last-for-the-session") {
                return default;
            }
            return self.for_agents(&structure);
        }
        if has("human") && has("format=markdown") {
            self.calls.follows("human", &[]);
            return self.for_humans(&structure);
        }
        if has("format=text") {
            return json!({"content": [text("Bern: 8")]});
        }
        let is_after_both = self
            .calls
            .follows("default", &["default", "default", "agent", "human"]);
        if is_after_both && self.has("CN-7/undeclared-gets-the-default") {
            return markdown;
        }
        default
    }

    /// The result of a fault that shows with these tags.
    fn wrong_form(
        &self,
        tags: &[String],
        declares_nothing: bool,
        default: &Value,
    ) -> Option<Value> {
        let has = |tag: &str| tags.iter().any(|has| has == tag);
        let count = tags.len();
        let markdown = json!({"content": [text("**Bern**: 8")]});
        let failed = json!({"content": [], "isError": true});
        match self.fault {
            "CN-7/no-features-are-the-default" if declares_nothing => Some(markdown),
            "CN-7/unsupported-features-are-the-default" if has("example-nobody=1") => {
                Some(markdown)
            }
            "CN-7/unknown-values-are-the-default" if has("format=yaml") => {
                Some(json!({"content": []}))
            }
            "CN-1/invalid-tags-are-ignored" if has("format==json") && count == 2 => Some(markdown),
            "CN-1/line-breaks-in-tags" if has("format=\n") => Some(failed),
            "CN-1/valid-beside-invalid" if has("format==text") => Some(default.clone()),
            "CN-1/negations-are-accepted" if has("!interactive") => Some(failed),
            "CN-2/many-tags" if count > 100 => Some(markdown),
            "CN-6/explicit-format-wins" if has("sampling") => Some(markdown),
            "CN-4/format-json-is-structured" if has("format=json") && count == 1 => Some(markdown),
            "CN-4/format-text-is-plain" if has("format=text") => Some(markdown),
            "CN-5/excluded-formats-leave-others" if has("format=json") && has("format!=xml") => {
                Some(default.clone())
            }
            "CN-4/compact-is-not-longer" if has("human") && has("verbosity=compact") => {
                Some(json!({"content": [text("**Bern**: 8 degrees, which is cool")]}))
            }
            _ => None,
        }
    }

    /// What clients get that declare nothing.
    fn for_anyone(&self, structure: &Value) -> Value {
        let content = match self.fault {
            "TR-3/structure-comes-with-content" => json!([]),
            "TR-2/text-does-not-contradict" => json!([text(r#"{"temperature":9}"#)]),
            _ => json!([text(&structure.to_string())]),
        };
        json!({"content": content, "structuredContent": structure})
    }

    fn for_agents(&self, structure: &Value) -> Value {
        match self.fault {
            "CN-9/agent-json-is-structured" => json!({"content": []}),
            "CN-9/agent-json-without-text" => {
                json!({"content": [text("8")], "structuredContent": structure})
            }
            "CN-9/bare-structure" => {
                json!({"content": [], "structuredContent": {"type": "object", "properties": structure}})
            }
            _ => json!({"content": [], "structuredContent": structure}),
        }
    }

    fn for_humans(&self, structure: &Value) -> Value {
        let content = json!([text("**Bern**: 8")]);
        match self.fault {
            "CN-10/human-markdown-is-text" => json!({"content": []}),
            "CN-10/human-markdown-without-structure" => {
                json!({"content": content, "structuredContent": structure})
            }
            "CN-10/no-null-structure" => json!({"content": content, "structuredContent": null}),
            _ => json!({ "content": content }),
        }
    }

    fn forecast(&self, request: &IncomingRequest<'_>) -> Value {
        let result = json!({"content": [text("3 days")], "structuredContent": {"days": 3}});
        let without = json!({"content": [text("3 days")]});
        match (self.fault, request.tags(self)) {
            ("TR-4/schema-means-structure", None) => without,
            ("TR-4/structure-fits-the-schema", None) => {
                json!({"content": [text("3")], "structuredContent": {"days": "3"}})
            }
            ("TR-4/shaped-structure-fits-the-schema", Some(tags))
                if tags.contains(&"human".to_owned()) =>
            {
                without
            }
            _ => result,
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
