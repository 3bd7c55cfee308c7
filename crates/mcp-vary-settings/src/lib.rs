//! The settings with which a gateway starts.

pub mod access;
pub mod audit;
pub mod authentication;
pub mod config;
pub mod experiments;
pub mod limits;
pub mod listener;
pub mod metrics;
pub mod model_ranking;
pub mod rates;
pub mod sealing_keys;
pub mod store;
