//! The steps that several methods share: plain functions over a request, or over a request in its view.
//!
//! A method calls them in this order, because of what each may reveal and change:
//!
//! 1. [`view`] selects the variant, refuses one change of it too many, and records it.
//! 2. [`view`] and [`resources`] find the item. What the variant hides does not exist, whatever else the request has.
//! 3. [`policy`] checks the call by the access rules, with the arguments that the server would get, and counts what is
//!    left for rate limits, so that a refused call counts for none.
//! 4. [`response_plan`] plans the response, before the request changes.
//! 5. [`forward`] sends the request, on the client's connection, as one of several [`round_trips`].

pub(crate) mod forward;
pub(crate) mod found_task;
pub(crate) mod policy;
pub(crate) mod proxied_task;
pub(crate) mod resources;
pub(crate) mod response_plan;
pub(crate) mod round_trips;
pub(crate) mod skills;
pub(crate) mod stored_results;
pub(crate) mod task_mode;
pub(crate) mod task_support;
pub(crate) mod undeclared_methods;
pub(crate) mod view;
