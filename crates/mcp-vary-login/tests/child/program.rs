//! A process that asks for the authorization of a server once: `login-child URL DIRECTORY`.
//!
//! It fails without a login in the directory, or if the server's token is not the refreshed one of the tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env::args;

use mcp_vary_base::environment::Environment;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::Credentials;
use mcp_vary_login::login::{LoginCredentials, LoginSettings};
use mcp_vary_login::store::TokenStore;
use tokio::runtime::Builder;

fn main() {
    let [url, directory] = args().skip(1).collect::<Vec<_>>().try_into().unwrap();
    // The token is due at this time.
    let environment = Environment::new(|| 1090, |bytes| bytes.fill(1));
    let settings = LoginSettings::new("github", Address::parse(&url).unwrap());
    let store = TokenStore::new(directory.into(), Vec::new(), environment);
    let login = LoginCredentials::new(settings, store, None, environment);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let value = runtime.block_on(Credentials::Login(login).authorization());
    assert_eq!(value.unwrap().unwrap(), "Bearer TOPSECRET-access-2");
}
