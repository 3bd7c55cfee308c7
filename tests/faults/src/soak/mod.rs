//! Clients that come and go in every way there is, and what is left of them in the gateway.
//!
//! The real `vary serve` stands in front of the fixture server four times: of either era, as a child and over HTTP.
//! Some clients come first, so that what is made once has been made; then it is looked at from outside, then many
//! come, and then it is looked at again.

mod ground;
mod http;
mod look;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::ground::{Ground, SERVERS, Server, WRITE_TIMEOUT};
use self::http::request;
use self::look::Look;
use self::ways::Way;

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

/// Clients at once.
const AT_ONCE: usize = 16;
/// As many come before the first look at least, if many come at all.
const FIRST: usize = 500;
/// For so long they come then: longer than anything of a client is kept.
const WARM: Duration = Duration::from_secs(40);
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
    let (ground, watched) = ground::start(programs).await?;
    let ground = Arc::new(ground);
    let look = || Look::at(&watched);
    let begun = Instant::now();
    let mut failed = come_and_go(&ground, FIRST.min(clients)).await;
    let mut calm = Duration::ZERO;
    if clients > FIRST {
        // As much as is ever kept at once has been kept once, and what sockets wait for has come.
        while begun.elapsed() < WARM {
            failed.extend(come_and_go(&ground, FIRST).await);
        }
        calm = look::POOLED;
    }
    let before = look::settled_for(calm, look).await?;
    let begun = Instant::now();
    failed.extend(come_and_go(&ground, clients).await);
    let took = begun.elapsed();
    let after = look::settled_as(&before, look).await?;
    failed.extend(after.left_since(&before, MORE));
    Ok(Soak {
        table: table(clients, took, &before, &after),
        failed,
    })
}

/// One client, and the server that it is about.
#[derive(Clone, Copy)]
struct Visit<'a> {
    ground: &'a Ground,
    server: &'static Server,
    /// Tells clients apart.
    number: usize,
}

impl Visit<'_> {
    fn address(&self) -> &str {
        &self.ground.address
    }

    /// A call of the server's tool `name`.
    fn call(self, id: u32, name: &str, arguments: &Value) -> Value {
        let name = format!("{}_{name}", self.server.name);
        let params = json!({"name": name, "arguments": arguments});
        request(id, "tools/call", &params)
    }

    /// A call of the tool that reports three times and then answers.
    fn steps(self, id: u32) -> Value {
        let mut call = self.silent(id);
        call["params"]["_meta"] = json!({"progressToken": id});
        call
    }

    /// The same without reports.
    fn silent(self, id: u32) -> Value {
        self.call(id, "test_tool_with_progress", &json!({}))
    }

    /// A resource of the server.
    fn resource(self) -> String {
        format!("{}://watched-resource", self.server.name)
    }

    /// A call that has the resource change.
    fn change(self, id: u32) -> Value {
        self.call(id, "update_resource", &json!({"uri": self.resource()}))
    }

    /// What a client wants to hear of.
    fn wanted(self) -> Value {
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [self.resource()]}})
    }
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
                failed.extend(one(&ground, number).await.err());
            }
        });
    }
    let mut failed: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
    failed.sort();
    failed.truncate(20);
    failed
}

/// The client `number`, to its end.
async fn one(ground: &Ground, number: usize) -> Result<(), String> {
    let (way, turn) = way_of(number);
    let server = &SERVERS[turn % SERVERS.len()];
    let visit = Visit {
        ground,
        server,
        number,
    };
    let why = match tokio::time::timeout(PATIENCE, (way.go)(visit)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(why)) => why,
        Err(_) => "it does not end".to_owned(),
    };
    let why: String = why.chars().take(LONGEST).collect();
    Err(format!("{}, {}: {why}", way.name, server.name))
}

/// What is said of a client that meets what it should not.
const LONGEST: usize = 600;

/// More than any client takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The way of the client `number`, and how many went it before: those that take a process or a while come once in
/// many.
fn way_of(number: usize) -> (&'static Way, usize) {
    let mut rare = ways::all().filter(|way| way.one_in > 1);
    if let Some(way) = rare.find(|way| number % way.one_in == way.one_in - 1) {
        return (way, number / way.one_in);
    }
    let common: Vec<_> = ways::all().filter(|way| way.one_in == 1).collect();
    (common[number % common.len()], number / common.len())
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
    for way in ways::all() {
        let of_this = (0..clients).filter(|number| way_of(*number).0.name == way.name);
        table.push_str(&format!("| {} | {} |\n", way.name, of_this.count()));
    }
    table
}
