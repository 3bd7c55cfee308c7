//! Clients that declare how they want their content, and choose a variant.
