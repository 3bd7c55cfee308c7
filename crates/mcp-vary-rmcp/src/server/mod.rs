//! Servers that negotiate content and offer variants.

mod answer;
mod builder;
mod face;
mod features;
mod handler;
mod inner;
mod list;
mod offers;
mod session;
mod tag;
mod vary;
mod view;
mod wire;

pub use self::answer::{Answer, AnswerError};
pub use self::builder::{BuildError, BuildMistake, Builder};
pub use self::face::Face;
pub use self::features::{Features, declared_by, features};
pub use self::vary::{ActiveVariant, Vary};
pub use self::view::{PromptView, ToolView, View};
