//! The weather server of the content negotiation proposal.
