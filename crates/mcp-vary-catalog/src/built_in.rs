//! The built-in variants, and the weights that distinguish them.

use mcp_vary::rank::Weights;
use mcp_vary::variant::ServerVariant;
use mcp_vary_view::DIRECTORY;

use super::variant_config::{Base, VariantConfig};

/// The built-in variants.
pub fn variants() -> Vec<VariantConfig> {
    let built = BUILT_IN
        .into_iter()
        .filter_map(|(id, description, base, hints)| {
            let mut variant = ServerVariant::new(id.parse().ok()?, description);
            for (key, value) in hints {
                variant = variant.with_hint(*key, *value);
            }
            let mut config = VariantConfig::new(variant).with_base(base);
            if id == "directory" {
                config.style = DIRECTORY;
            }
            Some(config)
        });
    built.collect()
}

type BuiltIn = (
    &'static str,
    &'static str,
    Base,
    &'static [(&'static str, &'static str)],
);

const BUILT_IN: [BuiltIn; 4] = [
    (
        "standard",
        "Everything as the server describes it: all tools, full descriptions and schemas.",
        Base::Standard,
        &[("contextSize", "standard")],
    ),
    (
        "compact",
        "All tools in fewer words: the first sentence of each description, and from the rest only \
         what callers need. Accepts the same arguments. For small context windows and execution; for planning with \
         unfamiliar tools prefer `standard`.",
        Base::Compact,
        &[("contextSize", "compact")],
    ),
    // Without hints: not every client accepts open schemas, so no ranking prefers it.
    (
        "directory",
        "All tools with the first sentence of each description, and the names and types of \
         arguments. `describe_tools` has the rest. Calls that do not fit are answered with the \
         schema. For many tools, of which a task needs few.",
        Base::Compact,
        &[],
    ),
    (
        "read-only",
        "Only the tools that declare that they change nothing. For analysis and review. \
         It trusts what each server declares, so it does not protect against a server.",
        Base::ReadOnly,
        &[("contextSize", "standard"), ("accessLevel", "readonly")],
    ),
];

/// The SEP's weights, plus one for the hint that distinguishes `read-only`.
pub fn weights() -> Weights {
    Weights::default().with("accessLevel", 80, 10)
}
