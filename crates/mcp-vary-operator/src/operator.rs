//! Commands on their way from a listener to the program that carries them out.

use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::page::Page;
use crate::token::{AdminToken, TokenDigest};

/// What came of a reload, as a sentence: what changed, or why nothing did.
pub type Outcome = Result<String, String>;

/// Sends the operator's commands to the program.
#[derive(Clone, Debug)]
pub struct Operator {
    token: Option<TokenDigest>,
    page_token: Option<TokenDigest>,
    page: Arc<OnceLock<Arc<dyn Page>>>,
    reloads: mpsc::Sender<ReloadRequest>,
    drain: CancellationToken,
}

/// The commands that the program receives.
#[derive(Debug)]
pub struct Requests {
    reloads: mpsc::Receiver<ReloadRequest>,
    drain: CancellationToken,
}

/// A request to read the configuration again, which must be answered.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Outcome>);

/// Why a command was not carried out.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedCommand {
    /// The configuration cannot be used.
    #[error("{0}")]
    Failed(String),
    /// The gateway ends.
    #[error("the gateway is shutting down, and reloads nothing more")]
    Stopping,
}

/// A sender of commands and their receiver. Over a network, commands need `token`; without one they are refused there.
#[must_use]
pub fn channel(token: Option<&AdminToken>) -> (Operator, Requests) {
    let (sender, reloads) = mpsc::channel(WAITING);
    let operator = Operator {
        token: token.map(AdminToken::digest),
        page_token: token.map(|token| token.for_page().digest()),
        page: Arc::default(),
        reloads: sender,
        drain: CancellationToken::new(),
    };
    let drain = operator.drain.clone();
    (operator, Requests { reloads, drain })
}

impl Operator {
    /// Whether the value of a header `Authorization` has the token.
    #[must_use]
    pub fn admits(&self, authorization: &[u8]) -> bool {
        has_one_of([self.token], authorization)
    }

    /// Whether it has the token, or that for the page.
    #[must_use]
    pub fn admits_to_page(&self, authorization: &[u8]) -> bool {
        has_one_of([self.token, self.page_token], authorization)
    }

    /// Sets the page. The first one stays.
    pub fn set_page(&self, page: Arc<dyn Page>) {
        let _ = self.page.set(page);
    }

    /// The page, if the program has one.
    #[must_use]
    pub fn page(&self) -> Option<&Arc<dyn Page>> {
        self.page.get()
    }

    /// Has the program carry out a command, and returns a sentence about what came of it.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used, and when there is nothing to reload any more.
    pub async fn run(&self, command: Command) -> Result<String, RefusedCommand> {
        match command {
            Command::Reload => self.reload().await,
            Command::Drain => {
                self.drain.cancel();
                Ok("shutting down; requests in flight may finish".to_owned())
            }
        }
    }

    async fn reload(&self) -> Result<String, RefusedCommand> {
        let (answer, outcome) = oneshot::channel();
        let reload = async {
            self.reloads.send(ReloadRequest(answer)).await.ok()?;
            outcome.await.ok()
        };
        match self.drain.run_until_cancelled(reload).await.flatten() {
            Some(outcome) => outcome.map_err(RefusedCommand::Failed),
            None => Err(RefusedCommand::Stopping),
        }
    }
}

impl Requests {
    /// The next request to reload. Never returns once no more can come. Dropping the future loses no request.
    pub async fn reload(&mut self) -> ReloadRequest {
        match self.reloads.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// Cancelled when the operator requests a drain.
    #[must_use]
    pub const fn drain(&self) -> &CancellationToken {
        &self.drain
    }
}

impl ReloadRequest {
    /// Answers the request. The operator may be gone.
    pub fn answer(self, outcome: Outcome) {
        let _ = self.0.send(outcome);
    }
}

/// Whether a header `Authorization` has one of these tokens.
fn has_one_of<const N: usize>(tokens: [Option<TokenDigest>; N], authorization: &[u8]) -> bool {
    let (scheme, token) = match authorization.iter().position(|byte| *byte == b' ') {
        Some(space) => authorization.split_at(space),
        None => (authorization, &[][..]),
    };
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer");
    // Compared in any case, so that the time says nothing.
    let sent = TokenDigest::of(token.trim_ascii());
    let has_token = tokens.map(|token| token == Some(sent)).contains(&true);
    is_bearer && has_token
}

/// Reloads that wait to be received. Further ones wait in their connections.
const WAITING: usize = 8;
