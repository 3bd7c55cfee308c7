//! What many failures leave behind.

use std::time::Instant;

use crate::case::{Case, holds};
use crate::gateway::Gateway;
use crate::process::until;

/// How often the server dies and comes back.
const DEATHS: usize = 5;

/// After several deaths the gateway has no more children and open files than before the first.
pub(crate) async fn nothing_is_left(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let house = case.open_warm().await?;
    let before = settled(&house.gateway).await?;
    let begun = Instant::now();
    for _ in 0..DEATHS {
        let killed = super::returning::replace(case, &house, |_| {}).await?;
        case.recovers(&house.clients, "one", killed).await?;
    }
    // What was seen of each death stands in another scenario.
    case.rows.clear();
    let after = no_more_than(before, case, &house.gateway).await?;
    let reported = format!(
        "children: {} before, {} after; open files: {} before, {} after",
        before.0, after.0, before.1, after.1
    );
    case.note_gateway("vary itself", reported, begun.elapsed());
    if case.is_stdio() {
        // The process that runs and the one that it started: what the dead ones started is gone.
        case.server.are_left(2).await?;
    }
    Ok(())
}

/// Waits until the gateway holds no more than `before`; says what it holds then.
pub(super) async fn no_more_than(
    before: Held,
    case: &Case,
    gateway: &Gateway,
) -> Result<Held, String> {
    let pooled = if case.is_stdio() { 0 } else { POOLED };
    until(|| {
        let now = held(gateway)?;
        holds(
            now.0 <= before.0 && now.1 <= before.1 + pooled,
            format!("children and open files: {before:?} before, {now:?} after"),
        )?;
        Ok(now)
    })
    .await
}

/// Connections to an endpoint that stay open for the next call: those of the two clients and of the pulse may
/// have been one before, since calls that do not meet share theirs. Fewer than deaths.
const POOLED: usize = 3;

/// The children and the open files of the gateway.
type Held = (usize, usize);

fn held(gateway: &Gateway) -> Result<Held, String> {
    Ok((gateway.children()?, gateway.descriptors()?))
}

/// The same once nothing closes any more: connections of clients do a moment after their answers.
pub(super) async fn settled(gateway: &Gateway) -> Result<Held, String> {
    let mut least = held(gateway)?;
    let mut steady = 0;
    until(|| {
        let now = held(gateway)?;
        steady = if now < least { 0 } else { steady + 1 };
        least = least.min(now);
        holds(steady >= STEADY, "its open files do not settle")
    })
    .await?;
    Ok(least)
}

/// So many looks in a row at the same.
const STEADY: usize = 40;
