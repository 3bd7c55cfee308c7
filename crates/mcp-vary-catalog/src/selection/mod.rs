//! Which variant a client gets that names none.
/// Clients that are known to need something.
pub mod known_clients;
/// Rankings of the variants by hints.
pub mod rankings;
/// The operator's rules for clients.
pub mod rules;
pub mod variant_selection;
