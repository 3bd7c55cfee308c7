//! Requests that take several rounds: what a server asks before it answers, and how the client comes back.
//!
//! Source: MCP 2026-07-28, basic/patterns/mrtr.

mod required;
mod state;

use crate::asking::Askable;
use crate::call::Call;
use crate::reply::Failure;
use crate::revision::Era;
use crate::route::Action;

pub(crate) use self::required::{Required, asks_for_input};
pub(crate) use self::state::{Seal, State, Subject};

pub(crate) const REQUEST_STATE: &str = "requestState";
pub(crate) const INPUT_REQUESTS: &str = "inputRequests";
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";

impl Action {
    /// The method, when its requests may take several rounds.
    ///
    /// > Servers MUST NOT send `InputRequiredResult` responses on any other client requests.
    /// > (MCP 2026-07-28, basic/patterns/mrtr, "Supported Requests")
    const fn in_rounds(self) -> Option<&'static str> {
        match self {
            Self::Call => Some("tools/call"),
            Self::Read => Some("resources/read"),
            Self::Prompt => Some("prompts/get"),
            _ => None,
        }
    }
}

impl Call<'_> {
    /// What the request is about, in the client's own words, which is what a state of it is bound to; nothing
    /// for legacy clients, whose requests have no second round.
    pub(crate) fn subject(&self, name: &str) -> Option<Subject> {
        let is_modern = self.client.era() == Era::Modern;
        is_modern.then(|| Subject {
            name: name.to_owned(),
            arguments: self
                .asked
                .params
                .members
                .get("arguments")
                .map(str::to_owned),
        })
    }

    /// What seals the states of a request for `subject`.
    pub(crate) fn seal_of_rounds(
        &self,
        variant: usize,
        server: usize,
        subject: Option<Subject>,
    ) -> Option<Seal> {
        let gateway = self.gateway;
        Some(Seal {
            variant: gateway.variant_id(variant).clone(),
            method: self.action.in_rounds()?,
            principal: self.client.principal(),
            subject: subject?,
            server: gateway.config.servers[server].name.as_str().into(),
            lifetime: gateway.config.limits.state_lifetime,
        })
    }

    /// Puts what a server said in the first round in the place of what the client sends back, and leaves out what
    /// a server of `era` does not know.
    ///
    /// # Errors
    ///
    /// `-32602` when the state was not made for this request, or its time is over.
    pub(crate) fn open_round(
        &mut self,
        variant: usize,
        seal: Option<&Seal>,
        era: Era,
    ) -> Result<(), Failure> {
        let Some(seal) = seal else {
            // Nothing of it is known to a legacy client; a legacy server may mean something else by it.
            if era == Era::Modern {
                self.asked.params.members.remove(REQUEST_STATE);
                self.asked.params.members.remove(INPUT_RESPONSES);
            }
            return Ok(());
        };
        let Some(sealed) = self.asked.params.members.get(REQUEST_STATE) else {
            return Ok(());
        };
        let opened = seal.open(&self.gateway.lasting, sealed);
        let opened = opened.map_err(|failure| self.about_the_variant(variant, failure))?;
        match opened {
            State::Told { server, state } if server == *seal.server && era == Era::Modern => {
                let state = mcp_vary::json::string(&state);
                self.asked.params.members.set(REQUEST_STATE, state);
                Ok(())
            }
            _ => Err(Failure::invalid_params(
                "what asked for input is not there any more; send the request without `requestState`",
            )),
        }
    }
}

/// What a result that asks for input becomes for a modern client: its state is sealed, everything else is as the
/// server wrote it.
///
/// # Errors
///
/// When the server asks what it must not ask.
pub(crate) fn passed_on(
    result: &str,
    seal: &Seal,
    askable: Askable,
    lasting: &crate::lasting::Lasting,
) -> Result<String, Failure> {
    let faulty = |why: String| Failure::internal(format!("server `{}` {why}", seal.server));
    let required = Required::read(result).map_err(faulty)?;
    required.check(askable).map_err(faulty)?;
    let Some(state) = required.state else {
        return Ok(result.to_owned());
    };
    let state = State::Told {
        server: seal.server.to_string(),
        state,
    };
    let sealed = mcp_vary::json::string(&seal.seal(lasting, &state));
    Ok(crate::splice::set(result, REQUEST_STATE, &sealed).into_owned())
}
