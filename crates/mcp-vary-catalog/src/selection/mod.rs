//! Which variant a client gets that names none.
pub mod known_clients;
pub mod rankings;
pub mod rules;
pub mod variant_selection;
