//! A folder or file for each command.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod down;
pub(crate) mod experiment;
pub(crate) mod inspect;
pub(crate) mod invite;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod open;
pub(crate) mod operate;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod suggest;
pub(crate) mod tools;
pub(crate) mod up;
