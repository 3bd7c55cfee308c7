//! Server variants: which one a client gets, what it lists, and what is out of its reach.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod variants {
    mod apps;
    mod client_rules;
    mod configured;
    mod confined_uris;
    mod confinement;
    mod directory;
    mod enumeration;
    mod experiments;
    mod extensions;
    mod model_ranking;
    mod names;
    mod offers;
    mod pagination;
    mod passthrough;
    mod rules_by_variant;
    mod selection;
    mod server_names;
    mod several_servers;
    mod skills;
    mod unadvertised;
    mod undeclared_extension;
    mod upstream_variants;
    mod uris;
    mod views;
    mod visibility;
}
