//! Selects the variant for clients that do not name one.
/// Known clients that need special treatment.
pub mod client_rule;
pub mod known_clients;
/// Rankings of the variants by hints.
pub mod rankings;
/// The operator's rules for clients.
pub mod rules;
pub mod variant_selection;
