//! The program as it is used: what is typed, what comes out, how it ends.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
#[cfg(target_os = "linux")]
mod audit;
mod bad_input;
mod call;
mod check;
mod circle;
mod completions;
mod config;
mod connect;
mod connect_places;
mod connect_refusals;
mod connect_write;
mod demo;
mod experiment;
#[cfg(unix)]
mod gateways;
mod help;
mod inspect;
mod key;
#[cfg(target_os = "linux")]
mod killed;
#[cfg(unix)]
mod listen;
#[cfg(unix)]
mod load;
#[cfg(unix)]
mod log;
mod login;
mod messages;
mod operate;
mod page;
mod program;
mod reload;
#[cfg(unix)]
mod replicas;
#[cfg(unix)]
mod rolling;
mod serve;
#[cfg(unix)]
mod service;
#[cfg(unix)]
mod service_manager;
#[cfg(target_os = "linux")]
mod sessions;
mod starting;
mod status;
mod suggest;
mod target;
mod text;
mod tls;
mod tools;
#[cfg(unix)]
mod unread_lists;
mod unusable_entries;
#[cfg(unix)]
mod up;
mod upstream_variants;
