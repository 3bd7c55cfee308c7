//! Tokens in exchange for those of clients: each user calls as itself, and no server sees the token that a client sent.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_login::address::Address;
use mcp_vary_login::assertion::SigningKey;
use mcp_vary_login::exchange::{ExchangeServer, ExchangeSettings, TokenExchange};
use mcp_vary_login::secret::Secret;
use mcp_vary_login::service::{ServiceAuthentication, ServiceSettings};
use mcp_vary_upstream::UpstreamConfig;

use super::every_method::{methods, next};
use super::people::{Session, ask_both, ask_modern, key};
use crate::support::people::{key_entry, token_config, trusted};
use crate::support::*;

/// Who issues the tokens of clients, and who exchanges them.
pub(super) struct Provider {
    issuer: AuthorizationServer,
    endpoint: ScriptedServer,
}

impl Provider {
    /// Exchanges a token of NAME for `exchanged-NAME`, and none of `mallory`.
    pub(super) async fn start() -> Self {
        let endpoint = ScriptedServer::start(|seen| {
            let who = subject(&seen.text);
            Some(if who == "mallory" {
                let error = json!({"error": "invalid_grant", "error_description": "TOPSECRET"});
                Reply::json(400, &error)
            } else {
                let token = json!({
                    "access_token": format!("exchanged-{who}"),
                    "token_type": "Bearer",
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                    "expires_in": 300,
                });
                Reply::json(200, &token)
            })
        })
        .await;
        let issuer = AuthorizationServer::start().await;
        Self { issuer, endpoint }
    }

    /// A token of `who`, for the gateway.
    pub(super) fn token(&self, who: &str) -> String {
        let claims = json!({"sub": who, "aud": "here", "exp": 1_000_600, "jti": next()});
        self.issuer.sign(claims)
    }

    /// A token of `who` on a device, which is exchanged for `exchanged-WHO-DEVICE` and ends at this second.
    pub(super) fn token_on(&self, who: &str, device: &str, expires_at: u64) -> String {
        let sub = json!({"sub": who, "aud": "here", "exp": expires_at, "device": device});
        self.issuer.sign(sub)
    }

    /// `server`, which gets exchanged tokens.
    pub(super) fn exchanged(&self, server: UpstreamConfig) -> UpstreamConfig {
        self.exchanged_as(server, |_| {})
    }

    /// The same, whose lists a service reads for all users.
    pub(super) fn exchanged_with_lists(&self, server: UpstreamConfig) -> UpstreamConfig {
        self.exchanged_as(server, |settings| {
            settings.for_lists = Some(service(settings.server.clone()));
        })
    }

    fn exchanged_as(
        &self,
        server: UpstreamConfig,
        edit: impl FnOnce(&mut ExchangeSettings),
    ) -> UpstreamConfig {
        let Target::Http { url, .. } = &server.target else {
            panic!("a program has no headers");
        };
        let address = |url: &http::Uri| Address::parse(&url.to_string()).unwrap();
        let secret = ServiceAuthentication::Secret(Secret::new("TOPSECRET-pw"));
        let endpoint = ExchangeServer::TokenEndpoint(address(&self.endpoint.url));
        let mut settings = ExchangeSettings::new(address(url), endpoint, "vary".to_owned(), secret);
        edit(&mut settings);
        let exchange = TokenExchange::new(settings, "exchange".to_owned(), environment());
        server.with_client_credentials(Arc::new(exchange))
    }

    /// `config`, whose first server gets exchanged tokens.
    pub(super) fn in_front_of(&self, mut config: Config) -> Config {
        let server = self.exchanged(config.servers.remove(0));
        config.servers.insert(0, server);
        self.with_people(config)
    }

    /// `config`, whose clients have tokens of the issuer.
    pub(super) fn with_people(&self, mut config: Config) -> Config {
        let keys = KeyTable::new(vec![key_entry("robot", mcp_vary_access::Claims::default())]);
        let tokens = token_config(trusted(&self.issuer, &["here"], &[]));
        let authentication = Authentication::new(keys.unwrap(), Some(tokens), true);
        config.authentication = Some(authentication.unwrap());
        config
    }

    pub(super) fn exchanges(&self) -> usize {
        self.endpoint.received().len()
    }
}

/// The clock of the tokens, and randomness.
pub(super) fn environment() -> Environment {
    Environment::new(|| 1_000_000, |bytes| getrandom::fill(bytes).unwrap())
}

/// The service `lists` at the authorization server that `server` names.
pub(super) fn service(server: Address) -> ServiceSettings {
    let key = SigningKey::from_pem(KEY, None).unwrap();
    let authentication = ServiceAuthentication::PrivateKey(key);
    ServiceSettings::new(server, "lists".to_owned(), authentication)
}

/// A key that only tests use.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfhT55FM7k46opcBQ\n\
    5CSGm9Cuz28N6I4v6DstWJgmyxOhRANCAATYT1H/pRLAdRIH6repaaMuqVAwwE0+\n\
    d6srGOUKm0mz/QdzchHLf2iqTW631aeANDeh4VbhD5x7dvge+9NKJkX2\n\
    -----END PRIVATE KEY-----\n";

