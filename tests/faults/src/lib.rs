//! What clients of Vary see when the server behind it fails, and what they leave in it when they go.
//!
//! Each scenario starts the real `vary serve` in front of a scripted server, a real process
//! that dies, stops, talks nonsense or comes back as another on command, and asks as clients of both eras.
//! What they were told and how long it took is the [`Report`].

mod amplify;
mod case;
mod client;
mod gateway;
mod process;
mod report;
mod run;
mod scenarios;
pub mod script;
mod server;
mod soak;

pub use amplify::{Amplified, AmplifyPrograms, amplify};
pub use report::{Report, Row, Seen};
pub use run::{Programs, run, titles};
pub use soak::{Crowd, Soak, SoakPrograms, soak};
