//! Requests of several round trips: the server asks the client for something before it answers.

mod relayed;
mod sealed;
mod suspended;

use crate::support::*;

/// `params` with more members.
fn with(params: &Value, more: &Value) -> Value {
    let mut params = params.clone();
    let members = params.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    params
}
