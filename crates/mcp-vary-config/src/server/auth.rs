//! `auth` of a server: the login of a person, the client credentials of a service, or tokens in exchange for those of clients.

use mcp_vary_login::address::Address;
use mcp_vary_login::assertion::SigningKey;
use mcp_vary_login::exchange::{ExchangeForm, ExchangeServer, ExchangeSettings};
use mcp_vary_login::login::LoginSettings;
use mcp_vary_login::scope::Scopes;
use mcp_vary_login::secret::Secret;
use mcp_vary_login::service::{ServiceAuthentication, ServiceSettings};
use mcp_vary_login::user_agent::Flow;
use mcp_vary_upstream::{Target, UpstreamConfig};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::document;
use crate::key_spec::ValueKind::{Other, Switch};
use crate::key_spec::{KeySpec, choice, count, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// How Vary authenticates at a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerAuth {
    /// The method with its settings.
    pub method: AuthMethod,
    /// A digest of the settings, by which a reload finds out whether they are the same.
    pub identity: String,
}

/// A method, with its settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AuthMethod {
    /// A person logs in with `vary login`.
    Login {
        /// What to log in to.
        settings: Box<LoginSettings>,
        /// How the person authorizes.
        flow: Flow,
    },
    /// A service has credentials.
    ClientCredentials(Box<ServiceSettings>),
    /// The access token of each client is exchanged.
    TokenExchange(Box<ExchangeSettings>),
}

/// `auth` while it is read.
#[derive(Default)]
pub(super) struct PartialAuth {
    method: Option<Method>,
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key: Option<String>,
    key_id: Option<String>,
    scopes: Vec<String>,
    issuer: Option<String>,
    redirect_port: Option<u16>,
    is_device: bool,
    token_endpoint: Option<String>,
    form: ExchangeForm,
    resource: Option<String>,
    audience: Option<String>,
    for_lists: Option<Box<Self>>,
}

#[derive(Clone, Copy, Debug)]
enum Method {
    Login,
    ClientCredentials,
    TokenExchange,
}

const EXAMPLE: &str =
    "`login`, or {client-credentials: {client-id: ..., client-secret: ..., issuer: ...}}";

/// Reads `login`, or a table with one method.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PartialAuth> {
    let mut auth = PartialAuth::default();
    if matches!(field.node.value, document::Value::Table(_)) {
        reader.settings(field, &[METHODS], &mut auth, EXAMPLE);
        let keys = field.keys();
        let names = METHODS.iter().map(|method| method.key);
        let methods: Vec<_> = names.filter(|key| keys.contains(key)).collect();
        match methods[..] {
            [_] => {}
            [] if reader.was_meant(field, &["login", "client-credentials", "token-exchange"]) => {}
            [] => reader.report(field, "has no method", &format!("write {EXAMPLE}")),
            _ => reader.report(field, "has several methods", "keep one of them"),
        }
    } else if reader.word(field)? == "login" {
        auth.method = Some(Method::Login);
    } else {
        let what = "is not a way to authenticate at a server";
        reader.report(field, what, &format!("write {EXAMPLE}"));
    }
    Some(auth)
}

impl PartialAuth {
    /// The settings for `server`, unless they have errors.
    pub(super) fn finish(
        self,
        reader: &mut Reader<'_>,
        field: &Located<'_>,
        server: &UpstreamConfig,
    ) -> Option<ServerAuth> {
        let method = self.method?;
        let Target::Http { url, .. } = &server.target else {
            return None;
        };
        let written = url.to_string();
        let Ok(address) = Address::parse(&written) else {
            let what = "needs a `url` without a user, a password and a fragment";
            reader.report(field, what, "remove them");
            return None;
        };
        let table = field.deepest(&[method.key()]);
        let identity = self.identity(method, &written);
        let entry = (address, server);
        let finished = match method {
            Method::Login => self.into_login(reader, &table, entry),
            Method::ClientCredentials => {
                let settings = self.into_service(reader, &table, entry)?;
                Some(AuthMethod::ClientCredentials(Box::new(settings)))
            }
            Method::TokenExchange => self.into_exchange(reader, &table, entry),
        };
        let method = finished?;
        Some(ServerAuth { method, identity })
    }

