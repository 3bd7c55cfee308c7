//! An MCP client that declares given capabilities.

pub(crate) mod result;
mod unknown_feature;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANT_META, SERVER_VARIANTS, settings};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary::ignored::Ignored;
use mcp_vary::json::{self, Members};
use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{UpstreamConfig, call_headers};
use mcp_vary_upstream::{Request, UpstreamConnection};
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::list_kind::ListKind;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::environment::variable;
use crate::failure::{Failure, refused_variant};
use crate::print::{notice, sanitize};

/// The declarations of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientIdentity {
    /// Its feature tags as given; `None` if it does not support content negotiation.
    pub(crate) features: Option<String>,
    /// Its hints for variants; `None` if it does not support variants.
    pub(crate) hints: Option<VariantHints>,
    /// Its name and version; those of Vary without one.
    pub(crate) name: Option<ClientName>,
    /// Whether it selects variants, so that it declares the extension without hints, too.
    pub(crate) selects_variants: bool,
}

impl ClientIdentity {
    /// A client with the given features and hints. Values without effect are reported on standard error, but declared:
    /// the server decides what it ignores.
    pub(crate) fn from_args(features: Option<&str>, hints: &[String]) -> Result<Self, Failure> {
        if let Some(features) = features {
            let (read, ignored) = Features::from_tags(tags(features));
            warn("--features", &ignored);
            for sentence in unknown_feature::suggestions(&read) {
                notice(&sanitize(&format!("note: {sentence}")));
            }
        }
        let split: Option<Vec<(&str, &str)>> =
            hints.iter().map(|hint| hint.split_once('=')).collect();
        let pairs = split.ok_or_else(|| {
            Failure::command(
                "a --hints cannot be read; write it as KEY=VALUE, such as contextSize=compact",
            )
        })?;
        let single = pairs
            .iter()
            .flat_map(|(key, values)| values.split(',').map(|value| (*key, value.trim())));
        let (hints, ignored) = VariantHints::from_pairs(single);
        warn("--hints", &ignored);
        Ok(Self {
            features: features.map(str::to_owned),
            hints: (!hints.is_empty()).then_some(hints),
            name: None,
            selects_variants: false,
        })
    }

    /// This client under `name`, if there is one.
    pub(crate) fn named(self, name: Option<ClientName>) -> Self {
        Self { name, ..self }
    }

    /// The same client, which selects variants or does not.
    pub(crate) fn selecting_variants(self, selects_variants: bool) -> Self {
        Self {
            selects_variants,
            ..self
        }
    }

    /// The client's capabilities, JSON text.
    pub(crate) fn capabilities(&self) -> String {
        let mut extensions = Map::new();
        if let Some(features) = &self.features {
            let declared: Vec<&str> = tags(features).collect();
            extensions.insert(
                CONTENT_NEGOTIATION.to_owned(),
                json!({"version": "1.0", "features": declared}),
            );
        }
        let settings = self.hints.as_ref().map(VariantHints::to_settings);
        let variants = settings.or_else(|| self.selects_variants.then(|| json!({})));
        if let Some(variants) = variants {
            extensions.insert(SERVER_VARIANTS.to_owned(), variants);
        }
        if extensions.is_empty() {
            return "{}".to_owned();
        }
        json!({ "extensions": extensions }).to_string()
    }
}

fn tags(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|tag| !tag.is_empty())
}

fn warn(flag: &str, ignored: &Ignored) {
    if !ignored.is_empty() {
        notice(&sanitize(&format!(
            "warning: of {flag}, this has no effect: {ignored}"
        )));
    }
}

/// The answer to a request: the JSON text of the result, or of the error.
pub(crate) type Answer = Result<String, String>;

/// A connected client.
#[derive(Debug)]
pub(crate) struct Client {
    upstream: Arc<UpstreamConnection>,
    /// The servers whose tools a gateway could not list, as it names them: those that were starting, and those that were down.
    missing: Mutex<[Vec<String>; 2]>,
}

