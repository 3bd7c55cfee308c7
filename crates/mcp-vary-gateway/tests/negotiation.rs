//! Content negotiation, and the rules of operators for results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod negotiation {
    mod applied;
    mod caching;
    mod declared;
    mod laws;
    mod limits;
    mod logging;
    mod read_result;
    mod required;
    mod resource_results;
    mod rows;
    mod seed_cases;
    mod shortened;
    mod summaries;
    mod tool_results;
}
