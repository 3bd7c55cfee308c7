//! The keys of one issuer: fetched when they are due, and when a token names a key that is not known.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_auth::authenticator::Authenticator;
use mcp_vary_auth::discovery::{Issuer, MAX_METADATA};
use mcp_vary_auth::jwks::{KeySet, MAX_KEY_SET};
use mcp_vary_auth::refresh::{FetchReason, IssuerKeys, KeyStatus, KeysUnavailable};
use mcp_vary_base::environment::Variables;
use mcp_vary_base::io_error;
use mcp_vary_base::lock::Lock;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_http_client::document::{self, DocumentError};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use mcp_vary_settings::authentication::KeySource;

/// The time in which a document must arrive.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time that a request waits for keys.
const WAIT: Duration = Duration::from_secs(10);

/// One issuer, its keys, and where they are.
#[derive(Debug)]
pub(super) struct IssuerClient {
    issuer: Issuer,
    source: KeySource,
    /// The environment variables that name proxies.
    variables: Variables,
    keys: Lock<IssuerKeys>,
    /// Whether a fetch is under way.
    is_fetching: watch::Sender<bool>,
    started: Instant,
    failures: LogBackoff,
    last_failure: Lock<Option<String>>,
}

/// What a fetch needs of the service.
pub(super) struct Fetching<'a> {
    pub(super) tasks: &'a TaskTracker,
    /// Remembers tokens that were verified with keys of the issuer.
    pub(super) authenticator: &'a Arc<Authenticator>,
}

impl IssuerClient {
    pub(super) fn new(issuer: Issuer, source: KeySource, variables: Variables) -> Self {
        Self {
            issuer,
            source,
            variables,
            keys: Lock::default(),
            is_fetching: watch::Sender::new(false),
            started: Instant::now(),
            failures: LogBackoff::default(),
            last_failure: Lock::default(),
        }
    }

    /// Fetches the keys again after `interval`.
    pub(super) fn set_refresh_interval(&self, interval: Duration) {
        self.keys.lock().set_refresh_after(interval.as_secs());
    }

    /// Whether these are the keys of `issuer` from `source`.
    pub(super) fn is_of(&self, issuer: &Issuer, source: &KeySource) -> bool {
        self.issuer == *issuer && self.source == *source
    }

    /// The keys to verify tokens with.
    pub(super) fn keys(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        self.keys.lock().usable(self.now()).map(Arc::clone)
    }

    /// Waits for newer keys: for the fetch that is under way, or for a new one. Returns whether there was one.
    pub(super) async fn newer_keys(self: &Arc<Self>, fetching_by: &Fetching<'_>) -> bool {
        let mut fetching = self.is_fetching.subscribe();
        let reason = match self.keys() {
            Ok(_) => FetchReason::UnknownKey,
            Err(_) => FetchReason::Schedule,
        };
        let has_begun = self.begin_fetch(reason, fetching_by);
        // A fetch that was begun may have ended by now.
        if !has_begun && !*fetching.borrow() {
            return false;
        }
        let fetched = fetching.wait_for(|is_fetching| !is_fetching);
        matches!(tokio::time::timeout(WAIT, fetched).await, Ok(Ok(_)))
    }

    /// Begins to fetch the keys, if that is due. Returns whether it did.
    pub(super) fn begin_fetch(self: &Arc<Self>, reason: FetchReason, by: &Fetching<'_>) -> bool {
        if !self.keys.lock().begin(self.now(), reason) {
            return false;
        }
        self.is_fetching.send_replace(true);
        let issuer = Arc::clone(self);
        let authenticator = Arc::clone(by.authenticator);
        by.tasks
            .spawn(async move { issuer.fetch(&authenticator).await });
        true
    }

    async fn fetch(&self, authenticator: &Authenticator) {
        let fetched = fetch_keys(&self.issuer, &self.source, self.variables).await;
        let issuer = &self.issuer;
        match fetched {
            Ok(set) => {
                info!(%issuer, keys = set.len(), skipped = set.skipped(), "keys fetched");
                let mut keys = self.keys.lock();
                let before = keys.usable(self.now()).map(Arc::clone);
                let is_unchanged = before.is_ok_and(|before| before.is_same_text(&set));
                keys.succeed(self.now(), Arc::new(set));
                drop(keys);
                // A token that was verified with a withdrawn key must be verified again. The key that replaces it can have
                // the same id.
                if !is_unchanged {
                    authenticator.cache().clear();
                }
            }
            Err(error) => {
                self.keys.lock().fail(self.now());
                if self.failures.next().is_some() {
                    warn!(%issuer, %error, "keys not fetched");
                }
                *self.last_failure.lock() = Some(format!("keys of {issuer} not fetched: {error}"));
            }
        }
        self.is_fetching.send_replace(false);
    }

    /// Its identifier, and the status of its keys.
    pub(super) fn key_status(&self) -> (&Issuer, KeyStatus) {
        (&self.issuer, self.keys.lock().status(self.now()))
    }

    /// Why the last fetch that failed did.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }

    /// Seconds of a clock that does not go back.
    fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

async fn fetch_keys(
    issuer: &Issuer,
    source: &KeySource,
    variables: Variables,
) -> Result<KeySet, String> {
    match source {
        KeySource::Discovery => {
            let url = discover(issuer, variables).await?;
            key_set_at(&url, variables).await
        }
        KeySource::Url(url) => key_set_at(url, variables).await,
        KeySource::File(path) => key_set_in(path).await,
    }
}

/// The URL of the key set, from the first metadata document that there is. A document of another issuer ends the search:
/// somebody answers in its place.
async fn discover(issuer: &Issuer, variables: Variables) -> Result<String, String> {
    for url in issuer.metadata_urls() {
        let fetching = document::fetch(&url, MAX_METADATA, DOCUMENT_TIMEOUT, variables);
        let document = match fetching.await {
            Ok(document) => document,
            Err(DocumentError::Status(status)) if status.is_client_error() => continue,
            Err(error) => return Err(format!("{url}: {error}")),
        };
        let key_set = issuer.check_metadata(&document);
        return key_set.map_err(|error| format!("{url}: {error}"));
    }
    Err("no metadata was found; name the key set in the configuration with `jwks`".to_owned())
}

async fn key_set_at(url: &str, variables: Variables) -> Result<KeySet, String> {
    let fetched = document::fetch(url, MAX_KEY_SET, DOCUMENT_TIMEOUT, variables).await;
    let document = fetched.map_err(|error| format!("{url}: {error}"))?;
    parse(&document, url)
}

async fn key_set_in(path: &Path) -> Result<KeySet, String> {
    let name = path.display().to_string();
    let file = path.to_owned();
    // Opening a file can wait: it may be a pipe, or on a disk that is away.
    let reading = tokio::task::spawn_blocking(move || read_at_most(&file, MAX_KEY_SET + 1));
    let text = reading.await.unwrap_or_else(|error| Err(error.into()));
    match text {
        Ok(text) if text.len() > MAX_KEY_SET => {
            Err(format!("{name}: it has more than {MAX_KEY_SET} bytes"))
        }
        Ok(text) => parse(&text, &name),
        Err(error) => Err(format!("{name}: {}", io_error::describe(&error))),
    }
}

fn read_at_most(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?
        .take(limit as u64)
        .read_to_end(&mut text)?;
    Ok(text)
}

fn parse(document: &[u8], place: &str) -> Result<KeySet, String> {
    KeySet::parse(document).map_err(|error| format!("{place}: {error}"))
}
