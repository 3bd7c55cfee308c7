//! A gateway with a page, in front of a scripted server.

use std::net::SocketAddr;

use mcp_vary_config::{FileVariants, Source, VariantEdit, clients_of_variant};
use mcp_vary_gateway::{Environment, Gateway};
use mcp_vary_operator::{AdminToken, Requests, channel};
use mcp_vary_page::{
    DraftedFile, DraftedVariant, GatewayPage, SetupKind, SetupProblem, VariantSave, VariantSource,
    WrittenRule, WrittenVariant,
};
pub(crate) use mcp_vary_testkit::prelude::*;
use tokio::net::TcpListener;

/// The token of the operator.
pub(crate) const TOKEN: &str = "correct-horse-battery";

/// A gateway with a page.
pub(crate) struct Shown {
    pub(crate) gateway: Arc<Gateway>,
    /// Where clients connect.
    mcp: SocketAddr,
    /// Where the operator does.
    pub(crate) address: SocketAddr,
    pub(crate) peer: ScriptedServer,
    _requests: Requests,
}

impl Shown {
    /// In front of the server `places`, with these further lines of a configuration, which can begin with more servers.
    pub(crate) async fn with(lines: &str) -> Self {
        Self::before(places_server::start(Era::Modern).await, lines).await
    }

    /// In front of `peer`, which is called `places`.
    pub(crate) async fn before(peer: ScriptedServer, lines: &str) -> Self {
        let text = format!("servers:\n  places: {{url: {:?}}}\n{lines}", peer.url);
        let file = Source::new("vary.yaml", &text).read(&|_| None);
        let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let environment = Environment::new(|| 1_000_000, |bytes| getrandom::fill(bytes).unwrap());
        let (calls, writes) = (file.program.admin_calls, file.program.admin_writes);
        let mut config = file.into_config(environment);
        let (operator, requests) = channel(Some(&token()));
        config.operator = Some(operator.clone());
        let audit = config.audit.as_ref();
        let audit = audit.map(|audit| audit.start(|| 1_000_000_000_000, environment).unwrap());
        config.audit_log = audit;
        let gateway = Gateway::start(config).await.unwrap();
        let page = GatewayPage::new(&gateway, || 1_000_000_250_000);
        let variants = Arc::new(FileText(text));
        let page = page.with_calls(calls).with_writes(writes);
        let page = page.with_variants(variants);
        operator.set_page(Arc::new(page));
        let (mcp, address) = (listener().await, listener().await);
        let shown = Self {
            gateway: Arc::clone(&gateway),
            mcp: mcp.local_addr().unwrap(),
            address: address.local_addr().unwrap(),
            peer,
            _requests: requests,
        };
        let clients = Arc::clone(&gateway);
        tokio::spawn(async move { clients.serve_http(mcp, std::future::pending()).await });
        tokio::spawn(async move { gateway.serve_admin(address, std::future::pending()).await });
        shown
    }

    /// What the page gets with its token.
    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        get(path).send_to(self.address).await
    }

    /// What the page gets when it posts this.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpResponse {
        let request = HttpRequest::new(body.to_string()).line(&format!("POST {path} HTTP/1.1"));
        authorized(request).send_to(self.address).await
    }

    /// Checks that the post of `body` is refused with `status` and an error that contains `part`.
    pub(crate) async fn refuses(&self, path: &str, body: &Value, status: u16, part: &str) {
        let answer = self.post(path, body).await;
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(answer.status, status, "{body}: {error}");
        assert!(error.contains(part), "{body}: {error}");
    }

    /// A client of 2026-07-28 that calls itself `robot` sends this.
    pub(crate) async fn client_asks(&self, method: &str, params: Value) -> Value {
        let mut message = modern(json!(1), method, params, &json!({}));
        let info = json!({"name": "robot", "version": "7"});
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = info;
        self.client(&HttpRequest::modern(&message)).await.json()
    }

    /// A request to the address of clients.
    pub(crate) async fn client(&self, request: &HttpRequest) -> HttpResponse {
        request.send_to(self.mcp).await
    }
}

