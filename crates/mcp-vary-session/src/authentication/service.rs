//! Decides who sends a request, under one configuration.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use mcp_vary_auth::address::EndpointPath;
use mcp_vary_auth::authenticator::{Admission, Denial};
use mcp_vary_auth::challenge::{Challenge, Refusal};
use mcp_vary_auth::credential::{Credential, CredentialError};
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::refresh::{FetchReason, KeyStatus, KeysUnavailable};
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::{InvalidToken, IssuerIndex, TokenVerifier};
use mcp_vary_base::environment::Environment;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_base::tasks::TaskTracker;
use tracing::{debug, warn};

use super::certificate::PeerCertificate;
use super::issuer::{Fetching, IssuerClient};
use mcp_vary_settings::authentication::Authentication;

/// A request that may not pass.
#[derive(Debug)]
pub struct CredentialRefusal {
    /// The answer.
    pub challenge: Challenge,
    denial: Denial,
}

impl CredentialRefusal {
    /// What became of the credential, as a label of metrics.
    pub const fn outcome(&self) -> &'static str {
        match &self.denial.refusal {
            Refusal::NoCredential => "missing",
            Refusal::BadRequest(_) => "malformed",
            Refusal::InvalidToken(InvalidToken::Expired) => "expired",
            Refusal::InvalidToken(InvalidToken::NotForThisServer) => "audience",
            Refusal::InvalidToken(_) => "invalid",
            Refusal::InsufficientScope(_) => "scope",
            Refusal::KeysUnavailable => "keys_unavailable",
            Refusal::TooManyFailures(_) => "limited",
        }
    }

    /// Why, in a sentence that has nothing of the credential.
    pub fn reason(&self) -> String {
        reason(&self.denial)
    }
}

fn reason(denial: &Denial) -> String {
    match (&denial.reason, &denial.refusal) {
        (Some(reason), _) => reason.to_string(),
        (None, Refusal::InsufficientScope(needed)) => {
            let names: Vec<_> = needed.iter().map(Scope::as_str).collect();
            let given = match &denial.given_scopes[..] {
                [] => "none".to_owned(),
                given => format!("`{}`", given.join(" ")),
            };
            format!("it needs the scopes `{}`, and has {given}", names.join(" "))
        }
        (None, refusal @ Refusal::BadRequest(CredentialError::Malformed)) => {
            format!("{}; a client may send it in quotes", refusal.description())
        }
        (None, refusal) => refusal.description().to_owned(),
    }
}

/// Decides who sends a request, under one configuration.
pub struct AuthenticationService {
    settings: Authentication,
    /// In the order of the configuration.
    issuers: Vec<Arc<IssuerClient>>,
    environment: Environment,
    background_tasks: TaskTracker,
    refusals: LogBackoff,
}

// Omits keys and issuers.
mcp_vary_base::debug_by_name!(AuthenticationService);

impl AuthenticationService {
    /// The service of a configuration. Issuers with the same entry as `before` keep their keys.
    pub fn new(
        settings: Authentication,
        before: Option<&Self>,
        environment: Environment,
        background_tasks: TaskTracker,
    ) -> Self {
        let tokens = settings.authenticator.tokens();
        let trusted = tokens.map_or(&[][..], TokenVerifier::issuers);
        let issuers = std::iter::zip(trusted, &settings.key_sources).map(|(trusted, keys)| {
            let source = &keys.source;
            let earlier = before.into_iter().flat_map(|before| &before.issuers);
            let mut known = earlier
                .filter(|known| known.is_of(&trusted.issuer, source))
                .map(Arc::clone);
            let new = || {
                let issuer = trusted.issuer.clone();
                let variables = environment.variables;
                Arc::new(IssuerClient::new(issuer, source.clone(), variables))
            };
            let issuer = known.next().unwrap_or_else(new);
            issuer.set_refresh_interval(keys.refresh);
            issuer
        });
        Self {
            issuers: issuers.collect(),
            settings,
            environment,
            background_tasks,
            refusals: LogBackoff::default(),
        }
    }

    /// Begins to fetch the keys of issuers for which that is due for this `reason`.
    pub fn fetch_keys(&self, reason: FetchReason) {
        for issuer in &self.issuers {
            issuer.begin_fetch(reason, &self.fetching());
        }
    }