impl Client {
    /// Connects to `server` as `identity`.
    pub(crate) async fn connect(
        server: UpstreamConfig,
        identity: &ClientIdentity,
    ) -> Result<Self, Failure> {
        Self::connect_until(server, identity, &CancellationToken::new()).await
    }

    /// The same; if `stop` is cancelled first, a process that was started has ended when this returns.
    pub(crate) async fn connect_until(
        server: UpstreamConfig,
        identity: &ClientIdentity,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        let mut config = server.with_capabilities(identity.capabilities());
        if let Some(name) = &identity.name {
            config = config.with_client_info(json!(name).to_string());
        }
        config.variables = variable;
        Ok(Self {
            upstream: UpstreamConnection::connect_until(config, stop).await?,
            missing: Mutex::default(),
        })
    }

    pub(crate) fn handshake(&self) -> &Handshake {
        self.upstream.handshake()
    }

    /// The last lines that the server's process wrote to its standard error.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        self.upstream.stderr_lines()
    }

    /// The servers behind it whose tools the last list lacks, and why, as a sentence; `None` if none is known.
    pub(crate) fn missing_servers(&self) -> Option<String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let states = missing.iter().zip(["still starting", "down"]);
        let named = states.filter(|(names, _)| !names.is_empty());
        let sentences = named.map(|(names, state)| {
            let are = if names.len() == 1 { "is" } else { "are" };
            let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} {are} {state}", quoted.join(", "))
        });
        let parts: Vec<_> = sentences.collect();
        (!parts.is_empty()).then(|| parts.join(", and "))
    }

    /// The servers behind it that were starting at the last list of its tools.
    pub(crate) fn starting_servers(&self) -> Vec<String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing[0].clone()
    }

    /// Whether servers behind it were down at the last list of its tools, and none was starting.
    pub(crate) fn has_only_servers_down(&self) -> bool {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing[0].is_empty() && !missing[1].is_empty()
    }

    /// Notes on standard error that tools are missing, and which command reports why servers are down.
    pub(crate) fn note_missing(&self, reports: &str) {
        if let Some(missing) = self.missing_servers() {
            let is_settled = self.has_only_servers_down();
            let next = if is_settled {
                format!("; `{reports}` says why")
            } else {
                String::new()
            };
            notice(&sanitize(&format!(
                "note: {missing}, so the list of tools is not complete{next}"
            )));
        }
    }

    pub(crate) async fn close(&self) {
        self.upstream.close().await;
    }

    /// The variants that the server offers this client, best first.
    pub(crate) fn variants(&self) -> Vec<ServerVariant> {
        let capabilities: Value =
            serde_json::from_str(&self.handshake().capabilities).unwrap_or_default();
        let declared = settings(&capabilities, SERVER_VARIANTS);
        let offered =
            declared.and_then(|settings| settings.value().get("availableVariants")?.as_array());
        offered.into_iter().flatten().filter_map(variant).collect()
    }

    /// Rejects the selection of a variant if the server does not support variants.
    pub(crate) fn check_selectable(&self, variant: Option<&str>) -> Result<(), Failure> {
        let capabilities: Value =
            serde_json::from_str(&self.handshake().capabilities).unwrap_or_default();
        if variant.is_none() || settings(&capabilities, SERVER_VARIANTS).is_some() {
            return Ok(());
        }
        Err(Failure::looked_at(
            "the server offers no variants; leave --variant out",
        ))
    }

    /// Whether there are more variants than those offered.
    pub(crate) fn more_variants(&self) -> bool {
        let capabilities: Value =
            serde_json::from_str(&self.handshake().capabilities).unwrap_or_default();
        let declared = settings(&capabilities, SERVER_VARIANTS);
        declared.is_some_and(|settings| {
            settings.value().get("moreVariantsAvailable") == Some(&Value::Bool(true))
        })
    }

    /// All listed tools, each as the JSON text that the server sent.
    pub(crate) async fn tools(&self, variant: Option<&str>) -> Result<Vec<String>, Failure> {
        self.items(ListKind::Tools, variant).await
    }

    /// All items of a list, each as the JSON text that the server sent.
    pub(crate) async fn items(
        &self,
        kind: ListKind,
        variant: Option<&str>,
    ) -> Result<Vec<String>, Failure> {
        self.listed(kind.method(), kind.items_key(), variant).await
    }

    /// All elements of the member `list` of the results of `method`, on all pages.
    pub(crate) async fn listed(
        &self,
        method: &'static str,
        list: &str,
        variant: Option<&str>,
    ) -> Result<Vec<String>, Failure> {
        let mut listed = Vec::new();
        let mut cursor: Option<String> = None;
        let mut seen = BTreeSet::new();
        for _ in 0..MOST_PAGES {
            let members: Vec<_> = cursor
                .iter()
                .map(|cursor| ("cursor", json::string(cursor)))
                .collect();
            let request = Request::new(method, Some(self.params(&members, variant)));
            let page = self.send(request).await?.map_err(|error| {
                let meant = variant.and_then(|id| refused_variant::unknown_variant(&error, id));
                match meant {
                    Some(why) => Failure::command(sanitize(&why)),
                    None => Failure::looked_at(sanitize(&format!(
                        "the server does not list its {list}: {}",
                        sentence(&error)
                    ))),
                }
            })?;
            let unreadable = |error: json::JsonError| {
                Failure::looked_at(format!(
                    "the server's list of {list} cannot be read: {error}"
                ))
            };
            let page = Members::parse(&page).map_err(unreadable)?;
            if method == ListKind::Tools.method() {
                let meta = page.get("_meta").unwrap_or_default();
                let meta: Value = serde_json::from_str(meta).unwrap_or_default();
                let names = |key: &str| serde_json::from_value(meta[key].clone());
                let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                *missing = ["vary/starting", "vary/down"].map(|key| names(key).unwrap_or_default());
            }
            let items = json::elements(page.get(list).unwrap_or_default()).map_err(unreadable)?;
            listed.extend(items.into_iter().map(str::to_owned));
            cursor = page.get_str("nextCursor");
            let Some(next) = &cursor else {
                return Ok(listed);
            };
            if !seen.insert(next.clone()) {
                return Err(Failure::looked_at(format!(
                    "the server's list of {list} does not end: it gave the same cursor twice",
                )));
            }
        }
        Err(Failure::looked_at(format!(
            "the server's list of {list} has more than {MOST_PAGES} pages"
        )))
    }

    /// Calls `tool` with `arguments`, the JSON text of an object.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        variant: Option<&str>,
    ) -> Result<Answer, Failure> {
        let members = [
            ("name", json::string(tool)),
            ("arguments", arguments.to_owned()),
        ];
        let mut request =
            Request::new("tools/call", Some(self.params(&members, variant))).with_name(tool);
        if self.upstream.accepts_param_headers()
            && let Some(schema) = self.input_schema(tool, variant).await
        {
            request = request.with_param_headers(call_headers(&schema, arguments));
        }
        self.send(request).await
    }

    /// The input schema of `tool`, which may require headers. If the tool is not listed, the server decides whether it
    /// exists.
    async fn input_schema(&self, tool: &str, variant: Option<&str>) -> Option<String> {
        let listed = self.listed_tool(tool, variant).await.ok()??;
        let schema = Members::parse(&listed).ok()?;
        schema.get("inputSchema").map(str::to_owned)
    }

    /// `tool` as the server lists it, if it does.
    pub(crate) async fn listed_tool(
        &self,
        tool: &str,
        variant: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let is_meant = |listed: &String| {
            let listed = Members::parse(listed).ok();
            listed.and_then(|listed| listed.get_str("name")).as_deref() == Some(tool)
        };
        Ok(self.tools(variant).await?.into_iter().find(is_meant))
    }

    async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let answer = self.upstream.request(request).await?.answer().await?;
        Ok(answer.outcome().map(str::to_owned).map_err(str::to_owned))
    }

    fn params(&self, members: &[(&'static str, String)], variant: Option<&str>) -> String {
        let mut meta = Members::default();
        for (key, value) in self.upstream.client_meta() {
            meta.set(*key, value.as_str());
        }
        if let Some(variant) = variant {
            meta.set(SERVER_VARIANT_META, json::string(variant));
        }
        let mut params = Members::default();
        for (key, value) in members {
            params.set(*key, value.as_str());
        }
        if !meta.is_empty() {
            params.set("_meta", meta.to_json());
        }
        params.to_json()
    }
}

/// A variant as a server offers it. If the variant is invalid, only its valid members.
fn variant(offered: &Value) -> Option<ServerVariant> {
    if let Ok(variant) = serde_json::from_value(offered.clone()) {
        return Some(variant);
    }
    let id = offered.get("id")?.as_str()?.parse().ok()?;
    let description = offered.get("description").and_then(Value::as_str);
    Some(ServerVariant::new(id, description.unwrap_or_default()))
}

/// A JSON-RPC error as a sentence.
pub(crate) fn sentence(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let message = error["message"]
        .as_str()
        .unwrap_or("an error without a message");
    let available = error["data"]["availableVariants"].as_array().map(|ids| {
        let known: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
        format!("; there are {}", known.join(", "))
    });
    format!(
        "{message} ({}){}",
        error["code"],
        available.unwrap_or_default()
    )
}

/// The most pages of a list that are read, in case a list never ends.
const MOST_PAGES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn declares(features: Option<&str>, hints: &[&str], expected: &Value) {
        let hints: Vec<String> = hints.iter().map(|hint| (*hint).to_owned()).collect();
        let identity = ClientIdentity::from_args(features, &hints).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&identity.capabilities()).unwrap(),
            *expected
        );
    }

    #[test]
    fn a_client_declares_what_was_typed() {
        declares(None, &[], &json!({}));
        declares(
            Some(""),
            &[],
            &json!({"extensions": {CONTENT_NEGOTIATION: {"version": "1.0", "features": []}}}),
        );
        let features = json!({"version": "1.0", "features": ["agent", "format==json"]});
        declares(
            Some("agent, format==json"),
            &[],
            &json!({"extensions": {CONTENT_NEGOTIATION: features}}),
        );
        let hints = json!({"variantHints": {"hints": {"useCase": ["planning", "execution"]}}});
        declares(
            None,
            &["useCase=planning,execution"],
            &json!({"extensions": {SERVER_VARIANTS: hints}}),
        );
    }

    /// SV-2: a client that selects a variant declares the extension, with hints or without.
    #[test]
    fn a_client_that_selects_variants_declares_them() {
        let selecting = ClientIdentity::default().selecting_variants(true);
        let expected = r#"{"extensions":{"io.modelcontextprotocol/server-variants":{}}}"#;
        assert_eq!(selecting.capabilities(), expected);
        let other = ClientIdentity::default().selecting_variants(false);
        assert_eq!(other.capabilities(), "{}");
    }

    #[test]
    fn a_variant_that_breaks_the_rules_is_still_seen() {
        let offered = json!({"id": "a", "status": "new", "hints": {"useCase": ["planning"]}});
        assert_eq!(variant(&offered).unwrap().id, "a");
        assert_eq!(variant(&json!({"description": "no id"})), None);
    }

    #[test]
    fn errors_are_sentences() {
        let text = r#"{"code":-32602,"message":"Invalid server variant","data":{"availableVariants":["a","b"]}}"#;
        assert_eq!(
            sentence(text),
            "Invalid server variant (-32602); there are a, b"
        );
        assert_eq!(sentence("7"), "an error without a message (null)");
    }
}
