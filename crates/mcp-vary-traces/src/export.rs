//! Sends spans to a collector, in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_vary_base::tasks::spawn;
use mcp_vary_http_client::document::{DocumentClient, DocumentError};
use prost::Message as _;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::proto::{self, Envelope, ExportResponse};
use crate::settings::Target;

/// The most spans that wait. More are lost, and counted.
pub const QUEUE: usize = 2048;

/// The most spans in one request.
const BATCH: usize = 512;
/// The time in which a batch fills. Spans wait without waking the task that sends them, which would cost more than they do.
const DELAY: Duration = Duration::from_secs(2);
/// The time in which a collector must answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The times after which a batch is sent again. Other spans wait meanwhile, or are lost.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The longest time for the last spans.
const CLOSE: Duration = Duration::from_secs(3);
/// The version of the program, and of the scope of its spans.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest answer that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// How many spans were exported and lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TraceStats {
    /// Those that the collector has.
    pub exported: u64,
    /// Those for which the queue had no room, or which the collector did not accept.
    pub lost: u64,
}

/// The queue of spans, and the task that empties it.
#[derive(Debug)]
pub(crate) struct Exporter {
    /// Spans as they are sent.
    queue: Sender<Vec<u8>>,
    counts: Arc<Counts>,
    /// Notified for each full batch.
    filled: Arc<Notify>,
    /// Cancelled when no more spans come.
    closing: CancellationToken,
    /// Cancelled when the task has ended.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Counts {
    submitted: AtomicU64,
    exported: AtomicU64,
    lost: AtomicU64,
}

impl Exporter {
    pub(crate) fn start(target: Target, service_name: &str, instance: &str) -> Self {
        let (queue, spans) = mpsc::channel(QUEUE);
        let (counts, filled) = <(Arc<Counts>, Arc<Notify>)>::default();
        let closing = CancellationToken::new();
        let closed = CancellationToken::new();
        let resource = [
            ("service.name", service_name),
            ("service.version", VERSION),
            ("service.instance.id", instance),
        ];
        let worker = Worker {
            target,
            envelope: Envelope::new(&resource, "mcp-vary", VERSION),
            counts: Arc::clone(&counts),
            filled: Arc::clone(&filled),
            closing: closing.clone(),
            client: None,
            is_failing: false,
        };
        let ended = closed.clone().drop_guard();
        spawn(async move {
            worker.run(spans).await;
            drop(ended);
        });
        Self {
            queue,
            counts,
            filled,
            closing,
            closed,
        }
    }

    /// Exports the message of a span, or loses it.
    pub(crate) fn submit(&self, span: Vec<u8>) {
        let submitted = 1 + self.counts.submitted.fetch_add(1, Ordering::Relaxed);
        match self.queue.try_reserve() {
            Ok(place) if !self.closing.is_cancelled() => place.send(span),
            _ => _ = self.counts.lost.fetch_add(1, Ordering::Relaxed),
        }
        if submitted.is_multiple_of(BATCH as u64) {
            self.filled.notify_one();
        }
    }

    pub(crate) fn stats(&self) -> TraceStats {
        TraceStats {
            exported: self.counts.exported.load(Ordering::Relaxed),
            lost: self.counts.lost.load(Ordering::Relaxed),
        }
    }

    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let in_time = tokio::time::timeout(CLOSE, self.closed.cancelled()).await;
        let TraceStats { exported, lost } = self.stats();
        let submitted = self.counts.submitted.load(Ordering::Relaxed);
        let unsent = submitted.saturating_sub(exported + lost);
        if in_time.is_err() || unsent > 0 {
            // They are lost, since the program ends.
            self.counts.lost.fetch_add(unsent, Ordering::Relaxed);
            warn!(unsent, "the last spans could not be exported in time");
        }
    }
}

/// Takes spans from the queue and sends them.
struct Worker {
    target: Target,
    envelope: Envelope,
    counts: Arc<Counts>,
    filled: Arc<Notify>,
    closing: CancellationToken,
    /// What the last batch was sent with, if the collector answered.
    client: Option<DocumentClient>,
    /// Whether the last batch was lost, which was logged.
    is_failing: bool,
}

impl Worker {
    async fn run(mut self, mut queue: Receiver<Vec<u8>>) {
        loop {
            let waiting = tokio::time::timeout(DELAY, self.filled.notified());
            let waited = self.closing.run_until_cancelled(waiting).await;
            // Without an exporter no more spans come, also if nobody has closed it.
            let is_last = waited.is_none() || queue.is_closed();
            let is_late = waited.is_some_and(|filled| filled.is_err());
            if is_late {
                self.send_batch(&mut queue).await;
            }
            // Spans that come while a batch is sent wait for others: a request for a few costs as much as one for many.
            while queue.len() >= BATCH || (is_last && !queue.is_empty()) {
                self.send_batch(&mut queue).await;
            }
            if is_last {
                return;
            }
        }
    }