/// The `sub` of the token in a request for an exchange, and the device if it has one.
fn subject(form: &str) -> String {
    let token = mcp_vary_testkit::login_server::parameter(form, "subject_token");
    let claims = token.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let who = claims["sub"].as_str().unwrap();
    match claims["device"].as_str() {
        Some(device) => format!("{who}-{device}"),
        None => who.to_owned(),
    }
}

/// The user as whom a request arrived at a server that gets exchanged tokens.
pub(super) fn user(seen: &ReceivedRequest) -> &str {
    let authorization = seen.header("authorization").unwrap_or_default();
    let user = authorization.strip_prefix("Bearer exchanged-");
    user.unwrap_or_else(|| panic!("{} with {authorization:?}", seen.method()))
}

/// A server of `era` that refuses everybody but those with exchanged tokens, and `eve` too.
async fn server(era: Era) -> ScriptedServer {
    let script = super::every_method::server(era);
    ScriptedServer::start(move |seen| {
        let authorization = seen.header("authorization").unwrap_or_default();
        let is_known = authorization.starts_with("Bearer exchanged-");
        if is_known && !authorization.ends_with("-eve") {
            return script.reply_to(seen);
        }
        let refusal = seen.refuse(401, -32001, "TOPSECRET: the tenant of eve");
        Some(refusal.with_header("www-authenticate", "Bearer realm=\"TOPSECRET\""))
    })
    .await
}

#[tokio::test]
async fn every_method_of_every_user_has_the_token_of_that_user() {
    for era in [Era::Legacy, Era::Modern] {
        let provider = Provider::start().await;
        let harness =
            Harness::behind_one(server(era).await, |config| provider.in_front_of(config)).await;
        assert!(harness.peer.received().is_empty(), "nobody is there yet");
        let mut people = BTreeMap::new();
        for who in ["ann", "bob"] {
            let token = provider.token(who);
            for capabilities in [json!({}), json!({"elicitation": {}, "sampling": {}})] {
                let mut session = Session::open(&harness, &token, &capabilities).await;
                for (method, params) in methods() {
                    let client = (token.as_str(), &capabilities);
                    let modern = ask_modern(&harness, client, method, params.clone()).await;
                    let legacy = session.ask(&token, method, params.clone()).await;
                    let fails = params["uri"] == "place:zug";
                    for answer in [modern.json(), legacy.json()] {
                        let is_answered = answer["result"].is_object();
                        assert!(is_answered || fails, "{era:?} {method}: {answer}");
                    }
                }
                let arguments = json!({"uri": "place:bern"});
                session.ask(&token, "resources/subscribe", arguments).await;
                let arguments = json!({"level": "info"});
                session.ask(&token, "logging/setLevel", arguments).await;
            }
            people.insert(who, token);
        }
        let received = harness.peer.received();
        let mut sessions = BTreeMap::<_, BTreeSet<_>>::new();
        for seen in &received {
            let who = user(seen);
            assert!(people.contains_key(who), "{who}");
            let head = format!("{:?}", seen.headers);
            let inbound = people.values().find(|token| head.contains(*token));
            assert!(inbound.is_none(), "a token of a client at the server");
            if let Some(session) = seen.header("mcp-session-id") {
                sessions.entry(session).or_default().insert(who);
            }
        }
        assert!(sessions.values().all(|people| people.len() == 1));
        for who in people.keys() {
            let of_user = received.iter().filter(|seen| user(seen) == *who);
            let seen: BTreeSet<_> = of_user.map(ReceivedRequest::method).collect();
            let all = methods();
            let missing = all.iter().find(|(method, _)| !seen.contains(method));
            assert_eq!(missing, None, "{who}");
        }
        assert_eq!(provider.exchanges(), people.len(), "{era:?}");
    }
}

/// LI-7: BerriAI/litellm#37497 shows empty lists to users whom a server refuses.
#[tokio::test]
async fn a_user_whom_the_server_refuses_gets_an_error_for_every_method_and_nothing_else() {
    let (log, _listening) = CapturedLog::listen("", Level::TRACE);
    let provider = Provider::start().await;
    for era in [Era::Legacy, Era::Modern] {
        let harness =
            Harness::behind_one(server(era).await, |config| provider.in_front_of(config)).await;
        let (ann, eve) = (provider.token("ann"), provider.token("eve"));
        for answer in ask_both(&harness, &ann, "tools/list", json!({})).await {
            assert!(!names(&answer).is_empty(), "{answer}");
        }
        let unexchanged = provider.token("mallory");
        for (token, why) in [
            (
                &eve,
                [
                    "it does not accept its user",
                    "answered HTTP 401 Unauthorized",
                ],
            ),
            (
                &unexchanged,
                ["no token was issued in exchange for the access token of its user"; 2],
            ),
        ] {
            // Of a server that was never connected to, no extension is known.
            let methods = methods().into_iter();
            for (method, params) in methods.filter(|(method, _)| *method != "vendor/thing") {
                for answer in ask_both(&harness, token, method, params.clone()).await {
                    assert_eq!(
                        answer["error"]["code"], -32603,
                        "{era:?} {method}: {answer}"
                    );
                    let text = answer.to_string();
                    assert!(
                        why.iter().any(|why| text.contains(why)),
                        "{era:?} {method}: {text}"
                    );
                    assert!(!text.contains("TOPSECRET"), "{method}: {text}");
                }
            }
        }
        for token in [&ann, &eve, &unexchanged] {
            let leak = harness.peer.received().into_iter().find(|seen| {
                let head = format!("{:?}", seen.headers);
                head.contains(token.as_str())
            });
            assert!(leak.is_none());
        }
        let said = log.take();
        for secret in [&ann, &eve, &unexchanged, "exchanged-ann", "TOPSECRET-pw"] {
            let leak = said.iter().find(|line| line.contains(secret));
            assert_eq!(leak, None);
        }
    }
}

