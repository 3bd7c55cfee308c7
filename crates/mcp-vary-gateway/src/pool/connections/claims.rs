//! The headers of servers, from the claims of a client.

use std::borrow::Cow;

use http::HeaderValue;
use mcp_vary_access::{Claim, Claims};
use mcp_vary_upstream::{ClaimProblem, UpstreamConfig};

use mcp_vary_session::ClaimValues;

/// The values of the headers of one server.
pub(super) fn header_values(config: &UpstreamConfig, claims: &Claims) -> ClaimValues {
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
