//! The value of a header that a program prints, such as a token.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::HeaderValue;
use mcp_vary_http_client::credential_source::{CredentialError, CredentialSource, Refusal, Retry};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::without_server;
use crate::secrets::Secrets;
use crate::server_headers::{MAX_HEADER, is_sent};
use crate::stdio::Process;

/// A program that prints the value of a header, and how its output is used.
///
/// # Properties
///
/// - It runs when the value is first needed, when `cache` has passed since its last end, and once when the server
///   refuses the value; never twice at the same time. All who need the value meanwhile get its result, also a failure.
/// - A value is one line of visible ASCII. Longer output than [`MAX_HEADER`] is refused.
/// - `Debug` and errors contain neither arguments nor output. Standard error is part of an error, without the values
///   that are known to be secret.
pub struct HeaderCommand {
    server: Arc<str>,
    settings: HeaderCommandSettings,
    identity: String,
    state: Mutex<State>,
}

/// The settings of a [`HeaderCommand`].
#[derive(Clone, Eq, PartialEq)]
pub struct HeaderCommandSettings {
    /// The program, a path or a name on `PATH`.
    pub program: String,
    /// Its arguments, which can be secret.
    pub args: Vec<String>,
    /// The authentication scheme before the output, such as `Bearer`; none if the program prints the whole value.
    pub scheme: Option<String>,
    /// How long a value is used.
    pub cache: Duration,
    /// How long the program may run.
    pub timeout: Duration,
}

/// Without the arguments.
impl fmt::Debug for HeaderCommandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderCommandSettings")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    latest: Option<Run>,
    /// When a refusal last started the program.
    refused_at: Option<Instant>,
}

/// A run of the program.
struct Run {
    ended: Instant,
    result: Result<HeaderValue, CredentialError>,
}

impl HeaderCommand {
    /// The source of a header of `server`.
    pub fn new(server: &str, settings: HeaderCommandSettings) -> Self {
        let HeaderCommandSettings {
            program,
            args,
            scheme,
            cache,
            timeout,
        } = &settings;
        Self {
            server: server.into(),
            identity: format!("{program:?} {args:?} {scheme:?} {cache:?} {timeout:?}"),
            settings,
            state: Mutex::default(),
        }
    }

    /// Runs the program, and stores the result.
    async fn run(&self, state: &mut State) -> Result<HeaderValue, CredentialError> {
        let latest = state.latest.as_ref();
        let previous = latest.and_then(|run| run.result.as_ref().ok());
        let limit = self.settings.timeout;
        let output = tokio::time::timeout(limit, self.output(previous)).await;
        let in_time = output.unwrap_or_else(|_| Err(format!("did not end within {limit:?}")));
        let result = in_time.map_err(|why| {
            let error =
                CredentialError::new("the program that prints the value of a header failed");
            error.with_details(format!("`{}` {why}", self.settings.program))
        });
        tracing::debug!(server = %self.server, program = self.settings.program, is_ok = result.is_ok(), "header command run");
        state.latest = Some(Run {
            ended: Instant::now(),
            result: result.clone(),
        });
        result
    }

    /// The value that the program prints, or why there is none.
    async fn output(&self, previous: Option<&HeaderValue>) -> Result<HeaderValue, String> {
        let HeaderCommandSettings { program, args, .. } = &self.settings;
        let started = Process::start(
            &self.server,
            program,
            args,
            &BTreeMap::new(),
            None,
            (None, |_| None),
        );
        let mut process = started.map_err(|error| {
            let message = error.to_string();
            format!(
                "cannot be started: {}",
                without_server(&message, &self.server)
            )
        })?;
        let (stdin, stdout, stderr) = process.take_streams().ok_or("has no standard streams")?;
        drop(stdin);
        let (status, printed, stderr) = tokio::join!(
            process.wait(),
            read_start(stdout, MAX_HEADER + 2),
            read_start(stderr, MAX_STDERR)
        );
        let broken = |error: io::Error| format!("broke off: {error}");
        let status = status.map_err(broken)?;
        let printed = printed.map_err(broken)?;
        if !status.success() {
            let mut secrets: Vec<String> = args.clone();
            let printed = String::from_utf8_lossy(&printed);
            secrets.extend(printed.split_whitespace().map(str::to_owned));
            let secrets = Secrets::of_texts(secrets, previous);
            let stderr = secrets.excerpt(stderr.unwrap_or_default().trim_ascii(), STDERR_CHARS);
            return Err(format!(
                "ended with {status}; its standard error is `{stderr}`"
            ));
        }
        self.value(&printed)
    }

    fn value(&self, printed: &[u8]) -> Result<HeaderValue, String> {
        let text = String::from_utf8_lossy(printed);
        let line = text.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Err("printed nothing".to_owned());
        }
        if !is_sent(line) {
            return Err(
                "printed something else than one line of visible ASCII; let it print the value alone"
                    .to_owned(),
            );
        }
        let value = match &self.settings.scheme {
            Some(scheme) => format!("{scheme} {line}"),
            None => line.to_owned(),
        };
        let all = Some(value).filter(|value| value.len() <= MAX_HEADER);
        let header = all.and_then(|value| HeaderValue::try_from(value).ok());
        header.ok_or_else(|| format!("printed more than the {MAX_HEADER} bytes of a header"))
    }
}

mcp_vary_base::debug_by_name!(HeaderCommand);

impl CredentialSource for HeaderCommand {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
        Box::pin(async {
            let requested = Instant::now();
            let mut state = self.state.lock().await;
            if let Some(Run { ended, result }) = &state.latest {
                let lasts = match result {
                    Ok(_) => self.settings.cache,
                    Err(_) => FAILURE_PAUSE,
                };
                if *ended >= requested || ended.elapsed() < lasts {
                    return result.clone().map(Some);
                }
            }
            self.run(&mut state).await.map(Some)
        })
    }

    fn refused<'a>(
        &'a self,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Retry, CredentialError>> {
        Box::pin(async move {
            let mut state = self.state.lock().await;
            let latest = state.latest.as_ref().map(|run| &run.result);
            if let Some(Ok(latest)) = latest
                && Some(latest) != refusal.sent
            {
                // Another request has replaced the value already.
                return Ok(Retry::Once);
            }
            let is_early = |at: Instant| at.elapsed() < REFUSAL_PAUSE;
            if state.refused_at.is_some_and(is_early) {
                return Ok(Retry::Never);
            }
            state.refused_at = Some(Instant::now());
            let value = self.run(&mut state).await?;
            let is_other = Some(&value) != refusal.sent;
            Ok(if is_other { Retry::Once } else { Retry::Never })
        })
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}

/// Reads to the end, and returns the first `limit` bytes.
async fn read_start(mut from: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    (&mut from)
        .take(limit as u64)
        .read_to_end(&mut start)
        .await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(start)
}

/// How long a failure is repeated to requests, so that a thousand of them do not start a thousand programs.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// How long the program is not started for another refusal, since a server may refuse every value.
const REFUSAL_PAUSE: Duration = Duration::from_secs(10);
const MAX_STDERR: usize = 8 << 10;
const STDERR_CHARS: usize = 300;
