//! Which of its round trips a request is, and what the server gets for it.

use mcp_vary::json::{self, Members, edit};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use super::required::{INPUT_RESPONSES, REQUEST_STATE};

/// Which of its round trips a request is.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RoundTrip {
    /// Its method has none. Members with the same names may mean something else.
    Unsupported,
    /// Its client knows none.
    None,
    First,
    /// A retry with the state of a modern server.
    Sealed(String),
    /// A retry of the suspended call with this number.
    Suspended(u64),
    /// A retry after the client was asked to visit a URL.
    UrlVisited,
}

/// The client's responses to input requests, from their JSON text.
///
/// # Errors
///
/// `-32602` when the text is not an object of objects.
pub(crate) fn read_responses(written: Option<&str>) -> Result<Members<'_>, RpcError> {
    let text = written.unwrap_or("{}");
    let responses = Members::parse(text)
        .map_err(|why| RpcError::invalid_params(format!("`{INPUT_RESPONSES}`: {why}")))?;
    let mut values = responses.iter();
    if let Some((key, _)) = values.find(|(_, value)| !value.starts_with('{')) {
        let cut: String = key.chars().take(60).collect();
        let why = format!("`{INPUT_RESPONSES}.{cut}` must be an object");
        return Err(RpcError::invalid_params(why));
    }
    drop(values);
    Ok(responses)
}

pub(super) fn missing_response() -> RpcError {
    RpcError::invalid_params(
        "the server that asked for input is not available any more; send the request without `requestState`",
    )
}

impl RoundTrip {
    /// Sets in `params` the members that a server of `era` gets for this round trip.
    ///
    /// # Errors
    ///
    /// When the server speaks another era now, or the user declined to visit the server's URL.
    pub(crate) fn resume_request(self, params: &mut Params<'_>, era: Era) -> Result<(), RpcError> {
        match (self, era) {
            (Self::First, Era::Modern) | (Self::Unsupported, _) => Ok(()),
            (Self::Sealed(state), Era::Modern) => {
                params.members.set(REQUEST_STATE, json::string(&state));
                Ok(())
            }
            // A legacy server may mean something else by it.
            (Self::None, Era::Legacy) => Ok(()),
            // A legacy client knows none of this.
            (Self::None, Era::Modern) | (Self::First, Era::Legacy) => {
                params.members.remove(REQUEST_STATE);
                params.members.remove(INPUT_RESPONSES);
                Ok(())
            }
            (Self::UrlVisited, Era::Legacy) => {
                if !all_accepted(&read_responses(params.members.get(INPUT_RESPONSES))?) {
                    return Err(RpcError::internal(
                        "the server asked the user to visit a URL first, and the user declined",
                    ));
                }
                params.members.remove(REQUEST_STATE);
                params.members.remove(INPUT_RESPONSES);
                Ok(())
            }
            _ => Err(missing_response()),
        }
    }
}

fn all_accepted(responses: &Members<'_>) -> bool {
    let accepted = |response: &str| edit::get(response, "action") == Some(r#""accept""#);
    !responses.is_empty() && responses.iter().all(|(_, response)| accepted(response))
}
