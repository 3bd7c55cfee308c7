//! The path of a request: dispatch by method, the exchange with its server, the response.
pub(crate) mod call_counters;
pub(crate) mod capabilities;
pub(crate) mod clients;
pub(crate) mod exchange;
pub(crate) mod experiments;
pub(crate) mod member_check;
pub(crate) mod memory;
mod method_action;
pub(crate) mod methods;
pub(crate) mod model_ranking;
pub(crate) mod negotiated_extensions;
pub(crate) mod request;
pub(crate) mod router;
pub(crate) mod runtime;
pub(crate) mod server_ranking;
pub(crate) mod snapshot;
pub(crate) mod startup;
pub(crate) mod variant_selection;
