//! What upstream servers offer, and the views of it.

pub mod derive;
