//! Who sends a request, and what the head of the request says about its session and the variant.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary_access::Principal;
use mcp_vary_audit::Transport;
use mcp_vary_catalog::selection::variant_selection::VariantRequest;

use crate::legacy_session::Session;
use mcp_vary_observation::{Observation, Origin};

/// Who sends a request, and what its head says about its session and the variant.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Who that is; `None` where clients are not authenticated.
    pub principal: Option<Arc<Principal>>,
    /// The session that a header names, or that a batch is in. It may end before the request is read.
    pub session: Option<Arc<Session>>,
    /// The variant that the address or a header selects.
    pub requested: VariantRequest,
    /// The client's address, if limits need it; none on stdio.
    pub address: Option<IpAddr>,
    /// For the audit log; empty without one.
    pub origin: Origin,
    /// What is observed of the request.
    pub observation: Observation,
}

impl Caller {
    /// The client on standard input, whose principal the configuration names.
    pub fn of_stdio(principal: Option<&Arc<Principal>>) -> Self {
        let origin = Origin {
            transport: Transport::Stdio,
            ..Origin::default()
        };
        Self {
            principal: principal.cloned(),
            origin,
            ..Self::default()
        }
    }
}

/// The principal in sealed texts: its id, or nothing where clients are not authenticated.
pub fn sealed_principal(principal: Option<&Arc<Principal>>) -> &str {
    principal.map_or("", |principal| principal.id_text())
}
