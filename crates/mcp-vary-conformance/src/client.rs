//! A client with the capabilities that a check declares, in either era.

use serde_json::{Value, json};

use crate::answer::{Answer, ErrorAnswer};
use crate::connections::Connections;
use crate::era::Era;
use crate::extension::{SELECTOR, offered_in};
use crate::json::{array_at, text_at};
use crate::list_kind::{LIST_KINDS, ListKind};
use crate::objection::{Objection, not_applicable, violation};
use crate::transport::Connection;
use crate::transport::message::{Outgoing, Reply};

/// The most pages of a list that are read.
const PAGES: usize = 20;

/// A client of one era. Modern clients have no connection: they declare their capabilities with each request.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    connections: &'a Connections<'a>,
    connection: Connection,
    declared: Value,
    /// The variant that the header of its requests selects.
    variant_header: Option<&'a str>,
    /// The server's capabilities, as it declared them to this client.
    pub(crate) capabilities: Value,
}

impl<'a> Client<'a> {
    /// A client that declares `capabilities`, and has received those of the server.
    pub(crate) async fn connect(
        connections: &'a Connections<'a>,
        capabilities: Value,
    ) -> Result<Self, Objection> {
        let client = Self::try_connect(connections, capabilities).await?;
        client.or_else(|error| violation(format!("a client was refused with {}", error.describe())))
    }

    /// Like [`Self::connect`], for what a server may refuse.
    pub(crate) async fn try_connect(
        connections: &'a Connections<'a>,
        capabilities: Value,
    ) -> Result<Result<Self, ErrorAnswer>, Objection> {
        let connection = connections.open(&capabilities)?;
        Self::connect_over(connections, connection, capabilities).await
    }

    /// Like [`Self::try_connect`], over a connection.
    pub(crate) async fn connect_over(
        connections: &'a Connections<'a>,
        connection: Connection,
        capabilities: Value,
    ) -> Result<Result<Self, ErrorAnswer>, Objection> {
        let mut client = Self {
            connections,
            connection,
            declared: capabilities,
            variant_header: None,
            capabilities: Value::Null,
        };
        let answer = match connections.era() {
            Era::Legacy => client.initialize().await?,
            Era::Modern => client.ask("server/discover", json!({})).await?,
        };
        Ok(match answer {
            Answer::Result(mut result) => {
                let declared = result.get_mut("capabilities").map(Value::take);
                client.capabilities = declared.unwrap_or_default();
                Ok(client)
            }
            Answer::Error(error) => Err(error),
        })
    }

    async fn initialize(&mut self) -> Result<Answer, Objection> {
        let params = json!({
            "protocolVersion": Era::Legacy.revision(),
            "capabilities": self.declared,
            "clientInfo": client_info(),
        });
        let (reply, answer) = self.exchange("initialize", params).await?;
        if !answer.is_result() {
            return Ok(answer);
        }
        if let (Some(session), Connection::Http(client)) = (reply.session, &mut self.connection) {
            client.session = Some(session);
            self.connections.add_session(&self.connection);
        }
        let method = "notifications/initialized";
        let initialized = Outgoing {
            era: Era::Legacy,
            method,
            params: &Value::Null,
            id: None,
            variant_header: None,
            text: json!({"jsonrpc": "2.0", "method": method}).to_string(),
        };
        let connections = self.connections;
        connections.send(&self.connection, &initialized).await?;
        Ok(answer)
    }