    fn fetching(&self) -> Fetching<'_> {
        Fetching {
            tasks: &self.background_tasks,
            authenticator: &self.settings.authenticator,
        }
    }

    /// Decides on the head of a request to `target`. It waits for keys that may still arrive.
    ///
    /// # Errors
    ///
    /// The answer to a request that may not pass, and the reason.
    pub async fn authenticate(
        &self,
        head: &Parts,
        target: &EndpointPath,
    ) -> Result<Admission, CredentialRefusal> {
        let first = match self.decide(head, target) {
            Ok(admission) => return Ok(admission),
            Err(denial) => denial,
        };
        let issuer = first.fetch.and_then(|index| self.issuers.get(index.get()));
        let fetched = match issuer {
            Some(issuer) => issuer.newer_keys(&self.fetching()).await,
            None => false,
        };
        let denial = match fetched.then(|| self.decide(head, target)) {
            Some(Ok(admission)) => return Ok(admission),
            Some(Err(denial)) => denial,
            None => first,
        };
        self.log(&denial);
        Err(CredentialRefusal {
            challenge: self.settings.challenges.answer(&denial.refusal, target),
            denial,
        })
    }

    /// The issuers, each with the status of its keys.
    pub fn key_statuses(&self) -> impl Iterator<Item = (&Issuer, KeyStatus)> {
        self.issuers.iter().map(|issuer| issuer.key_status())
    }

    /// Logs why a credential is refused, ever more rarely. Tokens expire every day, and requests without one ask where to
    /// get it.
    fn log(&self, denial: &Denial) {
        let is_usual = matches!(
            denial.refusal,
            Refusal::NoCredential | Refusal::InvalidToken(InvalidToken::Expired)
        );
        let reason = reason(denial);
        let logged = if is_usual { None } else { self.refusals.next() };
        match logged {
            Some(count) => warn!(count, reason, "credential refused"),
            None => debug!(reason, "credential refused"),
        }
    }

    /// Why the keys of issuers were not fetched.
    pub(super) fn key_failures(&self) -> Vec<String> {
        let issuers = self.issuers.iter();
        issuers.filter_map(|issuer| issuer.last_failure()).collect()
    }

    /// The same for issuers without keys, whose tokens cannot be verified.
    pub fn missing_keys(&self) -> Vec<String> {
        let issuers = self.issuers.iter().filter(|issuer| issuer.keys().is_err());
        issuers.filter_map(|issuer| issuer.last_failure()).collect()
    }

    /// Waits until the keys of each issuer were fetched, or could not be.
    pub async fn first_keys(&self) {
        for issuer in self.issuers.iter().filter(|issuer| issuer.keys().is_err()) {
            issuer.newer_keys(&self.fetching()).await;
        }
    }

    fn decide(&self, head: &Parts, target: &EndpointPath) -> Result<Admission, Denial> {
        let credential = Credential::read(&head.headers, head.uri.query())?;
        let authenticator = &self.settings.authenticator;
        let certificate = head.extensions.get::<PeerCertificate>();
        if let (Credential::None, Some(certificate)) = (&credential, certificate) {
            return Ok(Admission::of(Arc::clone(certificate.principal())));
        }
        let now = (self.environment.now)();
        let keys = |index: IssuerIndex| match self.issuers.get(index.get()) {
            Some(issuer) => issuer.keys(),
            None => Err(KeysUnavailable::NeverLoaded),
        };
        let mut admission = authenticator.authenticate(credential, target, now, keys)?;
        if let Some(certificate) = certificate {
            admission.principal = certificate.add_to(&admission.principal);
        }
        Ok(admission)
    }

    /// The answer to a credential from an address that sent too many wrong ones, before it is verified.
    pub fn too_many_failures(&self, retry_after: u64, target: &EndpointPath) -> Challenge {
        let refusal = Refusal::TooManyFailures(Duration::from_secs(retry_after));
        self.settings.challenges.answer(&refusal, target)
    }

    /// The header `WWW-Authenticate` of a response to a call that needs `scopes`.
    pub fn scope_challenge(&self, scopes: &[String], target: &EndpointPath) -> Option<HeaderValue> {
        let parsed = scopes.iter().filter_map(|scope| Scope::parse(scope).ok());
        let refusal = Refusal::InsufficientScope(parsed.collect());
        self.settings
            .challenges
            .answer(&refusal, target)
            .www_authenticate
    }

    /// The protected resource metadata at `path` (RFC 9728, section 3), if there is a document.
    pub fn metadata(&self, path: &str) -> Option<String> {
        self.settings.metadata.as_ref()?.document(path)
    }

    /// The pause between two checks whether a stream may go on.
    pub(super) const fn stream_check(&self) -> Duration {
        self.settings.stream_check
    }

    /// Whether what `before` admitted may go on.
    pub(super) fn still_admits(&self, before: &Self, admission: &Admission) -> bool {
        let now = (self.environment.now)();
        let authenticator = &self.settings.authenticator;
        authenticator.still_admits(&before.settings.authenticator, admission, now)
    }
}
