//! The steps that several methods share: plain functions over a request, or over a request in its view.
//!
//! A method calls them in this order, because of what each may reveal and change:
//!
//! 1. [`active_view`] selects the variant, refuses one change of it too many, and records it.
//! 2. [`items`] and [`resources`] find the item. What the variant hides does not exist, whatever else the request has.
//! 3. [`access`] checks the call by the access rules, with the arguments that the server would get.
//! 4. [`rates`] counts what is left, so that a refused call counts for no limit.
//! 5. [`response_plan`] plans the response, before the request changes.
//! 6. [`forward`] sends the request, on the client's [`connection`], as one of several [`round_trips`].

pub(crate) mod access;
pub(crate) mod active_view;
pub(crate) mod connection;
pub(crate) mod forward;
pub(crate) mod found_task;
pub(crate) mod items;
pub(crate) mod proxied_task;
pub(crate) mod rates;
pub(crate) mod resources;
pub(crate) mod response_plan;
pub(crate) mod round_trips;
pub(crate) mod stored_results;
pub(crate) mod task_mode;
pub(crate) mod task_support;
pub(crate) mod undeclared_methods;