    /// The login at the server with this address and entry.
    fn into_login(
        self,
        reader: &mut Reader<'_>,
        table: &Located<'_>,
        (address, server): (Address, &UpstreamConfig),
    ) -> Option<AuthMethod> {
        let is_complete = self.check(reader, table, Method::Login);
        let issuer = self.address(reader, table, "issuer", self.issuer.as_deref());
        let mut settings = LoginSettings::new(&server.name, address);
        settings.ca.clone_from(&server.ca);
        settings.issuer = is_complete.then_some(issuer)??;
        settings.scope = self.scopes();
        settings.client.id = self.client_id;
        settings.client.secret = self.client_secret.map(Secret::new);
        settings.client.redirect_port = self.redirect_port;
        let flow = if self.is_device {
            Flow::Device
        } else {
            Flow::AuthorizationCode
        };
        Some(AuthMethod::Login {
            settings: Box::new(settings),
            flow,
        })
    }

    /// The service that the server knows.
    fn into_service(
        self,
        reader: &mut Reader<'_>,
        table: &Located<'_>,
        (address, server): (Address, &UpstreamConfig),
    ) -> Option<ServiceSettings> {
        let is_complete = self.check(reader, table, Method::ClientCredentials);
        let issuer = self.address(reader, table, "issuer", self.issuer.as_deref());
        let issuer = is_complete.then_some(issuer)??;
        let authentication = self.authentication(reader, table)?;
        let scopes = self.scopes();
        let mut settings = ServiceSettings::new(address, self.client_id?, authentication);
        settings.ca.clone_from(&server.ca);
        settings.issuer = issuer;
        settings.scope = scopes;
        Some(settings)
    }

    /// The exchange of tokens for those of the server.
    fn into_exchange(
        mut self,
        reader: &mut Reader<'_>,
        table: &Located<'_>,
        (address, server): (Address, &UpstreamConfig),
    ) -> Option<AuthMethod> {
        let is_complete = self.check(reader, table, Method::TokenExchange);
        let issuer = self.address(reader, table, "issuer", self.issuer.as_deref());
        let token_endpoint = self.token_endpoint.as_deref();
        let token_endpoint = self.address(reader, table, "token-endpoint", token_endpoint);
        let for_lists = self.for_lists.take().map(|service| {
            let lists_table = table.deepest(&["for-lists"]);
            let mut service = *service;
            service.issuer = service.issuer.or_else(|| self.issuer.clone());
            service.into_service(reader, &lists_table, (address.clone(), server))
        });
        let issuer = is_complete.then_some(issuer)??;
        let endpoint = token_endpoint?.map(ExchangeServer::TokenEndpoint);
        let authentication = self.authentication(reader, table)?;
        let exchange_server = endpoint.or(issuer.map(ExchangeServer::Issuer))?;
        let scopes = self.scopes();
        let id = self.client_id?;
        let mut settings = ExchangeSettings::new(address, exchange_server, id, authentication);
        settings.ca.clone_from(&server.ca);
        settings.scope = scopes;
        settings.form = self.form;
        settings.audience = self.audience;
        settings.for_lists = for_lists.map_or(Some(None), |service| service.map(Some))?;
        // Authorization servers with this form take the resource from the scopes.
        let has_default = self.form != ExchangeForm::OnBehalfOf;
        let by_default = has_default.then_some(settings.resource).flatten();
        settings.resource = self.resource.or(by_default);
        Some(AuthMethod::TokenExchange(Box::new(settings)))
    }

