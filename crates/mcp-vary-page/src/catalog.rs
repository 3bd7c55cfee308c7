//! What each variant lists, and what that costs a model, in the figures of `vary inspect --json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use mcp_vary::json::{Json, Members, string};
use mcp_vary_base::lock::Lock;
use mcp_vary_gateway::{Gateway, VariantTool, VariantTools};
use mcp_vary_tokens::{count, count_array};
use mcp_vary_view::model_tool;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::response::{PageAnswer, failure, tagged};

/// What was counted last.
#[derive(Debug, Default)]
pub(crate) struct CountedCatalog(Lock<Option<Arc<Counted>>>);

/// The figures of what the gateway listed at a moment.
#[derive(Debug)]
struct Counted {
    listed: Listed,
    text: Bytes,
    tag: HeaderValue,
    /// The tokens of the list of each variant.
    tokens: BTreeMap<String, usize>,
}

impl CountedCatalog {
    /// The response to `GET /api/catalog`. Counting 2,000 tools takes a while: call it where nothing else waits.
    pub(crate) fn respond(&self, gateway: &Gateway, known: Option<&HeaderValue>) -> PageAnswer {
        let counted = self.counted(gateway);
        tagged(counted.text.clone(), &counted.tag, known)
    }

    /// What [`respond`](Self::respond) sends, as a value.
    pub(crate) fn value(&self, gateway: &Gateway) -> Value {
        serde_json::from_slice(&self.counted(gateway).text).unwrap_or_default()
    }

    /// The tokens of the list of a variant. It counts like [`respond`](Self::respond).
    pub(crate) fn tokens(&self, gateway: &Gateway, variant: &str) -> Option<usize> {
        self.counted(gateway).tokens.get(variant).copied()
    }

    fn counted(&self, gateway: &Gateway) -> Arc<Counted> {
        let listed = Listed::of(gateway);
        let before = self.0.lock().clone();
        if let Some(counted) = before.filter(|counted| counted.listed == listed) {
            return counted;
        }
        let variants: Vec<_> = listed.variants.iter().map(CountedVariant::of).collect();
        let text = listed.to_json(&variants).to_string();
        let totals = variants
            .iter()
            .map(|counted| (counted.id().to_owned(), counted.tokens));
        let tokens = totals.collect();
        let hash = Sha256::digest(&text);
        let digest: String = hash
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let tag = HeaderValue::try_from(format!("\"{digest}\""));
        let counted = Arc::new(Counted {
            tokens,
            listed,
            text: text.into(),
            tag: tag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
        });
        *self.0.lock() = Some(Arc::clone(&counted));
        counted
    }
}

/// The tools of every server and of every variant.
#[derive(Debug, PartialEq)]
struct Listed {
    /// By the name of the server: names and definitions.
    servers: Vec<(String, Vec<(String, String)>)>,
    variants: Vec<VariantTools>,
}

impl Listed {
    fn of(gateway: &Gateway) -> Self {
        let servers = gateway.servers().into_iter().map(|server| {
            let tools = gateway.server_tools(&server.name);
            (server.name, tools)
        });
        Self {
            servers: servers.collect(),
            variants: gateway.variant_tools(),
        }
    }

    fn to_json(&self, variants: &[CountedVariant<'_>]) -> Value {
        let standard = variants.iter().find(|variant| variant.id() == STANDARD);
        let baseline = standard.or(variants.first());
        let servers: Vec<_> = self.servers.iter().map(|(name, _)| name).collect();
        let tools = self.servers.iter().flat_map(|(server, tools)| {
            let listed = tools.iter();
            listed.map(|(name, definition)| tool_json(server, name, definition, variants))
        });
        json!({
            "encoding": "o200k_base",
            "servers": servers,
            "baseline": baseline.map(CountedVariant::id),
            "tools": tools.collect::<Value>(),
            "variants": variants.iter().map(CountedVariant::to_json).collect::<Value>(),
            "own": gateway_tools_json(variants),
        })
    }
}

/// A variant with the tokens of its tools.
pub(crate) struct CountedVariant<'l> {
    listed: &'l VariantTools,
    /// By server and name there: the tool, and its tokens.
    tools: BTreeMap<(&'l str, &'l str), (&'l VariantTool, usize)>,
    /// The names of the gateway's tools, and their tokens.
    gateway_tools: Vec<(String, usize)>,
    /// The tokens of the list.
    pub(crate) tokens: usize,
}

impl<'l> CountedVariant<'l> {
    pub(crate) fn of(listed: &'l VariantTools) -> Self {
        let tools = listed.tools.iter().map(|tool| {
            let key = (&*tool.server, &*tool.upstream_name);
            (key, (tool, count_tool(&tool.definition)))
        });
        let gateway_tools = listed.gateway_tools.iter();
        let gateway_tools =
            gateway_tools.map(|definition| (name_of(definition), count_tool(definition)));
        let definitions = listed.tools.iter().map(|tool| &tool.definition);
        let all: Vec<_> = definitions.chain(&listed.gateway_tools).collect();
        Self {
            listed,
            tools: tools.collect(),
            gateway_tools: gateway_tools.collect(),
            tokens: count_tools(&all),
        }
    }

    fn id(&self) -> &str {
        self.listed.variant.id.as_str()
    }

