//! Commands on their way from a listener to the program that carries them out.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::page::Page;
use crate::page_codes::PageCodes;
use crate::token::{AdminToken, TokenDigest};

/// What came of a reload, as a sentence: what changed, or why nothing did.
pub type Outcome = Result<String, String>;

/// Sends the operator's commands to the program.
#[derive(Clone, Debug)]
pub struct Operator {
    token: Option<TokenDigest>,
    page_token: Option<AdminToken>,
    /// Shared by all connections: a code works at any of them, once.
    page_codes: Arc<PageCodes>,
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
pub fn channel(token: Option<&AdminToken>) -> (Operator, Requests) {
    let (sender, reloads) = mpsc::channel(WAITING);
    let operator = Operator {
        token: token.map(AdminToken::digest),
        page_token: token.map(AdminToken::for_page),
        page_codes: Arc::default(),
        page: Arc::default(),
        reloads: sender,
        drain: CancellationToken::new(),
    };
    let drain = operator.drain.clone();
    (operator, Requests { reloads, drain })
}

impl Operator {
    /// Whether the value of a header `Authorization` has the token.
    pub fn admits(&self, authorization: &[u8]) -> bool {
        let sent = sent_token(authorization);
        sent.is_some() && sent == self.token
    }

    /// Whether it has the token, or that for the page.
    pub fn admits_to_page(&self, authorization: &[u8]) -> bool {
        let of_page = self.page_token.as_ref().map(AdminToken::digest);
        let sent = sent_token(authorization);
        sent.is_some() && [self.token, of_page].contains(&sent)
    }

    /// A code of these random bytes for the address of the page: it may be seen in the list of processes while a browser
    /// starts, so it works once, within a minute.
    pub fn page_code(&self, random: [u8; 32], now: Instant) -> String {
        let code = AdminToken::from_random(random);
        self.page_codes.add(code.digest(), now);
        code.expose().to_owned()
    }

    /// The token of the page, for a header `Authorization` with a code that works.
    pub fn page_token(&self, authorization: &[u8], now: Instant) -> Option<&AdminToken> {
        if !self.page_codes.take(sent_token(authorization)?, now) {
            return None;
        }
        self.page_token.as_ref()
    }

    /// Sets the page. The first one stays.
    pub fn set_page(&self, page: Arc<dyn Page>) {
        let _ = self.page.set(page);
    }

    /// Whether the page can be opened: the program has one, and there is a token for it.
    pub fn has_page(&self) -> bool {
        self.page_token.is_some() && self.page.get().is_some()
    }

    /// The page, if the program has one.
    pub fn page(&self) -> Option<&Arc<dyn Page>> {
        self.page.get()
    }

    /// Has the program carry out a command, and returns its outcome as a sentence.
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

/// The digest of the token in a header `Authorization`.
fn sent_token(authorization: &[u8]) -> Option<TokenDigest> {
    let space = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = authorization.split_at(space);
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer");
    is_bearer.then(|| TokenDigest::of(token.trim_ascii()))
}

/// Reloads that wait to be received. Further ones wait in their connections.
const WAITING: usize = 8;
