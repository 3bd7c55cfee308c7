//! The load: requests over a few connections. Every answer is checked.

mod connection;
mod expected;
mod script;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::endpoint::Endpoint;
use crate::principals;

use connection::Response;
pub(crate) use connection::{Connection, call_body, post};
pub(crate) use expected::{Expected, Form, Goal};
pub(crate) use script::{Arguments, CLIENTS, Crowd, Era, Method, Script, Selects};

/// The requests of a load, and the expected answers.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) endpoint: Endpoint,
    pub(crate) script: Script,
    /// The tags that the client of a session declares.
    declares: &'static [&'static str],
    /// The number of principals; each connection has the next one.
    principals: usize,
    expected: RefCell<Expected>,
    /// The number in the next request; each is used once.
    next: Cell<u64>,
}

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Nanoseconds from a request's first byte to its answer's last, unordered.
    pub(crate) latencies: Vec<u32>,
    /// The number of wrong answers; the first complaint is below.
    pub(crate) wrong: usize,
    pub(crate) complaint: Option<String>,
    /// Bytes of all answers' bodies.
    pub(crate) bytes: u64,
}

/// When a load ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Time(Instant),
    /// Each connection has sent this many requests.
    Count(usize),
}

/// The first number; all have as many digits, so that bodies have one length.
const FIRST: u64 = 10_000_000;

impl Load {
    pub(crate) fn new(
        endpoint: Endpoint,
        script: Script,
        goal: Goal,
        declares: &'static [&'static str],
        principals: usize,
    ) -> Self {
        let templates = script.len();
        Self {
            endpoint,
            script,
            declares,
            principals,
            expected: RefCell::new(Expected::new(goal, templates)),
            next: Cell::new(FIRST),
        }
    }

    /// Opens `count` connections, each with a session if the script needs one.
    pub(crate) async fn connect(&self, count: usize) -> io::Result<Vec<Connection>> {
        let is_fixed = self.expected.borrow().is_fixed();
        let mut connections = Vec::new();
        for index in 0..count {
            let line = principals::header(index, self.principals);
            let connection = Connection::open(self.endpoint.address).await?;
            let mut connection = connection.with_authorization(line);
            if self.script.needs_session() && !is_fixed {
                let declares = self.declares;
                let asks = self.script.asks;
                connection
                    .initialize_with(&self.endpoint, declares, asks)
                    .await?;
            }
            connections.push(connection);
        }
        Ok(connections)
    }

    /// Sends requests over all `connections` concurrently. Removes those that break.
    pub(crate) async fn run(
        self: &Rc<Self>,
        connections: &mut Vec<Connection>,
        until: Until,
    ) -> Sample {
        let mut tasks = JoinSet::new();
        let count = connections.len();
        for (index, connection) in connections.drain(..).enumerate() {
            // Each begins at another request, so that together they soon use all of them.
            let first = index * self.script.len() / count;
            tasks.spawn_local(Rc::clone(self).drive(connection, first, until));
        }
        let mut sum = Sample::default();
        let awake = tokio::task::spawn_local(stay_awake());
        let samples = tasks.join_all().await;
        awake.abort();
        for (connection, sample) in samples {
            connections.extend(connection);
            sum.add(sample);
        }
        sum
    }

    async fn drive(
        self: Rc<Self>,
        mut connection: Connection,
        first: usize,
        until: Until,
    ) -> (Option<Connection>, Sample) {
        let mut sample = Sample::default();
        let mut request = Vec::new();
        let mut other = None;
        for round in 0.. {
            let started = Instant::now();
            match until {
                Until::Time(end) if started >= end => break,
                Until::Count(count) if round == count => break,
                _ => {}
            }
            let template = (first + round) % self.script.len();
            let number = self.next.replace(self.next.get() + 1);
            let session = connection.session();
            self.script.write(template, number, session, &mut request);
            let response = match self.exchanged(&mut connection, &mut other, &request).await {
                Ok(response) => response,
                Err(error) => {
                    sample.complain(format!("the connection broke: {error}"));
                    return (None, sample);
                }
            };
            sample.took(started.elapsed());
            sample.bytes += response.body.len() as u64;
            let mut expected = self.expected.borrow_mut();
            if let Err(why) = expected.check(template, number, &response) {
                sample.complain(why);
            }
        }
        (Some(connection), sample)
    }
}

impl Load {
    /// Exchanges one request, and answers the server request that it may cause.
    async fn exchanged<'a>(
        &self,
        connection: &'a mut Connection,
        other: &mut Option<Connection>,
        request: &[u8],
    ) -> io::Result<Response<'a>> {
        if !self.script.asks {
            return connection.exchange(request).await;
        }
        if !self.script.needs_session() {
            let requested = connection.exchange(request).await?;
            let retry = script::retry(request, requested.body).map_err(io::Error::other)?;
            return connection.exchange(&retry).await;
        }
        let other = match other {
            Some(other) => other,
            None => other.insert(Connection::open(self.endpoint.address).await?),
        };
        connection
            .exchange_asked(request, other, &self.endpoint)
            .await
    }
}

/// Keeps this thread from sleeping. Waking it would cost the measured process CPU time, and a fast process would do so
/// less often. That would measure the machine, not the process.
async fn stay_awake() {
    loop {
        tokio::task::yield_now().await;
    }
}

impl Sample {
    fn took(&mut self, time: Duration) {
        let nanoseconds = time.as_nanos().try_into().unwrap_or(u32::MAX);
        self.latencies.push(nanoseconds);
    }

    fn complain(&mut self, why: String) {
        self.wrong += 1;
        self.complaint.get_or_insert(why);
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.wrong += other.wrong;
        self.bytes += other.bytes;
        self.complaint = self.complaint.take().or(other.complaint);
    }

    /// The latency in microseconds that `part` of all requests did not exceed.
    pub(crate) fn percentile(&mut self, part: f64) -> f64 {
        if self.latencies.is_empty() {
            return 0.0;
        }
        self.latencies.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into what is in memory"
        )]
        let index = ((self.latencies.len() - 1) as f64 * part) as usize;
        f64::from(self.latencies[index]) / 1e3
    }
}
