//! Lists of a server: all their pages, and what becomes of them when they change.
