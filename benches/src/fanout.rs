//! What it costs to tell many listeners that a list has changed.

use std::io;
use std::time::{Duration, Instant};

use crate::load::{Connection, Place, post};
use crate::machine::Usage;
use crate::report::Moment;
use crate::subject::{Behind, Programs, Subject};
use crate::upstream::{Kind, Transport, tools};

/// The name of this row.
pub(crate) const NAME: &str = "a list changes, 1,000 clients listen";

/// Streams that are open at once: what a gateway lets in, less a few for others.
const LISTENERS: usize = 1000;

/// The gateway reads a list again after this long at the earliest.
const PAUSE: Duration = Duration::from_millis(1_500);

/// Measures from the announcement until the last listener was told, so many times.
pub(crate) async fn measure(programs: &Programs, times: usize) -> io::Result<Moment> {
    let upstream = programs.upstream(Behind {
        transport: Transport::Http,
        kind: Kind::Sessions,
        tools: 10,
        servers: 1,
        variants: 0,
        alike: 0,
        rules: None,
    })?;
    let running = programs.proxy(Subject::Vary, &upstream)?;
    let place = &running.place;
    let mut caller = Connection::open(place.address).await?;
    caller.initialize(place).await?;
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let mut listener = Connection::open(place.address).await?;
        listener.initialize(place).await?;
        listener.listen(place).await?;
        listeners.push(listener);
    }
    let mut moment = Moment::new(NAME);
    for _ in 0..times {
        tokio::time::sleep(PAUSE).await;
        let (used, started) = (Usage::of(running.process())?, Instant::now());
        announce(&mut caller, place).await?;
        for listener in &mut listeners {
            let told = listener.hear(b"notifications/tools/list_changed");
            let told = tokio::time::timeout(PATIENCE, told).await;
            told.map_err(|_| io::Error::other("a listener is not told of a change"))??;
        }
        let cpu = Usage::of(running.process())?.cpu - used.cpu;
        moment.add(started.elapsed(), cpu);
    }
    Ok(moment)
}

/// How long a listener waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Has the server change its list, and say so.
async fn announce(caller: &mut Connection, place: &Place) -> io::Result<()> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{{"text":"x","change":true}}}}}}"#,
        tools::ECHO
    );
    let request = post(place, caller.session(), &body);
    match caller.exchange(&request).await?.status {
        200 => Ok(()),
        status => Err(io::Error::other(format!(
            "the call is answered with {status}"
        ))),
    }
}
