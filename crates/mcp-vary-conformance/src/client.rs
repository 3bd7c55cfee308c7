//! A client with the capabilities that a check declares, in either era.

use serde_json::{Value, json};

use crate::check::{Era, Objection, violation};
use crate::json::{array_at, at, brief, cut, text_at};
use crate::probe::Probe;
use crate::transport::{Connection, Outgoing, Reply};

/// The content negotiation extension.
pub(crate) const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";

/// The server variants extension.
pub(crate) const VARIANTS: &str = "io.modelcontextprotocol/server-variants";

/// The member of `_meta` that selects a variant.
pub(crate) const SELECTOR: &str = "io.modelcontextprotocol/server-variant";

/// The member of capabilities that had extensions before SEP-2133.
pub(crate) const EXPERIMENTAL: &str = "experimental";

/// What messages of errors say, in lower case, if there were too many requests.
const LIMIT_MESSAGES: [&str; 3] = ["too many requests", "too many switches", "rate limit"];

/// The most pages of a list that are read.
const PAGES: usize = 20;

/// A list of the protocol.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The capability without which the server does not have it.
    pub(crate) capability: &'static str,
    pub(crate) method: &'static str,
    /// The method that reads or uses one element.
    pub(crate) one: &'static str,
    pub(crate) member: &'static str,
    /// The member of an element that identifies it.
    pub(crate) key: &'static str,
}

pub(crate) const TOOLS: Kind = Kind {
    capability: "tools",
    method: "tools/list",
    one: "tools/call",
    member: "tools",
    key: "name",
};

pub(crate) const RESOURCES: Kind = Kind {
    capability: "resources",
    method: "resources/list",
    one: "resources/read",
    member: "resources",
    key: "uri",
};

pub(crate) const PROMPTS: Kind = Kind {
    capability: "prompts",
    method: "prompts/list",
    one: "prompts/get",
    member: "prompts",
    key: "name",
};

pub(crate) const KINDS: [&Kind; 3] = [&TOOLS, &RESOURCES, &PROMPTS];

/// A response: a result, or an error.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Result(Value),
    Error(ErrorAnswer),
}

/// A JSON-RPC error.
#[derive(Clone, Debug)]
pub(crate) struct ErrorAnswer {
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl ErrorAnswer {
    /// The error as part of a sentence.
    pub(crate) fn describe(&self) -> String {
        let message = cut(&self.message, 200);
        let error = match self.code {
            Some(code) => format!("error {code} {message:?}"),
            // An answer without a message of JSON-RPC.
            None if message.starts_with("HTTP ") => message,
            None => format!("an error without a code, {message:?}"),
        };
        match self.data.is_null() {
            true => error,
            false => format!("{error}, data {}", brief(&self.data)),
        }
    }
}

impl Answer {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Result(result) => format!("the result {}", brief(result)),
            Self::Error(error) => error.describe(),
        }
    }

    pub(crate) fn is_result(&self) -> bool {
        matches!(self, Self::Result(_))
    }

    /// The error, or an objection that there is none.
    pub(crate) fn into_error(self, request: &str) -> Result<ErrorAnswer, Objection> {
        match self {
            Self::Error(error) => Ok(error),
            Self::Result(_) => {
                violation(format!("{request} was answered with {}", self.describe()))
            }
        }
    }
}