    /// Sends a request, and receives its result or error.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Answer, Objection> {
        Ok(self.exchange(method, params).await?.1)
    }

    /// Sends a request that the server should be able to answer with a result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Result<Value, Objection> {
        self.ask(method, params).await?.into_result(method)
    }

    async fn exchange(&self, method: &str, params: Value) -> Result<(Reply, Answer), Objection> {
        let id = self.connections.next_id();
        let params = self.with_metadata(params);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = Outgoing {
            era: self.connections.era(),
            method,
            params: &params,
            id: Some(id),
            variant_header: self.variant_header,
            text: request.to_string(),
        };
        let reply = self.connections.send(&self.connection, &request).await?;
        let Some(answer) = reply.answer() else {
            let status = &reply.status;
            return Err(Objection::NoAnswer(format!(
                "`{method}` was answered with {status} and no JSON-RPC response"
            )));
        };
        match &answer {
            Answer::Error(error) if reply.status == "HTTP 429" || error.is_limit() => {
                self.connections.record_limit(error);
                Err(Objection::Limited)
            }
            _ => Ok((reply, answer)),
        }
    }

    /// `params` with the metadata that a modern client sends in each request.
    fn with_metadata(&self, mut params: Value) -> Value {
        if self.connections.era() == Era::Modern && params.is_object() {
            let name = |member| format!("io.modelcontextprotocol/{member}");
            let meta = &mut params["_meta"];
            meta[name("protocolVersion")] = Era::Modern.revision().into();
            meta[name("clientInfo")] = client_info();
            meta[name("clientCapabilities")] = self.declared.clone();
        }
        params
    }

    /// The same client, with the header that selects `variant`; none for a command.
    pub(crate) fn with_variant_header(mut self, variant: &'a str) -> Option<Self> {
        self.variant_header = Some(variant);
        matches!(self.connection, Connection::Http(_)).then_some(self)
    }

    /// Whether the server declares what `kind` needs.
    pub(crate) fn has(&self, kind: &ListKind) -> bool {
        self.capabilities.get(kind.name).is_some()
    }

    /// The lists that the server declares.
    pub(crate) fn lists(&self) -> Vec<&'static ListKind> {
        let kinds = LIST_KINDS.into_iter();
        kinds.filter(|kind| self.has(kind)).collect()
    }

    /// A list that the server declares.
    pub(crate) fn any_list(&self) -> Result<&'static ListKind, Objection> {
        let kind = self.lists().first().copied();
        kind.map_or_else(|| not_applicable("the server declares no lists"), Ok)
    }

    /// This client, if the server declares what `kind` needs.
    pub(crate) fn with_list(self, kind: &ListKind) -> Result<Self, Objection> {
        if self.has(kind) {
            Ok(self)
        } else {
            not_applicable(format!("the server does not declare `{}`", kind.name))
        }
    }

    /// The variants that the server offers to this client.
    pub(crate) fn offered(&self) -> &[Value] {
        offered_in(&self.capabilities)
    }

    /// The ids of the variants that the server offers to this client.
    pub(crate) fn variants(&self) -> Vec<&str> {
        ids(self.offered())
    }

    /// The variant that is offered first to this client. Other clients may be offered another one first.
    pub(crate) fn first_variant(&self) -> Result<&str, Objection> {
        let first = self.variants().first().copied();
        first.map_or_else(|| not_applicable("no offered variant has an id"), Ok)
    }

    /// All items of a list, in `variant` if one is given.
    pub(crate) async fn list(
        &self,
        kind: &ListKind,
        variant: Option<&str>,
    ) -> Result<Vec<Value>, Objection> {
        let mut items = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES {
            let mut params = selecting(json!({}), variant);
            if let Some(cursor) = cursor.take() {
                params["cursor"] = cursor;
            }
            let page = self.result(kind.list_method, params).await?;
            items.extend(array_at(&page, &[kind.name]).iter().cloned());
            cursor = page
                .get("nextCursor")
                .filter(|cursor| cursor.is_string())
                .cloned();
            if cursor.is_none() {
                return Ok(items);
            }
        }
        let method = kind.list_method;
        not_applicable(format!("`{method}` has more than {PAGES} pages"))
    }

    /// The names or URIs of a list, sorted.
    pub(crate) async fn keys(
        &self,
        kind: &ListKind,
        variant: Option<&str>,
    ) -> Result<Vec<String>, Objection> {
        let items = self.list(kind, variant).await?;
        let borrowed = items.iter().filter_map(|item| text_at(item, &[kind.key]));
        let mut keys: Vec<String> = borrowed.map(str::to_owned).collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

/// The ids of variants.
pub(crate) fn ids(variants: &[Value]) -> Vec<&str> {
    let ids = variants.iter();
    ids.filter_map(|variant| text_at(variant, &["id"]))
        .collect()
}

/// `params` with the selector of a variant, if one is given.
pub(crate) fn selecting(params: Value, variant: Option<&str>) -> Value {
    match variant {
        Some(variant) => selecting_value(params, &variant.into()),
        None => params,
    }
}

/// `params` with any value as the selector.
pub(crate) fn selecting_value(mut params: Value, selector: &Value) -> Value {
    params["_meta"] = json!({ SELECTOR: selector });
    params
}

fn client_info() -> Value {
    json!({"name": "mcp-vary-conformance", "version": env!("CARGO_PKG_VERSION")})
}
