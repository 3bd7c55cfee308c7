//! Requests of several rounds: what a server asks of the client before it answers.

mod told;
