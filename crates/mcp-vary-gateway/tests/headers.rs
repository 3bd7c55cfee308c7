//! Headers of servers whose values come from the claims of the client.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod headers {
    mod every_method;
    mod exchanged;
    mod people;
    mod refreshed;
    mod refused;
    mod several_servers;
    mod shared_lists;
    mod tasks;
    mod unauthorized;
}
