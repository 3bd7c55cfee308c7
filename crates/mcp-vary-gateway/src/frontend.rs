//! The two frontends: HTTP and stdio.

mod admin;
mod authentication;
mod batch;
mod browser_page;
mod cors;
mod endpoint;
mod forwarding;
mod http;
mod peer;
mod post;
mod probes;
mod replica_calls;
mod request_body;
mod responses;
#[cfg(test)]
mod session_delivery_tests;
mod stdio;
mod stopping;
mod validation;

use std::time::Duration;

use crate::gateway::{Endpoint, Gateway};

/// The time in which a client can read the error for its request at the end.
const FINAL_ERRORS_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers clients that still wait after the drain time with an error, and waits until they are `finished`.
///
/// If another listener still has clients, those need the servers, and no client is answered.
async fn cancel_late_calls(gateway: &Gateway, endpoint: Option<&Endpoint>, finished: impl Future) {
    if endpoint.is_some_and(Endpoint::is_last) {
        gateway.cancel_calls();
        let _ = tokio::time::timeout(FINAL_ERRORS_TIMEOUT, finished).await;
    }
}
