//! The settings with which a gateway starts.

pub mod access;
pub mod authentication;
pub mod config;
pub mod limits;
pub mod listener;
pub mod sealing_keys;