    /// Reports keys that are missing, or that contradict each other.
    fn check(&self, reader: &mut Reader<'_>, table: &Located<'_>, method: Method) -> bool {
        let before = reader.diagnostics.len();
        match method {
            Method::Login => {
                if self.client_secret.is_some() && self.client_id.is_none() {
                    let fix = "add `client-id: ...`, the client that the secret belongs to";
                    reader.report(table, "has `client-secret` without `client-id`", fix);
                }
            }
            Method::ClientCredentials => {
                let fix = "add `client-id: ...`, as the authorization server knows the service";
                reader.require(table, &[("client-id", fix)]);
                self.check_authentication(reader, table);
            }
            Method::TokenExchange => {
                let fix = "add `client-id: ...`, as the authorization server knows the gateway";
                reader.require(table, &[("client-id", fix)]);
                self.check_authentication(reader, table);
                self.check_exchange(reader, table);
            }
        }
        reader.diagnostics.len() == before
    }

    fn check_exchange(&self, reader: &mut Reader<'_>, table: &Located<'_>) {
        let keys = table.keys();
        let has = |key: &str| keys.contains(&key);
        match (has("issuer"), has("token-endpoint")) {
            (true, true) => {
                reader.report(
                    table,
                    "has `issuer` and `token-endpoint`",
                    "keep one of them",
                );
            }
            (false, false) if !reader.was_meant(table, &["issuer", "token-endpoint"]) => {
                let what = "has neither `issuer` nor `token-endpoint`";
                let fix = "add `issuer: ...`, the authorization server that gets the tokens of your users";
                reader.report(table, what, fix);
            }
            _ => {}
        }
        if self.form == ExchangeForm::OnBehalfOf && !has("scopes") {
            let what = "has `form: on-behalf-of` without `scopes`";
            let fix = "add `scopes: [...]`, such as `api://SERVER/.default`";
            reader.report(table, what, fix);
        }
    }

    fn check_authentication(&self, reader: &mut Reader<'_>, table: &Located<'_>) {
        let keys = table.keys();
        let has = |key: &str| keys.contains(&key);
        match (has("client-secret"), has("private-key")) {
            (true, true) => {
                let what = "has `client-secret` and `private-key`";
                reader.report(table, what, "keep one of them");
            }
            (false, false) if !reader.was_meant(table, &["client-secret", "private-key"]) => {
                let what = "has neither `client-secret` nor `private-key`";
                reader.report(table, what, "write one of them");
            }
            _ => {}
        }
        if has("key-id") && !has("private-key") {
            let what = "has `key-id` without `private-key`";
            reader.report(table, what, "add `private-key: ...`, or remove `key-id`");
        }
    }

    /// The address in `key`; the outer `None` if it is not a URL.
    #[expect(
        clippy::option_option,
        reason = "no address is not the same as an invalid one"
    )]
    fn address(
        &self,
        reader: &mut Reader<'_>,
        table: &Located<'_>,
        key: &'static str,
        text: Option<&str>,
    ) -> Option<Option<Address>> {
        let Some(text) = text else {
            return Some(None);
        };
        let address = reader.usable(&table.deepest(&[key]), Address::parse(text));
        address.map(Some)
    }

    fn identity(&self, method: Method, url: &str) -> String {
        let settings = (
            (method, url, &self.client_id, &self.client_secret),
            (&self.private_key, &self.key_id, &self.scopes, &self.issuer),
            (self.redirect_port, self.is_device, self.form),
            (&self.token_endpoint, &self.resource, &self.audience),
            self.for_lists
                .as_ref()
                .map(|service| service.identity(Method::ClientCredentials, url)),
        );
        let digest = Sha256::digest(format!("{settings:?}"));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn scopes(&self) -> Scopes {
        Scopes::from_names(self.scopes.iter().map(String::as_str))
    }

    fn authentication(
        &self,
        reader: &mut Reader<'_>,
        table: &Located<'_>,
    ) -> Option<ServiceAuthentication> {
        if let Some(secret) = &self.client_secret {
            return Some(ServiceAuthentication::Secret(Secret::new(&**secret)));
        }
        let key = SigningKey::from_pem(self.private_key.as_deref()?, self.key_id.clone());
        let key = reader.usable(&table.deepest(&["private-key"]), key)?;
        Some(ServiceAuthentication::PrivateKey(key))
    }
}

