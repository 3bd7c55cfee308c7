//! Prints tokens, and how Vary judges them.
//!
//! A second implementation then judges the same tokens: `tests/interop/token-verdicts.mjs`. The first line of JSON has
//! the time and the keys, each other one a token, the path of its request, and Vary's answer. They are those of the table
//! that the tests have, and generated ones, which are the same in each run, but for signatures that use random numbers.

use std::error::Error;
use std::io::{self, Write as _};

use mcp_vary_testkit::credentials::{Head, NOW, TABLES, bearer, keys, tokens};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::json;

#[path = "../tests/tokens/clients.rs"]
#[expect(clippy::unwrap_used, reason = "a test's values are good")]
mod clients;

/// Enough that each change meets each other one some times.
const GENERATED: usize = 3_000;

/// The paths of requests with generated tokens.
const PATHS: [&str; 3] = ["/mcp", "/mcp/v/a", "/mcp/v/b"];

fn main() -> Result<(), Box<dyn Error>> {
    let gateway = clients::gateway();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}",
        json!({"now": NOW, "keys": keys::set(&keys::PUBLISHED)})
    )?;
    let mut print = |name: &str, head: &Head| {
        let Some(token) = token_of(head) else {
            return Ok(());
        };
        let answer = clients::outcome(&gateway, head);
        let line = json!({"name": name, "path": head.path, "token": token, "answer": answer});
        writeln!(out, "{line}")
    };
    for (name, head, _) in TABLES.iter().copied().flatten() {
        print(name, &head())?;
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..GENERATED {
        let token = tokens().new_tree(&mut runner);
        let token = token
            .map_err(|reason| reason.message().to_owned())?
            .current();
        let path = PATHS[number % PATHS.len()];
        print("generated", &bearer(token).at(path))?;
    }
    Ok(())
}

/// The token of a request that has one, and nothing else to judge. A header cannot have control characters.
fn token_of(head: &Head) -> Option<&str> {
    let [authorization] = &*head.authorization else {
        return None;
    };
    let token = str::from_utf8(authorization)
        .ok()?
        .strip_prefix("Bearer ")?;
    let is_token = !token.starts_with("vary_") && !token.contains(char::is_control);
    (head.query.is_none() && is_token).then_some(token)
}
