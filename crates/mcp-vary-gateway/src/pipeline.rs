//! The path of a request: dispatch by method, the exchange with its server, the response.
pub(crate) mod capabilities;
pub(crate) mod clients;
pub(crate) mod exchange;
pub(crate) mod experiments;
pub(crate) mod extension_owners;
mod forwarded_extensions;
pub(crate) mod gateway_tools;
pub(crate) mod inbound;
pub(crate) mod member_check;
pub(crate) mod memory;
pub(crate) mod methods;
pub(crate) mod model_ranking;
pub(crate) mod negotiated_extensions;
pub(crate) mod request;
mod request_context;
pub(crate) mod router;
pub(crate) mod runtime;
pub(crate) mod session_offers;
pub(crate) mod snapshot;
pub(crate) mod startup;
mod steps;
mod takeover;
pub(crate) mod variant_selection;

pub(crate) use self::steps::stored_results::TOOL_NAME as READ_RESULT;