impl Method {
    const fn key(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::ClientCredentials => "client-credentials",
            Self::TokenExchange => "token-exchange",
        }
    }
}

/// The methods.
const METHODS: &[KeySpec<PartialAuth>] = keys![
    /// a person logs in with `vary login NAME`, and all users of the gateway use that login. `login` alone is an empty
    /// table
    "login" => Other(
        |schema| schema.table("`auth.login`", &[LOGIN, COMMON]),
        |reader, field, auth| {
            auth.method = Some(Method::Login);
            reader.settings(field, &[LOGIN, COMMON], auth, "{client-id: ...}");
        },
    ),
    /// a service authenticates with its own credentials (OAuth 2.1, client credentials)
    "client-credentials" => Other(service_shape, |reader, field, auth| {
        auth.method = Some(Method::ClientCredentials);
        let example = "{client-id: ..., client-secret: ..., issuer: ...}";
        reader.settings(field, &[SERVICE, COMMON], auth, example);
    }),
    /// the access token of each user is [exchanged](../../how-to/token-exchange.md) for one of the
    /// server (RFC 8693). Each user has its own connections. Needs `issuers` in `auth`; users without an access token,
    /// such as those with API keys, cannot use the server
    "token-exchange" => Other(
        |schema| {
            let table = schema.table("`auth.token-exchange`", &[EXCHANGE, SERVICE, SCOPES]);
            schema.with_required(table, &["client-id"])
        },
        |reader, field, auth| {
            auth.method = Some(Method::TokenExchange);
            let example = "{issuer: ..., client-id: ..., client-secret: ...}";
            reader.settings(field, &[EXCHANGE, SERVICE, SCOPES], auth, example);
        },
    ),
];

/// The keys of an exchange.
const EXCHANGE: &[KeySpec<PartialAuth>] = keys![
    /// the authorization server that exchanges the tokens, character for character as its metadata names it. Required
    /// without `token-endpoint`
    "issuer" => value!(SchemaBuilder::url, filled, |auth| auth.issuer),
    /// its token endpoint, if it has no metadata
    "token-endpoint" => value!(SchemaBuilder::url, filled, |auth| auth.token_endpoint),
    /// `token-exchange`: RFC 8693. `on-behalf-of`: a JWT bearer grant (RFC 7523) with
    /// `requested_token_use=on_behalf_of`, as Microsoft Entra ID has it; it needs `scopes`
    "form" = "token-exchange" => choice!(FORMS, |auth| &mut auth.form),
    /// the parameter `resource` (RFC 8707). By default `url` without its query; with `on-behalf-of` none
    "resource" => value!(SchemaBuilder::text, filled, |auth| auth.resource),
    /// the parameter `audience`, if the authorization server wants one
    "audience" => value!(SchemaBuilder::text, filled, |auth| auth.audience),
    /// the service that [reads the lists](../../how-to/token-exchange.md#lists-that-all-users-share) of all users, with
    /// the keys of `client-credentials`. Without it, Vary reads them for each user
    "for-lists" => Other(service_shape, |reader, field, auth| {
        let service = auth.for_lists.insert(Box::default());
        let example = "{client-id: ..., client-secret: ...}";
        reader.settings(field, &[SERVICE, COMMON], service, example);
    }),
];

const FORMS: &[(&str, ExchangeForm)] = &[
    ("token-exchange", ExchangeForm::TokenExchange),
    ("on-behalf-of", ExchangeForm::OnBehalfOf),
];

