//! Which variant a client gets that selects none in `_meta`: the order of the rules.

use mcp_vary_gateway::{ClientPattern, ClientRule};

use crate::support::*;

const EXTENSION: &str = "io.modelcontextprotocol/server-variants";

/// `default`, and rules for clients called `bot*` and for those of a team.
fn choosing(mut config: Config) -> Config {
    let rule = |variant: &str| ClientRule::new(variant.parse().unwrap());
    let pattern = |glob| ClientPattern::new(glob).unwrap();
    config.selection.rules = vec![
        rule("read-only").with_header("x-team".parse().unwrap(), pattern("audit*")),
        rule("compact")
            .with_name(pattern("bot*"))
            .with_version(pattern("{1,2}.*")),
    ];
    config
}

/// How a client asks.
#[derive(Clone, Default)]
pub(crate) struct Asks {
    pub(crate) path: Option<&'static str>,
    pub(crate) header: Option<&'static str>,
    pub(crate) team: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) selector: Option<&'static str>,
    pub(crate) capabilities: Value,
    /// What it asks with; nothing when `null`.
    pub(crate) params: Value,
}

impl Asks {
    /// The default after `edit`.
    pub(crate) fn of(edit: impl FnOnce(&mut Self)) -> Self {
        default_with(edit)
    }

    fn dressed(&self, post: HttpRequest) -> HttpRequest {
        let mut post = post.line(&format!("POST {} HTTP/1.1", self.path.unwrap_or("/mcp")));
        for (name, value) in [("MCP-Server-Variant", self.header), ("X-Team", self.team)] {
            if let Some(value) = value {
                post = post.with(name, value);
            }
        }
        post
    }

    fn info(&self) -> Value {
        json!({"name": self.name, "version": "2.1"})
    }

    /// What it asks with, and which variant it names.
    fn params(&self) -> Value {
        let params = match &self.params {
            Value::Null => json!({}),
            sent => sent.clone(),
        };
        match self.selector {
            Some(selector) => under(selector, params),
            None => params,
        }
    }

    /// What a modern client is answered.
    pub(crate) async fn modern(&self, harness: &Harness, method: &str) -> Value {
        let mut params = self.params();
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = self.info();
        let capabilities = match &self.capabilities {
            Value::Null => json!({}),
            sent => sent.clone(),
        };
        let post = HttpRequest::modern_request_as(method, params, &capabilities);
        let mut http = harness.connect().await;
        http.ask(&self.dressed(post)).await.json()
    }

    /// What a legacy client is answered that has begun a session in the same way.
    pub(crate) async fn legacy(&self, harness: &Harness, method: &str) -> Value {
        let capabilities = match &self.capabilities {
            Value::Null => json!({}),
            sent => sent.clone(),
        };
        let mut begin = initialize("2025-11-25", &capabilities);
        begin["params"]["clientInfo"] = self.info();
        let mut http = harness.connect().await;
        let begin = self.dressed(HttpRequest::new(begin.to_string()));
        let begun = http.ask(&begin).await;
        let Some(session) = begun.header("mcp-session-id") else {
            return begun.json();
        };
        let message = request(json!(1), method, self.params());
        let post = HttpRequest::of(session, message.to_string());
        http.ask(&self.dressed(post)).await.json()
    }
}

/// The variant that a list shows, by what is particular of each.
fn shown(list: &Value) -> &'static str {
    let Some(tools) = list["result"]["tools"].as_array() else {
        panic!("no list: {list}");
    };
    let is_read_only = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
    let all_read = tools.iter().all(is_read_only);
    match tools[0]["description"].as_str() {
        Some("Says odd things.") => "compact",
        _ if all_read => "read-only",
        _ => "standard",
    }
}

async fn gets(harness: &Harness, asks: Asks, expected: &str) {
    let list = asks.modern(harness, "tools/list").await;
    assert_eq!(shown(&list), expected, "modern");
    let list = asks.legacy(harness, "tools/list").await;
    assert_eq!(shown(&list), expected, "legacy");
    let first = asks.modern(harness, "server/discover").await;
    let first = &first["result"]["capabilities"]["extensions"][EXTENSION]["availableVariants"];
    if asks.selector.is_none() {
        assert_eq!(first[0]["id"], expected, "the first of the offers");
    }
    assert_eq!(first.as_array().unwrap().len(), 4);
}

