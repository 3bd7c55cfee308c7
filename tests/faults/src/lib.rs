//! What clients of Vary receive when a server fails, and what remains of them in Vary when they disconnect.
//!
//! Each scenario starts the real `vary serve` in front of a scripted server, a real process
//! that dies, stops, talks nonsense or comes back as another on command, and asks as clients of both eras.
//! The [`Report`] has the answers and the times.

mod amplify;
mod case;
mod client;
mod gateway;
mod process;
mod report;
mod restarts;
mod run;
mod scenarios;
pub mod script;
mod server;
mod soak;

pub use amplify::{Amplified, AmplifyPrograms, amplify};
pub use report::{Report, Row, Seen};
pub use restarts::{Restarts, restarts};
pub use run::{Programs, run, titles};
pub use soak::{Soak, SoakOptions, SoakPrograms, soak};
