//! The fixture in the process of the gateway, on pipes: access rules, what servers and clients send each other, and what
//! becomes of a pipe that ends.

mod messages;
mod pipes;
mod policy;
mod support;
