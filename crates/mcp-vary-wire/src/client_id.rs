//! Which client something belongs to.

/// Tells the clients of a gateway apart, so that what belongs to one reaches no other. That of a session
/// is sealed in its id.
pub type ClientId = u64;