    /// Sends the spans that wait, at most a batch.
    async fn send_batch(&mut self, queue: &mut Receiver<Vec<u8>>) {
        let mut spans = Vec::new();
        let mut count = 0;
        while count < BATCH
            && let Ok(span) = queue.try_recv()
        {
            proto::append(&mut spans, &span);
            count += 1;
        }
        if count > 0 {
            self.send(&spans, count as u64).await;
        }
    }

    async fn send(&mut self, spans: &[u8], count: u64) {
        let request = self.envelope.request(spans);
        let outcome = self.post(request.into()).await;
        let (rejected, why) = match outcome {
            Ok(rejected) => (rejected.min(count), "it rejected them".to_owned()),
            Err(error) => (count, error.to_string()),
        };
        let counts = &self.counts;
        counts
            .exported
            .fetch_add(count - rejected, Ordering::Relaxed);
        counts.lost.fetch_add(rejected, Ordering::Relaxed);
        let url = &*self.target.url;
        match (rejected > 0, self.is_failing) {
            (true, false) => warn!(url, lost = rejected, why, "the collector has not got spans"),
            (false, true) => {
                let lost = counts.lost.load(Ordering::Relaxed);
                info!(url, lost, "the collector gets spans again");
            }
            _ => {}
        }
        self.is_failing = rejected > 0;
    }

    /// Posts a batch, again if that may help. Returns how many spans the collector rejects.
    async fn post(&mut self, body: Bytes) -> Result<u64, DocumentError> {
        let mut retries = RETRIES.into_iter();
        loop {
            let error = match self.post_once(body.clone()).await {
                Ok(rejected) => return Ok(rejected),
                Err(error) => error,
            };
            let pause = match retries.next() {
                Some(pause) if is_temporary(&error) => pause,
                _ => return Err(error),
            };
            let slept = self.closing.run_until_cancelled(tokio::time::sleep(pause));
            if slept.await.is_none() {
                return Err(error);
            }
        }
    }

    async fn post_once(&mut self, body: Bytes) -> Result<u64, DocumentError> {
        let Target {
            url,
            headers,
            variables,
        } = &self.target;
        let client = match self.client.take() {
            Some(client) => client,
            None => DocumentClient::new(url, *variables)?,
        };
        let content = ("application/x-protobuf", body);
        let limits = (MAX_RESPONSE, TIMEOUT);
        let response = client.post(content, headers.clone(), limits).await?;
        self.client = Some(client);
        // A collector may answer with anything, as long as the status is 200.
        let response = ExportResponse::decode(response).unwrap_or_default();
        let rejected = response.partial_success.map(|it| it.rejected_spans);
        Ok(rejected.unwrap_or_default().max(0).unsigned_abs())
    }
}

/// Whether a collector may accept the same spans a little later.
///
/// Source: OpenTelemetry Protocol, "Failures", "Retryable Response Codes".
fn is_temporary(error: &DocumentError) -> bool {
    match error {
        DocumentError::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        DocumentError::Timeout(_) | DocumentError::Connection(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary_testkit::trace_collector::{CollectorBehavior, TraceCollector};
    use mcp_vary_testkit::wait::until;

    use super::*;

    #[tokio::test]
    async fn spans_that_come_while_a_batch_is_sent_wait_for_others() {
        let time = Duration::from_millis(50);
        let collector = TraceCollector::start(CollectorBehavior::Delays(time)).await;
        let exporter = Exporter::start(target(&collector), "test", "1");
        let submit = |count| (0..count).for_each(|_| exporter.submit(Vec::new()));
        submit(BATCH);
        until(async || collector.heads().len() == 1).await;
        submit(20);
        until(async || exporter.stats().exported == BATCH as u64).await;
        tokio::time::sleep(2 * time).await;
        assert_eq!(collector.heads().len(), 1);
        exporter.close().await;
        assert_eq!(collector.heads().len(), 2);
        assert_eq!(exporter.stats().exported, BATCH as u64 + 20);
    }

    #[tokio::test]
    async fn batches_are_sent_over_one_connection_until_one_fails() {
        let collector = TraceCollector::start(CollectorBehavior::Accepts).await;
        let exporter = Exporter::start(target(&collector), "test", "1");
        let submit = || (0..BATCH).for_each(|_| exporter.submit(Vec::new()));
        for batches in 1..=2 {
            submit();
            until(async || exporter.stats().exported == batches * BATCH as u64).await;
        }
        assert_eq!(collector.connections(), 1);
        collector.set(CollectorBehavior::Refuses(400));
        submit();
        until(async || exporter.stats().lost == BATCH as u64).await;
        collector.set(CollectorBehavior::Accepts);
        submit();
        until(async || exporter.stats().exported == 3 * BATCH as u64).await;
        assert_eq!(collector.connections(), 2);
    }

    fn target(collector: &TraceCollector) -> Target {
        Target {
            url: format!("{}/v1/traces", collector.url()),
            headers: http::HeaderMap::new(),
            variables: |_| None,
        }
    }
}