/// A client of one era. Modern clients have no connection: they declare their capabilities with each request.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    probe: &'a Probe<'a>,
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
        probe: &'a Probe<'a>,
        capabilities: Value,
    ) -> Result<Self, Objection> {
        match Self::try_connect(probe, capabilities).await? {
            Ok(client) => Ok(client),
            Err(error) => violation(format!("a client was refused with {}", error.describe())),
        }
    }

    /// The same, for what a server may refuse.
    pub(crate) async fn try_connect(
        probe: &'a Probe<'a>,
        capabilities: Value,
    ) -> Result<Result<Self, ErrorAnswer>, Objection> {
        let connection = probe.open(&capabilities)?;
        Self::connect_over(probe, connection, capabilities).await
    }

    /// The same, over a connection.
    pub(crate) async fn connect_over(
        probe: &'a Probe<'a>,
        connection: Connection,
        capabilities: Value,
    ) -> Result<Result<Self, ErrorAnswer>, Objection> {
        let mut client = Self {
            probe,
            connection,
            declared: capabilities,
            variant_header: None,
            capabilities: Value::Null,
        };
        let answer = match probe.era() {
            Era::Legacy => client.initialize().await?,
            Era::Modern => client.ask("server/discover", json!({})).await?,
        };
        Ok(match answer {
            Answer::Result(mut result) => {
                client.capabilities = result
                    .get_mut("capabilities")
                    .map(Value::take)
                    .unwrap_or_default();
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
        if matches!(answer, Answer::Error(_)) {
            return Ok(answer);
        }
        if let (Some(id), Connection::Http { session, .. }) = (reply.session, &mut self.connection)
        {
            *session = Some(id);
            self.probe.note_session(&self.connection);
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
        _ = self.probe.send(&self.connection, &initialized).await?;
        Ok(answer)
    }

    /// Sends a request, and receives its result or error.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Answer, Objection> {
        Ok(self.exchange(method, params).await?.1)
    }

    /// Sends a request that the server should be able to answer with a result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Result<Value, Objection> {
        into_result(method, self.ask(method, params).await?)
    }

    async fn exchange(&self, method: &str, params: Value) -> Result<(Reply, Answer), Objection> {
        let id = self.probe.next_id();
        let params = self.with_metadata(params);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = Outgoing {
            era: self.probe.era(),
            method,
            params: &params,
            id: Some(id),
            variant_header: self.variant_header,
            text: request.to_string(),
        };
        let reply = self.probe.send(&self.connection, &request).await?;
        let answer = match &reply.message {
            Some(message) => answer(message),
            // An HTTP server may refuse what it cannot read without a JSON-RPC response.
            None if reply.is_refusal => Answer::Error(ErrorAnswer {
                code: None,
                message: reply.status.clone(),
                data: Value::Null,
            }),
            None => {
                let status = &reply.status;
                return Err(Objection::NoAnswer(format!(
                    "`{method}` was answered with {status} and no JSON-RPC response"
                )));
            }
        };
        match &answer {
            Answer::Error(error) if is_limit(&reply, error) => {
                self.probe.survey().note_limit(error);
                Err(Objection::Limited)
            }
            _ => Ok((reply, answer)),
        }
    }

    /// `params` with what a modern client says in each request.
    fn with_metadata(&self, params: Value) -> Value {
        let Value::Object(mut params) = params else {
            return params;
        };
        if self.probe.era() == Era::Modern {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                let name = |member| format!("io.modelcontextprotocol/{member}");
                meta.insert(name("protocolVersion"), Era::Modern.revision().into());
                meta.insert(name("clientInfo"), client_info());
                meta.insert(name("clientCapabilities"), self.declared.clone());
            }
        }
        Value::Object(params)
    }

    /// The same client, with the header that selects `variant`; none for a command.
    pub(crate) fn with_variant_header(mut self, variant: &'a str) -> Option<Self> {
        self.variant_header = Some(variant);
        matches!(self.connection, Connection::Http { .. }).then_some(self)
    }

    /// Whether the server declares what `kind` needs.
    pub(crate) fn has(&self, kind: &Kind) -> bool {
        self.capabilities.get(kind.capability).is_some()
    }

    /// All elements of a list, in `variant` if one is given.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        variant: Option<&str>,
    ) -> Result<Vec<Value>, Objection> {
        let mut elements = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES {
            let mut params = selecting(json!({}), variant);
            if let (Some(cursor), Value::Object(params)) = (cursor.take(), &mut params) {
                params.insert("cursor".to_owned(), cursor);
            }
            let page = self.result(kind.method, params).await?;
            elements.extend(array_at(&page, &[kind.member]).iter().cloned());
            cursor = page
                .get("nextCursor")
                .filter(|cursor| cursor.is_string())
                .cloned();
            if cursor.is_none() {
                return Ok(elements);
            }
        }
        Err(Objection::NotApplicable(format!(
            "`{}` has more than {PAGES} pages",
            kind.method
        )))
    }

    /// The names or URIs of a list, sorted.
    pub(crate) async fn keys(
        &self,
        kind: &Kind,
        variant: Option<&str>,
    ) -> Result<Vec<String>, Objection> {
        let elements = self.list(kind, variant).await?;
        let keys = elements
            .iter()
            .filter_map(|element| text_at(element, &[kind.key]));
        let mut keys: Vec<String> = keys.map(str::to_owned).collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

/// `params` with the selector of a variant, if one is given.
pub(crate) fn selecting(params: Value, variant: Option<&str>) -> Value {
    match variant {
        Some(variant) => selecting_value(params, &variant.into()),
        None => params,
    }
}

/// `params` with any value as the selector.
pub(crate) fn selecting_value(params: Value, selector: &Value) -> Value {
    match params {
        Value::Object(mut params) => {
            params.insert("_meta".to_owned(), json!({ SELECTOR: selector }));
            Value::Object(params)
        }
        other => other,
    }
}

/// The settings of an extension in `capabilities`. Some servers declare extensions in `experimental`.
pub(crate) fn settings_of<'a>(capabilities: &'a Value, extension: &str) -> Option<&'a Value> {
    let declared = |member| at(capabilities, &[member, extension]);
    declared("extensions").or_else(|| declared(EXPERIMENTAL))
}

/// The variants that `capabilities` offer.
pub(crate) fn offered_in(capabilities: &Value) -> &[Value] {
    settings_of(capabilities, VARIANTS).map_or(&[], |it| array_at(it, &["availableVariants"]))
}

/// Whether the server refused a request only because there were too many.
fn is_limit(reply: &Reply, error: &ErrorAnswer) -> bool {
    let message = error.message.to_ascii_lowercase();
    reply.status == "HTTP 429"
        || error.data.get("retryAfter").is_some()
        || LIMIT_MESSAGES.iter().any(|part| message.contains(part))
}

fn client_info() -> Value {
    json!({"name": "mcp-vary-conformance", "version": env!("CARGO_PKG_VERSION")})
}

fn into_result(method: &str, answer: Answer) -> Result<Value, Objection> {
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Error(error) => {
            violation(format!("`{method}` was answered with {}", error.describe()))
        }
    }
}

fn answer(message: &Value) -> Answer {
    match message.get("error") {
        Some(error) => Answer::Error(ErrorAnswer {
            code: error.get("code").and_then(Value::as_i64),
            message: text_at(error, &["message"]).unwrap_or_default().to_owned(),
            data: error.get("data").cloned().unwrap_or_default(),
        }),
        None => Answer::Result(message.get("result").cloned().unwrap_or_default()),
    }
}