/// The text of a file with variants.
#[derive(Debug)]
struct FileText(String);

impl FileText {
    fn read(&self) -> FileVariants {
        FileVariants::read("vary.yaml", &self.0).unwrap()
    }
}

impl VariantSource for FileText {
    fn written(&self, id: &str) -> Result<Option<WrittenVariant>, String> {
        let written = self.read().value(id).zip(self.read().yaml(id));
        Ok(written.map(|(value, yaml)| WrittenVariant {
            value,
            yaml,
            clients: clients_of_variant("vary.yaml", &self.0, id).unwrap(),
            digest: mcp_vary_config::digest(&self.0),
            last_save: Some(VariantSave {
                variant: "second".to_owned(),
                at: 1_795_941_000_000_000,
                is_new: true,
            }),
        }))
    }

    fn save(&self, id: &str, _: &Value, _: Option<&[String]>, digest: &str) -> Result<(), String> {
        Err(format!("nothing writes `{id}` to {digest}"))
    }

    fn undo(&self) -> Result<(), String> {
        Err("nothing was written".to_owned())
    }

    fn rules(&self) -> Result<Vec<WrittenRule>, String> {
        let rules = mcp_vary_config::file_rules("vary.yaml", &self.0).unwrap();
        let written = rules.into_iter().map(|rule| WrittenRule {
            name: rule.name,
            text: rule.text,
            file: "vary.yaml".to_owned(),
            line: rule.at.line,
        });
        Ok(written.collect())
    }

    fn directory(&self) -> Option<String> {
        Some("/srv/vary".to_owned())
    }

    fn problems(&self, gateway: &Gateway) -> Vec<SetupProblem> {
        let file = Source::new("vary.yaml", &self.0).read(&|_| None);
        let file = file.unwrap();
        let unmatched = gateway.unmatched_overrides().into_iter();
        let problems = unmatched.map(|(id, diagnostic)| {
            let placed = file.places.diagnostic(&id, &diagnostic);
            SetupProblem {
                place: format!("vary.yaml:{}", placed.at.line),
                what: format!("`{}` {}", placed.key, placed.what),
                fix: placed.fix.unwrap_or_default(),
                variant: Some(id.to_string()),
                kind: if diagnostic.is_note() {
                    SetupKind::Note
                } else {
                    SetupKind::Setting
                },
            }
        });
        problems.collect()
    }

    fn draft(
        &self,
        id: &str,
        value: Value,
        clients: Option<&[String]>,
    ) -> Result<DraftedVariant, String> {
        let edit = VariantEdit::new("vary.yaml", &self.0, id, &value, clients);
        let draft = self.read().draft(id, value)?;
        Ok(DraftedVariant {
            config: draft.config,
            yaml: draft.yaml,
            file: edit.map(|edit| DraftedFile {
                name: "vary.yaml".to_owned(),
                before: edit.shown_before,
                after: edit.shown_after,
            }),
        })
    }
}

/// Checks that `value` has each of `members`, and in the objects among them at least the members that are given.
#[track_caller]
pub(crate) fn assert_members(value: &Value, members: &Value) {
    for (key, expected) in members.as_object().unwrap() {
        match &value[key] {
            found @ Value::Object(_) if expected.is_object() => assert_members(found, expected),
            found => assert_eq!(found, expected, "`{key}` of {value}"),
        }
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn token() -> AdminToken {
    TOKEN.parse().unwrap()
}

/// A request with the token for the page.
pub(crate) fn get(path: &str) -> HttpRequest {
    authorized(HttpRequest::new("").line(&format!("GET {path} HTTP/1.1")))
}

fn authorized(request: HttpRequest) -> HttpRequest {
    let token = token().for_page();
    request.with("Authorization", format!("Bearer {}", token.expose()))
}