/// LI-8: the token is not exchanged again, since the configuration decides about scopes.
#[tokio::test]
async fn a_user_whose_token_has_too_few_scopes_gets_an_error_that_names_them() {
    let provider = Provider::start().await;
    let script = super::every_method::server(Era::Modern).reply("tools/call", |_| {
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"TOPSECRET\"";
        let refusal = Reply::json(403, &json!({"TOPSECRET": "of the server"}));
        refusal.with_header("www-authenticate", challenge)
    });
    let harness = Harness::with_server(script, |mut config| {
        let server = provider.exchanged_as(config.servers.remove(0), |settings| {
            settings.scope = mcp_vary_login::scope::Scopes::parse("read list");
        });
        config.servers.insert(0, server);
        provider.with_people(config)
    })
    .await;
    for answer in ask_both(&harness, &provider.token("ann"), "tools/call", tool("odd")).await {
        let message = "server `peer` answered HTTP 403 Forbidden: its user's token has too few scopes; the exchange \
                       requests `read list`";
        assert_eq!(answer["error"]["message"], message);
    }
    assert_eq!(provider.exchanges(), 1);
}

#[tokio::test]
async fn a_client_without_an_access_token_gets_an_error_that_says_so() {
    const NO_TOKEN: &str = "server `peer` cannot be used by this client: the server gets a token in exchange for the access \
                            token of its user, and this client was not recognised by an access token";
    let provider = Provider::start().await;
    let harness = Harness::behind_one(server(Era::Legacy).await, |config| {
        provider.in_front_of(config)
    })
    .await;
    for token in [key("robot"), String::new()] {
        for (method, params) in methods() {
            if method == "completion/complete" || method == "vendor/thing" {
                continue;
            }
            for answer in ask_both(&harness, &token, method, params.clone()).await {
                assert_eq!(answer["error"]["code"], -32603, "{method}: {answer}");
                assert_eq!(answer["error"]["message"], NO_TOKEN, "{method}");
            }
        }
    }
    assert!(harness.peer.received().is_empty());
    assert_eq!(provider.exchanges(), 0);
}

/// A refreshed token is exchanged, and the session at the server goes on with it.
#[tokio::test]
async fn a_request_has_what_its_own_token_was_exchanged_for() {
    let provider = Provider::start().await;
    let harness = Harness::behind_one(server(Era::Legacy).await, |config| {
        provider.in_front_of(config)
    })
    .await;
    let (one, two) = (provider.token("ann"), provider.token("ann"));
    let mut session = Session::open(&harness, &one, &json!({})).await;
    for token in [&one, &two, &one] {
        let answer = session.ask(token, "tools/call", tool("odd")).await.json();
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(provider.exchanges(), 2);
    let calls = harness.peer.of("tools/call");
    let sessions: BTreeSet<_> = calls.iter().map(|it| it.header("mcp-session-id")).collect();
    assert_eq!((calls.len(), sessions.len()), (3, 1));
}

#[tokio::test]
async fn a_hundred_users_at_once_make_a_hundred_exchanges_and_then_none() {
    let provider = Provider::start().await;
    let harness = Harness::behind_one(server(Era::Modern).await, |config| {
        provider.in_front_of(config)
    })
    .await;
    let users = (0..100).map(|number| provider.token(&format!("user-{number}")));
    let users: Vec<_> = users.collect();
    for round in 0..3 {
        let asking = users.iter().map(|token| async {
            let client = (token.as_str(), &json!({}));
            ask_modern(&harness, client, "tools/call", tool("odd")).await
        });
        for answer in join_all(asking).await {
            let answer = answer.json();
            assert!(answer["result"].is_object(), "{round}: {answer}");
        }
        assert_eq!(provider.exchanges(), users.len(), "{round}");
    }
    let calls = harness.peer.of("tools/call");
    let mut by_user = BTreeMap::<_, usize>::new();
    for call in &calls {
        *by_user.entry(user(call).to_owned()).or_default() += 1;
    }
    assert!(by_user.len() == 100 && by_user.values().all(|calls| *calls == 3));
}
