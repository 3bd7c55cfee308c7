//! Gateways with limits, and clients that say who they are.

use mcp_vary_access::Claims;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_gateway::settings::rates::RateLimits;
use mcp_vary_rates::{Counted, FakeRelativeClock, Limit, Per, SharedClock};

pub(super) use crate::support::people::key;
use crate::support::people::key_entry;
use crate::support::*;

/// A limit of calls.
pub(super) fn calls(name: &str, per: Per, rate: &str) -> Limit {
    Limit::new(name, per, Counted::Calls, rate.parse().unwrap()).unwrap()
}

/// Limits, and the clock that they go by.
pub(super) fn limits(limits: Vec<Limit>) -> (RateLimits, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let limits = RateLimits::new(limits, SharedClock::of(clock.clone())).unwrap();
    (limits, clock)
}

/// A gateway with these limits, and its clock.
pub(super) async fn limited(all: Vec<Limit>) -> (Harness, FakeRelativeClock) {
    limited_with(all, |config| config).await
}

/// The same with another configuration.
pub(super) async fn limited_with(
    all: Vec<Limit>,
    adapt: impl FnOnce(Config) -> Config,
) -> (Harness, FakeRelativeClock) {
    let (rates, clock) = limits(all);
    let harness = Harness::with(|config| {
        let mut config = adapt(config);
        config.rates = rates;
        config
    });
    (harness.await, clock)
}

/// `config` with keys for ann, whose group is `dev`, and bob. Clients without a key are served as well.
pub(super) fn with_keys(mut config: Config) -> Config {
    let dev = || Claims::from_json(r#"{"groups": ["dev"]}"#).unwrap();
    let entries = ["ann", "bob"].map(|name| key_entry(name, dev()));
    let table = KeyTable::new(entries.into()).unwrap();
    config.authentication = Some(Authentication::new(table, None, true).unwrap());
    config
}

/// A client of one era on one transport.
pub(super) struct Client(mcp_vary_testkit::client::Client);

/// What a client gets.
#[derive(Debug)]
pub(super) struct Answer {
    /// None on stdio.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<String>,
    pub(super) message: Value,
}

impl Client {
    /// A client without a credential.
    pub(super) async fn open(harness: &Harness, kind: ClientKind) -> Self {
        Self::open_with(harness, kind, &[]).await
    }

    /// A client with the key of somebody.
    pub(super) async fn of(harness: &Harness, kind: ClientKind, name: &str) -> Self {
        let bearer = format!("Bearer {}", key(name));
        Self::open_with(harness, kind, &[("Authorization", &bearer)]).await
    }

    /// A client that sends these headers with each request.
    pub(super) async fn open_with(
        harness: &Harness,
        kind: ClientKind,
        headers: &[(&'static str, &str)],
    ) -> Self {
        let none = json!({});
        Self(mcp_vary_testkit::client::Client::open_with(harness, kind, &none, headers).await)
    }

    /// The same client at the address of a variant.
    pub(super) fn at(self, path: &str) -> Self {
        Self(self.0.at(path))
    }

    pub(super) async fn response(&mut self, method: &str, params: Value) -> Answer {
        let response = self.0.response(method, params).await;
        Answer {
            status: (response.status > 0).then_some(response.status),
            retry_after: response.header("retry-after").map(str::to_owned),
            message: response.json(),
        }
    }

    /// The answer to a call of a tool without arguments.
    pub(super) async fn call(&mut self, tool: &str) -> Answer {
        self.response("tools/call", json!({"name": tool, "arguments": {}}))
            .await
    }
}

impl Answer {
    #[track_caller]
    pub(super) fn passes(&self) {
        assert!(self.message["result"].is_object(), "{self:?}");
        assert!(matches!(self.status, None | Some(200)), "{self:?}");
    }

    /// Checks that a limit refused, everywhere that it says so.
    #[track_caller]
    pub(super) fn is_refused_by(&self, limit: &str, retry_after: u64) {
        let message = format!("the limit `{limit}` is reached; retry after {retry_after} s");
        let data = json!({"limit": limit, "retryAfter": retry_after, "activeVariant": "standard"});
        let error = json!({"code": -32005, "message": message, "data": data});
        let expected = json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error});
        assert_eq!(self.message, expected);
        self.has_status_429(retry_after);
    }

    /// Checks status and header, which there are over HTTP.
    #[track_caller]
    pub(super) fn has_status_429(&self, retry_after: u64) {
        if let Some(status) = self.status {
            assert_eq!(status, 429, "{self:?}");
            assert_eq!(self.retry_after, Some(retry_after.to_string()), "{self:?}");
        }
    }
}
