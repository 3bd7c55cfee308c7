//! What a request goes through: dispatch by method, the exchange with the server, the response.
pub(crate) mod clients;
pub(crate) mod exchange;
pub(crate) mod member_check;
pub(crate) mod methods;
pub(crate) mod router;
pub(crate) mod runtime;
pub(crate) mod snapshot;
pub(crate) mod variant_selection;
