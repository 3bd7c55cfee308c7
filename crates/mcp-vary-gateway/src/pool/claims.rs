//! The headers of servers, from the claims of a client.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use mcp_vary_access::{Claim, Claims, Principal};
use mcp_vary_upstream::{ClaimProblem, UpstreamConfig};

use super::UpstreamPool;
use crate::session::{ClaimHeaders, ClaimValues};

impl UpstreamPool {
    /// Whether the headers of some server have claims in them.
    pub(crate) fn needs_claims(&self) -> bool {
        self.servers
            .iter()
            .any(|server| server.config.needs_claims())
    }

    /// The headers of servers from the claims of a client; `None` if no server has such headers, or without a client.
    pub(super) fn claim_headers(&self, principal: Option<&Arc<Principal>>) -> Option<ClaimHeaders> {
        let servers = self
            .servers
            .iter()
            .filter(|server| server.config.needs_claims());
        let mut servers = servers.peekable();
        servers.peek()?;
        let claims = principal?.claims();
        let values = servers.map(|server| (server.index, values(&server.config, claims)));
        Some(ClaimHeaders::new(values.collect::<BTreeMap<_, _>>()))
    }
}

/// The values of the headers of one server.
fn values(config: &UpstreamConfig, claims: &Claims) -> ClaimValues {
    let templates = config.claim_headers.iter().map(|(_, template)| template);
    let values = templates.map(|template| template.render(|name| text(claims.get(name))));
    values
        .collect::<Result<Vec<HeaderValue>, _>>()
        .map(Into::into)
}

/// The text of a claim that is one value. A list is refused even with one element: it may have two tomorrow.
fn text(claim: Option<&Claim>) -> Result<Cow<'_, str>, ClaimProblem> {
    match claim {
        None => Err(ClaimProblem::Absent),
        Some(Claim::Text(text) | Claim::Number(text)) => Ok(Cow::Borrowed(text)),
        Some(Claim::Bool(true)) => Ok(Cow::Borrowed("true")),
        Some(Claim::Bool(false)) => Ok(Cow::Borrowed("false")),
        Some(Claim::List(_) | Claim::Json { .. }) => Err(ClaimProblem::NotOneValue),
    }
}
