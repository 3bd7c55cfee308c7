//! The callers that have a variant or that rules for the names of clients give it to, and those of them who keep another one all the
//! same.

use std::collections::BTreeSet;

use mcp_vary_gateway::{ClientDescription, ClientPattern, Gateway};
use serde_json::{Value, json};

use crate::events::{Clock, ShownCall};

/// Rules that give a variant to clients with these names.
#[derive(Debug)]
pub(crate) struct NameRules<'a> {
    /// The variant.
    pub(crate) id: &'a str,
    /// The names, or patterns of names, as they are drafted.
    pub(crate) names: &'a [String],
    /// Those that the configuration has.
    pub(crate) written: &'a [String],
}

/// What selects the variant of a caller.
#[derive(Debug)]
struct Selected {
    variant: Option<String>,
    by: String,
    rule: Option<String>,
    /// Whether that is so now. It was when the caller called last.
    is_current: bool,
}

impl NameRules<'_> {
    /// What is known of the callers that have the variant or that the rules match, the latest first. `now` has what selects the
    /// variant of each, and `stays` is whether that is another variant, and selected before the rules are asked, and `leaves` whether it is of an experiment
    /// that the rules take the client out of.
    pub(crate) fn callers(&self, gateway: &Gateway, clock: Clock) -> Value {
        let keys = gateway.key_names();
        let is_wanted = |name: &str, variant: Option<&str>| {
            variant == Some(self.id) || matches(self.names, name)
        };
        let wanted = seen(gateway, clock, &is_wanted).into_iter();
        let callers = wanted.take(MOST_CALLERS).filter_map(|mut caller| {
            let selected = Selected::of(gateway, &keys, &caller);
            if !is_wanted(name_of(&caller), selected.variant.as_deref()) {
                return None;
            }
            let name = name_of(&caller);
            let is_passed_over = self.is_passed_over(&selected, name);
            let leaves =
                caller["reason"] == "experiment" && !is_passed_over && matches(self.names, name);
            caller["leaves"] = leaves.into();
            caller["stays"] = is_passed_over.into();
            caller["now"] =
                json!({"variant": selected.variant, "by": selected.by, "rule": selected.rule});
            Some(caller)
        });
        callers.collect()
    }

    /// Whether a client of this name keeps what is selected.
    fn is_passed_over(&self, selected: &Selected, name: &str) -> bool {
        if selected.variant.is_none() || selected.variant.as_deref() == Some(self.id) {
            return false;
        }
        let new = self.names.iter().filter(|it| !self.written.contains(it));
        // New rules are written before those that there are.
        let is_passed_over_now = selected.is_current && !matches(new, name);
        match (&*selected.by, selected.rule.as_deref()) {
            ("pin" | "selector" | "address" | "header", _) => true,
            // Other rules that select a variant are those of `access`.
            ("rule", Some(rule)) if rule != "variant" && !rule.starts_with("clients[") => true,
            _ => is_passed_over_now,
        }
    }
}

impl Selected {
    /// What selects the variant of a caller now, if that can be known, or else when it called last.
    fn of(gateway: &Gateway, keys: &[String], caller: &Value) -> Self {
        let text = |member: &str| caller[member].as_str().map(str::to_owned);
        let principal = text("principal");
        let by = text("reason").unwrap_or_default();
        let is_named = matches!(&*by, "selector" | "address" | "header");
        let is_known = match &principal {
            Some(name) => keys.contains(name),
            None => !gateway.requires_credential(),
        };
        let description = ClientDescription {
            initialize: Some(json!({"clientInfo": caller["client"]}).to_string()),
            key: principal,
            ..ClientDescription::default()
        };
        let explained = (is_known && !is_named).then(|| gateway.explain_client(&description));
        match explained {
            Some(Ok(found)) => Self {
                variant: found.variant.map(|id| id.to_string()),
                by: found.reason.to_owned(),
                rule: found.rule,
                is_current: true,
            },
            _ => Self {
                variant: text("variant"),
                by,
                rule: text("variantRule").or_else(|| text("rule")),
                is_current: false,
            },
        }
    }
}

/// The last calls of each client and person, then the clients that were seen and called nothing, whose name or variant is wanted.
fn seen(
    gateway: &Gateway,
    clock: Clock,
    is_wanted: &dyn Fn(&str, Option<&str>) -> bool,
) -> Vec<Value> {
    let calls = gateway.last_calls();
    let mut known = BTreeSet::new();
    let of_clients = calls.iter().filter(|call| {
        let Some(client) = &call.source.client else {
            return false;
        };
        let person = call.source.principal.as_ref().map(|id| id.as_str());
        let [name, version] = [client.name.as_str(), client.version.as_str()];
        let variant = call.source.variant.as_ref().map(|id| id.as_str());
        let is_last = known.insert((name, version, person));
        person != Some(OPERATOR) && is_last && is_wanted(name, variant)
    });
    let mut callers: Vec<_> = of_clients
        .map(|call| json!(ShownCall::new(call, clock)))
        .collect();
    for client_use in gateway.status().clients {
        let client = json!(client_use);
        let is_new = callers.iter().all(|it| it["client"] != client["client"]);
        if is_new && is_wanted(name_of(&client), client["variant"].as_str()) {
            callers.push(client);
        }
    }
    callers
}

fn name_of(caller: &Value) -> &str {
    caller["client"]["name"].as_str().unwrap_or_default()
}

fn matches<'n>(names: impl IntoIterator<Item = &'n String>, name: &str) -> bool {
    let mut patterns = names.into_iter().map(|pattern| ClientPattern::new(pattern));
    patterns.any(|pattern| pattern.is_ok_and(|pattern| pattern.matches(name)))
}

/// Who makes the calls of the page.
pub(crate) const OPERATOR: &str = "operator's page";
/// To find out what one gets takes as long as to list all tools.
const MOST_CALLERS: usize = 20;
