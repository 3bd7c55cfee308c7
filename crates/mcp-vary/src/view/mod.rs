//! What one variant's view makes of a server's items.

pub mod derive;
