//! The metrics of a gateway: what is counted, under which labels, and the two forms in which Prometheus reads it.
//!
//! | question | here |
//! |---|---|
//! | which metrics are there? | [`families`] |
//! | what counts a request? | [`RequestMeter`] by its [`RequestLabels`], [`ClientOperation`] |
//! | whose series are these? | [`ServerMetrics`], [`VariantMetrics`] |
//! | what does a scrape get? | [`Exposition`], in a [`Form`] |
//!
//! # Properties
//!
//! - Counting a request takes no lock and allocates nothing, except for the first request of a tool.
//! - Labels come from closed lists, from the configuration, and from what servers list. What a client sends is never a
//!   label, so it cannot create series.
//! - A tool that is neither listed nor called for [`RETENTION`] has no series any more; neither has a server or a variant.
//! - At most [`MAX_TOOLS`] tools have series of their own. The others share the label `_other`.
//! - Time is an argument, except for durations.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod closed_list;
mod directory;
mod exposition;
pub mod families;
mod form;
mod histogram;
mod metrics;
mod process;
mod request_labels;
mod request_meter;
mod server_metrics;
mod variant_metrics;

pub use closed_list::{AUTH_OUTCOMES, ClosedList, Code, ERAS, METHODS, REASONS};
pub use directory::{Listed, MAX_TOOLS, RETENTION};
pub use exposition::{Exposition, Labels, Value};
pub use families::{Family, Kind};
pub use form::Form;
pub use metrics::Metrics;
pub use request_labels::RequestLabels;
pub use request_meter::{ExchangeMeter, PendingRequest, RequestMeter, RequestOutcome};
pub use server_metrics::{ClientOperation, ServerMetrics};
pub use variant_metrics::{BYTES_PER_TOKEN, VariantMetrics};