/// SV-2: whatever fixes a client's default moves that variant to the front; a selector wins over all of it.
#[tokio::test]
async fn the_first_way_that_applies_decides() {
    let harness = Harness::with(choosing).await;
    let compact = hints(json!({"contextSize": "compact"}));
    let mut asks = Asks::of(|it| it.name = "person");
    gets(&harness, asks.clone(), "standard").await;
    asks.capabilities = hints(json!({"accessLevel": "readonly"}));
    gets(&harness, asks.clone(), "read-only").await;
    asks.name = "Bot 7";
    gets(&harness, asks.clone(), "compact").await;
    asks.team = Some("audit-2");
    asks.capabilities = compact;
    gets(&harness, asks.clone(), "read-only").await;
    asks.header = Some("standard");
    gets(&harness, asks.clone(), "standard").await;
    asks.path = Some("/mcp/v/%63ompact");
    gets(&harness, asks.clone(), "compact").await;
    asks.selector = Some("read-only");
    gets(&harness, asks, "read-only").await;
}

#[tokio::test]
async fn the_operators_default_is_for_clients_that_no_rule_is_about() {
    let harness = Harness::with(|config| {
        let mut config = choosing(config);
        config.selection.default = Some("read-only".parse().unwrap());
        config
    })
    .await;
    let mut asks = Asks::of(|it| it.name = "person");
    gets(&harness, asks.clone(), "read-only").await;
    // Whatever the client's hints ask for.
    asks.capabilities = hints(json!({"contextSize": "compact"}));
    gets(&harness, asks, "read-only").await;
    let asks = Asks::of(|it| it.name = "bot");
    gets(&harness, asks, "compact").await;
}

/// SV-9: a name that address or header get wrong never leads to the default.
#[tokio::test]
async fn what_names_no_variant_is_an_error() {
    let harness = Harness::with(choosing).await;
    let path = Asks::of(|it| it.path = Some("/mcp/v/no-such"));
    let header = Asks::of(|it| it.header = Some("no-such"));
    let twice = Asks::of(|it| it.header = Some("compact, standard"));
    for (asks, named) in [
        (path, "no-such"),
        (header, "no-such"),
        (twice, "compact, standard"),
    ] {
        for answer in [
            asks.modern(&harness, "tools/list").await,
            asks.legacy(&harness, "tools/list").await,
        ] {
            answer.has("/error/message", "Invalid server variant");
            answer.has("/error/data/requestedVariant", named);
        }
    }
    let elsewhere = Asks::of(|it| it.path = Some("/mcp/v/a/b/c"));
    let answer = elsewhere.modern(&harness, "tools/list").await;
    answer.has("/error/code", -32600);
}

/// SV-18
#[tokio::test]
async fn a_header_may_contradict_meta_unless_the_operator_is_strict() {
    let asks = Asks::of(|it| (it.header, it.selector) = (Some("compact"), Some("read-only")));
    let agrees = Asks::of(|it| (it.header, it.selector) = (Some("compact"), Some("compact")));
    let lenient = Harness::start().await;
    gets(&lenient, asks.clone(), "read-only").await;
    let strict = Harness::of(|config| config.selection.strict_header = true).await;
    gets(&strict, agrees, "compact").await;
    refuses(&strict, &asks, "read-only").await;
}

/// What a strict gateway answers: the header selects another variant than `other`.
async fn refuses(strict: &Harness, asks: &Asks, other: &str) {
    for (answer, code) in [
        (asks.modern(strict, "tools/list").await, -32020),
        (asks.legacy(strict, "tools/list").await, -32602),
    ] {
        answer.has("/error/code", code);
        let data = json!({"headerVariant": asks.header, "requestedVariant": other});
        answer.has("/error/data", data);
    }
}

/// SV-18: the address is heard before the header, and a strict gateway wants both to say the same.
#[tokio::test]
async fn a_header_may_contradict_the_address_unless_the_operator_is_strict() {
    let asks = |header, selector| Asks {
        path: Some("/mcp/v/compact"),
        header: Some(header),
        selector,
        ..Asks::default()
    };
    let lenient = Harness::start().await;
    gets(&lenient, asks("read-only", None), "compact").await;
    let strict = Harness::of(|config| config.selection.strict_header = true).await;
    gets(&strict, asks("compact", None), "compact").await;
    gets(&strict, asks("compact", Some("compact")), "compact").await;
    refuses(&strict, &asks("read-only", None), "compact").await;
    // Although the header names no variant, or what `_meta` names.
    refuses(&strict, &asks("no-such", None), "compact").await;
    refuses(&strict, &asks("read-only", Some("read-only")), "compact").await;
    refuses(&strict, &asks("compact", Some("read-only")), "read-only").await;
}

/// SV-10
#[tokio::test]
async fn without_variants_nothing_can_be_chosen() {
    let harness = Harness::with(|config| config.with_variants(false)).await;
    for asks in [
        Asks::of(|it| it.path = Some("/mcp/v/compact")),
        Asks::of(|it| it.header = Some("compact")),
    ] {
        for answer in [
            asks.modern(&harness, "tools/list").await,
            asks.legacy(&harness, "tools/list").await,
        ] {
            answer.has("/error/message", "Server variants not supported");
        }
    }
}
