//! The parsers behind private modules, for the fuzz targets and for property tests. Not part of the API.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_upstream::{Target, UpstreamConfig};
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::headers;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::revision::{Era, Revision};
use mcp_vary_wire::sse::EventId;

use crate::pipeline::{member_check, router};
use crate::subscriptions::SubscriptionHub;
use mcp_vary_session::{BASE_CLASS, Negotiated, Sessions};
use mcp_vary_settings::config::Config;

/// What a `Last-Event-ID` says, written again; `None` when the gateway never sends such an id.
#[must_use]
pub fn event_id(text: &str) -> Option<String> {
    EventId::parse(text).map(|id| id.to_text())
}

/// The sessions of one gateway, whose keys are always the same.
#[derive(Debug)]
pub struct SessionIds(Sessions);

impl Default for SessionIds {
    fn default() -> Self {
        let outside = Environment::new(|| 1_000, |bytes| bytes.fill(7));
        let server = UpstreamConfig::new("server", Target::command("server", []));
        Self(Sessions::new(
            &Config::new(server, outside),
            vec![[1; 32], [2; 32]],
            Arc::<SubscriptionHub>::default(),
            0x0707_0707,
        ))
    }
}

impl SessionIds {
    /// The id of a new session whose client calls itself `name`.
    #[must_use]
    pub fn seal(&self, name: &str) -> String {
        let fixed = Negotiated {
            revision: Revision::LATEST_LEGACY,
            features: None,
            order: vec!["standard".to_owned()],
            declares_variants: false,
            class: BASE_CLASS.into(),
            client: ClientName {
                name: name.to_owned(),
                version: String::new(),
            },
            principal: None,
            reason: VariantReason::default(),
        };
        self.0.open(fixed, Duration::from_secs(3_600)).0
    }

    /// Whether `id` is the id of a session.
    #[must_use]
    pub fn opens(&self, id: &str) -> bool {
        self.0.find(id).is_some()
    }
}

/// The value of `key` in `object`.
#[must_use]
pub fn splice_get<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    mcp_vary::json::edit::get(object, key)
}

/// `object` with another value of `key`.
#[must_use]
pub fn splice_set(object: &str, key: &str, value: &str) -> String {
    mcp_vary::json::edit::set(object, key, value).into_owned()
}

/// `object` without `key`.
#[must_use]
pub fn splice_cut(object: &str, key: &str) -> String {
    mcp_vary::json::edit::remove(object, key).into_owned()
}

/// `object` with another name for the member `from`.
#[must_use]
pub fn splice_rename(object: &str, from: &str, to: &str) -> String {
    mcp_vary::json::edit::rename(object, from, to).into_owned()
}

/// Whether the headers of a call say what its arguments say, by the tool's input schema; an error where the schema
/// breaks the rules for headers.
///
/// # Errors
///
/// What is wrong with the schema.
pub fn headers_agree(
    input_schema: &str,
    headers: &[(HeaderName, HeaderValue)],
    arguments: &str,
) -> Result<bool, String> {
    let expected = headers::param_headers(input_schema)?;
    let headers: HeaderMap = headers.iter().cloned().collect();
    Ok(headers::check_params(&expected, &headers, arguments).is_ok())
}

/// What the gateway read of a request that it does not refuse, and what it sends on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The members of `params` that it decides by, as it read them.
    pub read: Vec<(String, String)>,
    /// The params that a server gets, of either era.
    pub sent: [String; 2],
}

/// The params of `method` as a server gets them; `None` when the request is refused.
#[must_use]
pub fn check_params(method: &str, params: &str) -> Option<Checked> {
    let action = [Era::Legacy, Era::Modern]
        .into_iter()
        .find_map(|era| router::method_action(method, era).ok())?;
    let params = Params::read(Some(params)).ok()?;
    member_check::check(action, &params).ok()?;
    let members = params.members.iter();
    let read = members.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let sent = [Revision::V2025_11_25, Revision::V2026_07_28].map(|revision| {
        let upward = UpstreamContext {
            revision,
            capabilities: "{}",
            progress_token: None,
            log_level: None,
        };
        era::to_upstream_params(&mut params.clone(), &upward)
    });
    Some(Checked {
        read: read.collect(),
        sent,
    })
}
