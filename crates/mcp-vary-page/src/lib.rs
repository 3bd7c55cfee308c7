//! The page on which an operator looks at what each client of a gateway gets: its files, which are compiled in, and its data as
//! JSON.
//!
//! | question | here |
//! |---|---|
//! | what answers a browser? | a [`GatewayPage`], which the program gives to its `Operator` |
//! | what costs how many tokens, and where? | `GET /api/catalog`, in the figures of `vary inspect --json` |
//! | how do the arms of experiments compare? | `GET /api/experiments`, in the figures of `vary experiment` |
//! | what would a change of a variant list, and who keeps another one? | `POST /api/draft`, by the [`VariantSource`] of the program |
//! | what would suffice for a client? | `GET /api/suggest`, with the [`Usage`] of `vary suggest` |
//! | how is it written into the file, and undone? | `POST /api/save` and `POST /api/undo`, unless writes are off |
//! | which save can be undone? | `lastSave` of `GET /api/variant` |
//! | what does each client get of the same call? | `POST /api/call`, unless calls are off |
//!
//! # Properties
//!
//! - No request changes the gateway, but its variants if the operator's configuration allows that. Servers are called only if it
//!   allows that, too. One that is down can be tried at once.
//! - Without a token it serves its files alone, which are the same for every gateway.
//! - Nothing comes from elsewhere: its policy refuses other origins, inline scripts and inline styles.

mod assets;
mod call;
mod callers;
mod catalog;
mod draft;
mod events;
mod experiments;
mod explain;
mod history;
mod page;
mod query;
mod recorded;
mod response;
mod review;
mod suggest;

pub use draft::{
    DraftedFile, DraftedVariant, SetupKind, SetupProblem, VariantSave, VariantSource, WrittenRule,
    WrittenVariant,
};
pub use page::GatewayPage;
pub use suggest::{ToolKey, ToolUse, Usage, UsedCall};
