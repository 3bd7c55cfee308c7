//! The servers behind a subject.

use serde_json::Value;

use crate::sections::Section;
use crate::upstream;

/// The upstream servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UpstreamSpec {
    pub(crate) transport: upstream::Transport,
    pub(crate) kind: upstream::Kind,
    /// The number of tools of each server.
    pub(crate) tools: usize,
    /// The number of equal servers.
    pub(crate) servers: usize,
    /// The number of configured variants; without any, the built-in ones apply.
    pub(crate) variants: usize,
    /// The number of equal variants, in rows that compare many with one.
    pub(crate) alike: usize,
    /// The rules for results, as in a configuration under `results`.
    pub(crate) rules: Option<&'static Value>,
    /// The section of the configuration that the row measures.
    pub(crate) section: Option<Section>,
    /// The number of API keys; an access rule applies to each.
    pub(crate) principals: usize,
    /// The number of connections with a session that are held open and idle.
    pub(crate) idle: usize,
    /// The number of the gateway's worker threads, each for one core.
    pub(crate) workers: usize,
}

impl UpstreamSpec {
    /// One server over HTTP with sessions, behind a gateway with the built-in variants.
    pub(crate) const ONE: Self = Self {
        transport: upstream::Transport::Http,
        kind: upstream::Kind::Sessions,
        tools: 10,
        servers: 1,
        variants: 0,
        alike: 0,
        rules: None,
        section: None,
        principals: 0,
        idle: 0,
        workers: 1,
    };
}