/// The scopes of an exchange.
const SCOPES: &[KeySpec<PartialAuth>] = keys![
    /// the scopes to request; by default the authorization server decides
    "scopes" => Other(SchemaBuilder::strings, read_scopes),
];

/// The keys of a login.
const LOGIN: &[KeySpec<PartialAuth>] = keys![
    /// the client that you registered at the authorization server, or the URL of its metadata document; by default Vary
    /// registers one
    "client-id" => value!(SchemaBuilder::text, filled, |auth| auth.client_id),
    /// its secret, if it has one, such as `${file:secret}`
    "client-secret" => value!(SchemaBuilder::text, filled, |auth| auth.client_secret),
    /// the port of the redirect `http://127.0.0.1:PORT/callback`, if the client was registered with one
    "redirect-port" => count!(1..=u16::MAX, |auth| &mut auth.redirect_port),
    /// whether `vary login` prints a code to enter on another device, and opens no browser
    "device" = "off" => Switch(|auth| &mut auth.is_device),
];

/// The keys of a service.
const SERVICE: &[KeySpec<PartialAuth>] = keys![
    /// the id of the service at the authorization server; required
    "client-id" => value!(SchemaBuilder::text, filled, |auth| auth.client_id),
    /// its secret, such as `${file:secret}`; required without `private-key`
    "client-secret" => value!(SchemaBuilder::text, filled, |auth| auth.client_secret),
    /// its private key in PEM, such as `${file:key.pem}`, to sign assertions (`private_key_jwt`): P-256 in PKCS#8, or
    /// RSA of 2048 bits or more
    "private-key" => value!(SchemaBuilder::text, filled, |auth| auth.private_key),
    /// the `kid` of the private key, if the service has several
    "key-id" => value!(SchemaBuilder::text, filled, |auth| auth.key_id),
];

/// The keys that both have.
const COMMON: &[KeySpec<PartialAuth>] = keys![
    /// the scopes to request, beside those that the server asks for; by default those of its metadata
    "scopes" => Other(SchemaBuilder::strings, read_scopes),
    /// the authorization server, character for character as its metadata name it. Required with `client-secret`, which
    /// goes to no other; needed, too, if the server names several, if it is in a private network, or if the server names
    /// it with another end: with `/` or without. `for-lists` has that of the exchange
    "issuer" => value!(SchemaBuilder::url, filled, |auth| auth.issuer),
];

fn service_shape(schema: &mut SchemaBuilder) -> Value {
    let table = schema.table("`auth.client-credentials`", &[SERVICE, COMMON]);
    schema.with_required(table, &["client-id"])
}

fn read_scopes(reader: &mut Reader<'_>, field: &Located<'_>, auth: &mut PartialAuth) {
    let is_scope = |text: &String| !Scopes::from_names([text.as_str()]).is_empty();
    auth.scopes = reader.strings(field);
    if !auth.scopes.iter().all(is_scope) {
        let fix = "write each scope as an item of its own, without spaces and quotation marks";
        reader.report(field, "has an item that is not a scope", fix);
    }
}

/// A text that is not empty.
fn filled(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<String> {
    let text = reader.text(field)?;
    if text.is_empty() {
        reader.report(field, "is empty", "write a value, or leave the key out");
        return None;
    }
    Some(text)
}

/// The schema of `auth`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let mut methods = schema.table("`auth` of a server", &[METHODS]);
    methods["anyOf"] = json!([
        {"required": ["login"]},
        {"required": ["client-credentials"]},
        {"required": ["token-exchange"]},
        {"required": ["<<"]},
    ]);
    methods["not"] = json!({"anyOf": [
        {"required": ["login", "client-credentials"]},
        {"required": ["login", "token-exchange"]},
        {"required": ["client-credentials", "token-exchange"]},
    ]});
    json!({"anyOf": [{"enum": ["login"]}, schema.variable(), methods]})
}
