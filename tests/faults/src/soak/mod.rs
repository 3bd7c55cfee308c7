//! Clients that come and go in every way there is, and what is left of them in the gateway.
//!
//! The real `vary serve` stands in front of the fixture server as a child. Some clients come first, so that what is
//! made once has been made; then it is looked at from outside, then many come, and then it is looked at again.

mod http;
mod look;
mod ways;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use self::look::Look;
use self::ways::{WAYS, Way};
use crate::gateway::Gateway;
use crate::process::until;

/// Where things are.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever runs the soak names all of them"
)]
pub struct SoakPrograms {
    /// The binary `vary`.
    pub vary: PathBuf,
    /// The binary `fixture-server`.
    pub server: PathBuf,
    /// A directory for what the soak writes.
    pub scratch: PathBuf,
}

/// What a soak came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Soak {
    /// The table of the page.
    pub table: String,
    /// What was left, or went otherwise than it should; nothing when all is well.
    pub failed: Vec<String>,
}

/// What clients meet.
pub(crate) struct Ground {
    pub(crate) address: String,
    pub(crate) vary: PathBuf,
    /// The configuration of clients on stdio.
    pub(crate) config: PathBuf,
}

/// Clients at once.
const AT_ONCE: usize = 16;
/// How many come before the first look.
const FIRST: usize = 500;
/// Memory that may be more after than before, in KiB: an allocator gives little back.
const MORE: usize = 8 << 10;

/// Lets `clients` come and go.
///
/// # Errors
///
/// When the gateway cannot be started or looked at.
pub fn soak(programs: &SoakPrograms, clients: usize) -> Result<Soak, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(run(programs, clients))
}

async fn run(programs: &SoakPrograms, clients: usize) -> Result<Soak, String> {
    let _ = fs::remove_dir_all(&programs.scratch);
    fs::create_dir_all(&programs.scratch).map_err(|error| error.to_string())?;
    // Its processes are known by this name.
    let server = programs.scratch.join("soaked-server");
    symlink(&programs.server, &server).map_err(|error| error.to_string())?;
    let (config, piped) = (
        programs.scratch.join("http.json"),
        programs.scratch.join("stdio.json"),
    );
    write(&config, &server, &json!("127.0.0.1:0"))?;
    write(&piped, &server, &json!(null))?;
    let arguments = ["--config".to_owned(), config.display().to_string()];
    let mut gateway = Gateway::on_http(&programs.vary, &arguments)?;
    let url = gateway.url().await?;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let ground = Arc::new(Ground {
        address: address.to_owned(),
        vary: programs.vary.clone(),
        config: piped,
    });
    let mark = server.display().to_string();
    let admin = admin(&gateway).await?;
    let look = || Look::at(gateway.process(), &admin, &mark);

    let _ = come_and_go(&ground, FIRST).await;
    let before = look::settled(look, None).await?;
    let begun = std::time::Instant::now();
    let mut failed = come_and_go(&ground, clients).await;
    let took = begun.elapsed();
    let after = look::settled(look, Some(&before)).await?;
    failed.extend(after.left_since(&before, MORE));
    Ok(Soak {
        table: table(clients, took, &before, &after),
        failed,
    })
}

/// Limits that give up soon what the defaults keep for minutes, so that the end can be waited for.
fn write(path: &Path, server: &Path, admin: &serde_json::Value) -> Result<(), String> {
    let mut config = json!({
        "servers": {"fixture": {"command": server, "args": ["--stdio", "--era", "legacy"], "unused": "1s"}},
        "limits": {"sessions": 200, "kept-events-for": "1s", "kept-for": "1s", "unheard": 64, "ask-timeout": "1s"},
    });
    if admin.is_string() {
        config["admin"] = admin.clone();
    }
    fs::write(path, config.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Where the status is, which it says when it begins.
async fn admin(gateway: &Gateway) -> Result<String, String> {
    until(|| {
        let said = gateway.said();
        let found = said
            .split_once("vary status ")
            .and_then(|(_, rest)| rest.split_once('\n'));
        let found = found.map(|(address, _)| address.to_owned());
        found.ok_or_else(|| format!("vary says no address of its status; it says: {said}"))
    })
    .await
}

/// `clients` in every way in turn, [`AT_ONCE`] at a time; what went otherwise than it should.
async fn come_and_go(ground: &Arc<Ground>, clients: usize) -> Vec<String> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (ground, next) = (Arc::clone(ground), Arc::clone(&next));
        workers.spawn(async move {
            let mut failed = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= clients {
                    return failed;
                }
                let way = way_of(number);
                let gone = tokio::time::timeout(Duration::from_secs(60), (way.go)(&ground)).await;
                match gone {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => failed.push(format!("{}: {why}", way.name)),
                    Err(_) => failed.push(format!("{}: it does not end", way.name)),
                }
            }
        });
    }
    let mut failed: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
    failed.sort();
    failed.truncate(20);
    failed
}

/// The way of the client `number`: those that take a process come once in many.
fn way_of(number: usize) -> &'static Way {
    let many = WAYS.iter().filter(|way| way.one_in == 1).count();
    let rare = WAYS
        .iter()
        .find(|way| way.one_in > 1 && number % way.one_in == way.one_in - 1);
    let common = || WAYS.iter().filter(|way| way.one_in == 1).nth(number % many);
    rare.or_else(common).unwrap_or(&WAYS[0])
}

fn table(clients: usize, took: Duration, before: &Look, after: &Look) -> String {
    let mut table = format!(
        "{clients} clients in {} s, {AT_ONCE} at once.\n\n| of `vary` | before | after |\n|---|---|---|\n",
        took.as_secs()
    );
    for (name, before, after) in before.rows(after) {
        table.push_str(&format!("| {name} | {before} | {after} |\n"));
    }
    table.push_str("\n| how they come and go | clients |\n|---|---|\n");
    for way in WAYS {
        let of_this = (0..clients).filter(|number| way_of(*number).name == way.name);
        table.push_str(&format!("| {} | {} |\n", way.name, of_this.count()));
    }
    table
}