    /// The name of a tool in the variant, and its tokens; `None` if the variant does not show it.
    pub(crate) fn shown(&self, server: &str, name: &str) -> Option<(&str, usize)> {
        let (tool, tokens) = self.tools.get(&(server, name))?;
        Some((&tool.name, *tokens))
    }

    fn to_json(&self) -> Value {
        let variant = &self.listed.variant;
        let tools = self.listed.tools.iter();
        let definitions = tools.clone().map(|tool| &tool.definition);
        let all = definitions.chain(&self.listed.gateway_tools);
        let mut by_server = BTreeMap::<_, Vec<_>>::new();
        for tool in tools {
            by_server
                .entry(&tool.server)
                .or_default()
                .push(&tool.definition);
        }
        let counts = by_server
            .into_iter()
            .map(|(server, tools)| (server.clone(), count_tools(&tools).into()));
        let gateway_tools: Vec<_> = self.listed.gateway_tools.iter().collect();
        let whole: Vec<_> = all.map(|tool| compact(tool)).collect();
        json!({
            "id": variant.id,
            "description": variant.description,
            "status": variant.status,
            "hints": variant.hints,
            "deprecationInfo": variant.deprecation_info,
            "tokens": self.tokens,
            "wholeTokens": count_array(&whole),
            "byServer": counts.collect::<Map<_, _>>(),
            "ownTokens": if gateway_tools.is_empty() { 0 } else { count_tools(&gateway_tools) },
            "tools": whole.len(),
        })
    }
}

/// A tool of a server, and how each variant shows it.
fn tool_json(server: &str, name: &str, definition: &str, variants: &[CountedVariant<'_>]) -> Value {
    let original = Members::parse(definition).unwrap_or_default();
    let shown = variants.iter().map(|variant| {
        let shown = variant.tools.get(&(server, name)).map(|(tool, tokens)| {
            let mut shown = json!({"name": tool.name, "tokens": tokens});
            let changed = changed_members(&original, tool);
            if !changed.is_empty() {
                shown["changed"] = json!(changed);
            }
            if tool.is_renamed {
                shown["renamed"] = json!(true);
            }
            if !tool.fixed.is_empty() {
                shown["fixed"] = json!(tool.fixed);
            }
            shown
        });
        (variant.id().to_owned(), json!(shown))
    });
    let written = original.get("annotations");
    let annotations = written.and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "server": server,
        "name": name,
        "tokens": count_tool(definition),
        "annotations": annotations,
        "variants": shown.collect::<Map<_, _>>(),
    })
}

/// The members of a definition that a variant changes, adds or leaves out. A prefix that tells servers apart changes nothing.
fn changed_members(original: &Members<'_>, tool: &VariantTool) -> Vec<String> {
    let shown = Members::parse(&tool.definition).unwrap_or_default();
    let keys = original.iter().map(|(key, _)| key);
    let all = shown.iter().map(|(key, _)| key);
    let added = all.filter(|key| !original.contains(key));
    let is_changed = |key: &&str| match *key {
        "name" => tool.is_renamed,
        key => original.get(key).map(compact) != shown.get(key).map(compact),
    };
    let changed = keys.chain(added).filter(is_changed);
    changed.map(str::to_owned).collect()
}

/// The gateway's own tools, in the variants that list them.
fn gateway_tools_json(variants: &[CountedVariant<'_>]) -> Value {
    let mut tools = BTreeMap::<&str, Map<String, Value>>::new();
    for variant in variants {
        for (name, tokens) in &variant.gateway_tools {
            let shown = tools.entry(name).or_default();
            shown.insert(variant.id().to_owned(), json!({"tokens": tokens}));
        }
    }
    let by_name = tools.into_iter();
    by_name
        .map(|(name, variants)| json!({"name": name, "variants": variants}))
        .collect()
}

/// The response to `GET /api/tool`: the definition of a tool at its server, and in each variant that shows it.
pub(crate) fn tool(gateway: &Gateway, server: &str, name: &str) -> PageAnswer {
    let listed = gateway.server_tools(server).into_iter();
    let Some((_, original)) = listed.into_iter().find(|(listed, _)| listed == name) else {
        return failure(
            StatusCode::NOT_FOUND,
            "no server of this name lists this tool now",
        );
    };
    let variants = gateway.variant_tools().into_iter().filter_map(|variant| {
        let mut tools = variant.tools.into_iter();
        let shown = tools.find(|tool| tool.server == server && tool.upstream_name == name)?;
        Some((variant.variant.id.to_string(), shown.definition))
    });
    // The definitions stay as they are written, with the order of their members.
    let members = [
        ("server", string(server)),
        ("name", string(name)),
        ("original", original),
        ("variants", Members::from_iter(variants).to_json()),
    ];
    crate::response::json_text(Members::from_iter(members).to_json())
}

/// The tokens that a model gets of one tool.
fn count_tool(tool: &str) -> usize {
    count(&model_tool(tool))
}

/// The tokens that a model gets of a list of tools.
fn count_tools(tools: &[&String]) -> usize {
    let shown: Vec<_> = tools.iter().map(|tool| model_tool(tool)).collect();
    count_array(&shown)
}

fn name_of(definition: &str) -> String {
    let members = Members::parse(definition).unwrap_or_default();
    members.get_str("name").unwrap_or_default()
}

/// JSON text without white space between its tokens.
fn compact(text: &str) -> String {
    Json::parse(text).map_or_else(|_| text.to_owned(), |json| json.to_json())
}

/// The variant that the others are compared with.
const STANDARD: &str = "standard";
