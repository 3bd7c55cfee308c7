//! The login of a person: which client requests which scopes of which authorization server.

use super::{Interaction, Shared, State};
use crate::address::Address;
use crate::authorization::{AuthorizationRequest, OFFLINE_ACCESS};
use crate::challenge::Challenge;
use crate::discovery::{Discovered, discover};
use crate::error::CredentialError;
use crate::redirect::RedirectListener;
use crate::registration::register;
use crate::scope::Scopes;
use crate::store::{Login, VERSION};
use crate::token::TokenEndpoint;
use crate::user_agent::Flow;

impl Shared {
    /// Asks the person, and stores the login.
    pub(super) async fn authorize(
        &self,
        state: &mut State,
        challenge: &Challenge,
    ) -> Result<Login, CredentialError> {
        let needed = || CredentialError::LoginNeeded {
            server: self.settings.name.clone(),
            reason: None,
        };
        let interaction = self.interaction.as_ref().ok_or_else(needed)?;
        let configured = self.settings.issuer.as_ref().map(Address::as_str);
        let last = state.login.as_ref();
        let last_issuer = last.map(|login| login.issuer.as_str());
        let server = &self.settings.server;
        let discovered = discover(&self.http, server, challenge, configured, last_issuer).await?;
        let issuer = discovered.metadata.issuer.as_str();
        let same = last.filter(|login| login.issuer == issuer);
        if same.is_none() && last_issuer.is_some() && configured.is_none() {
            // "If the authorization server indicated by protected resource metadata no longer matches the one the
            // credentials were registered with, clients SHOULD surface an error".
            if self.settings.client.is_registered() {
                return Err(CredentialError::ServerChanged);
            }
        }
        if same.is_none() {
            let name = issuer.to_owned();
            if configured.is_none() && self.settings.client.secret.is_some() {
                return Err(CredentialError::IssuerNeeded { issuer: name });
            }
            interaction.user_agent.show_issuer(server.as_str(), &name);
        }
        let scope = self.scope(&discovered, challenge, same);
        let login = self.by_person(interaction, discovered, scope).await?;
        let lock = self.lock().await?;
        self.write(state, lock, login.clone()).await?;
        Ok(login)
    }

    /// The scopes to request: those of the challenge, else those of the configuration, else those of the metadata; and those
    /// that were requested before, so that no permission is lost.
    fn scope(
        &self,
        discovered: &Discovered,
        challenge: &Challenge,
        last: Option<&Login>,
    ) -> Scopes {
        let configured = &self.settings.scope;
        let mut scope = match &challenge.scope {
            Some(requested) => requested.union(configured),
            None if !configured.is_empty() => configured.clone(),
            None => discovered.resource.scopes.clone().unwrap_or_default(),
        };
        if let Some(last) = last {
            scope = scope.union(&last.scope).union(&last.missing_scope);
        }
        let mut supported = discovered.metadata.scopes_supported.iter();
        // Alone it would replace the default of the authorization server.
        if !scope.is_empty() && supported.any(|name| name == OFFLINE_ACCESS) {
            scope = scope.union(&Scopes::parse(OFFLINE_ACCESS));
        }
        scope
    }

    async fn by_person(
        &self,
        interaction: &Interaction,
        discovered: Discovered,
        scope: Scopes,
    ) -> Result<Login, CredentialError> {
        let Discovered { resource, metadata } = discovered;
        let configured = &self.settings.client;
        let listener = match interaction.flow {
            Flow::Device => None,
            Flow::AuthorizationCode => {
                let listener = RedirectListener::bind(configured.redirect_port).await;
                let unbound = |error: std::io::Error| {
                    let why = mcp_vary_base::io_error::describe(&error);
                    CredentialError::UserAgent(format!("cannot listen for the redirect: {why}"))
                };
                Some(listener.map_err(unbound)?)
            }
        };
        let client = match configured.client(&metadata) {
            Some(client) => client,
            None => {
                let redirect_uri = listener.as_ref().map(RedirectListener::uri);
                register(&self.http, &metadata, redirect_uri.as_deref()).await?
            }
        };
        let request = AuthorizationRequest {
            endpoint: TokenEndpoint {
                http: &self.http,
                url: &metadata.token_endpoint,
                issuer: &metadata.issuer,
                client: &client,
                environment: self.environment,
            },
            metadata: &metadata,
            resource: &resource.resource,
            scope: &scope,
            user_agent: &*interaction.user_agent,
            chosen_by: (self.settings.issuer.is_none()).then(|| self.settings.server.as_str()),
        };
        let tokens = match &listener {
            Some(listener) => request.by_code(listener).await?,
            None => request.by_device().await?,
        };
        Ok(Login {
            version: VERSION,
            principal: self.key.principal.clone(),
            server: self.key.server.clone(),
            is_issuer_written: self.settings.issuer.is_some(),
            issuer: metadata.issuer,
            token_endpoint: metadata.token_endpoint,
            revocation_endpoint: metadata.revocation_endpoint,
            client,
            resource: resource.resource,
            scope,
            missing_scope: Scopes::default(),
            tokens: Some(tokens),
        })
    }
}
