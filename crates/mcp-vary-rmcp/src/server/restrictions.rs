//! What a builder declares about clients: who they are, what they may do and how often, and where
//! that is recorded.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::variant::ServerVariant;
use mcp_vary_access::{AccessPolicy, Principal, PrincipalId};
use mcp_vary_audit::AuditLog;
use mcp_vary_rates::{RateLimiter, SharedClock};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::builder::Builder;

impl Builder {
    /// Restricts tools, prompts and resources in all variants. `permission` gets the handler's name
    /// of each tool and prompt, and the URI or URI template of each resource, both when it is
    /// listed and when it is used. What it rejects is answered as if it did not exist.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// # use rmcp::{RoleServer, service::RequestContext};
    /// # fn role(context: &RequestContext<RoleServer>) -> Option<&str> {
    /// #     let parts = context.extensions.get::<http::request::Parts>()?;
    /// #     parts.headers.get("x-role")?.to_str().ok()
    /// # }
    /// use std::sync::Arc;
    ///
    /// use mcp_vary::error::Identifier;
    /// use mcp_vary_rmcp::access::{Claims, Principal};
    ///
    /// let builder = VaryServer::builder()
    ///     // Which clients see which variant.
    ///     .with_visibility(|context, variant| variant.id != *"admin" || role(context) == Some("admin"))
    ///     // What they may use, in every variant.
    ///     .with_permission(|context, item| match item {
    ///         Identifier::Tool(name) => !name.starts_with("delete_") || role(context) == Some("admin"),
    ///         _ => true,
    ///     })
    ///     // Cursors are bound to this principal.
    ///     .with_principal(|context| {
    ///         let principal = Principal::key(role(context)?, Claims::default());
    ///         principal.ok().map(Arc::new)
    ///     });
    /// ```
    pub fn with_permission(
        mut self,
        permission: impl Fn(&RequestContext<RoleServer>, &Identifier) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.permission = Some(Arc::new(permission));
        self
    }

    /// Shows a variant only to clients for which `visibility` returns `true`. For all others it
    /// does not exist.
    ///
    /// This decides which variants a client can select, not what it may do: handlers check that.
    pub fn with_visibility(
        mut self,
        visibility: impl Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility = Some(Arc::new(visibility));
        self
    }

    /// Identifies the principal of a request: a client cannot use another's cursors and states,
    /// [access rules](Self::with_access) apply to it, requests are counted for it, and records name
    /// it. `None` is an anonymous client.
    ///
    /// The function runs one or more times per request, so it must be fast. It checks no
    /// credentials: let a layer in front of the server do that, and put the principal into the
    /// extensions of the HTTP request. Without this function the principal is
    /// [the one there](super::principal()).
    pub fn with_principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> Option<Arc<Principal>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.clients.principal = Some(Arc::new(principal));
        self
    }

    /// Identifies the address of a request's client: anonymous clients are counted by it, and
    /// records have it. Behind a proxy, read it from a header that the proxy overwrites.
    pub fn with_client_address(
        mut self,
        address: impl Fn(&RequestContext<RoleServer>) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.clients.address = Some(Arc::new(address));
        self
    }

    /// Restricts what clients see and use, by the rules that `access` has in the gateway's
    /// configuration. What no rule allows, or one denies, is answered as if it did not exist: in
    /// lists, calls, reads, prompts, completions and subscriptions. Variants that no rule offers
    /// do not exist either.
    ///
    /// Rules get the handler's names, before a [`View`](super::View). A rule's `server` is the name
    /// in the handler's `server_info`. Annotations decide, since the tools are yours. Tools and
    /// prompts that a handler does not list do not exist.
    ///
    /// A call that needs other scopes gets the error `-32003`, and one that an expression refuses
    /// `-32602`. The rules apply to each request, also within a session; a stream of notifications
    /// that is open goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary_rmcp::access::{AccessPolicy, AccessRule, ItemPattern, Presence, When};
    /// use mcp_vary_rmcp::view::Rule;
    ///
    /// let reads: Rule = serde_json::from_str(r#"{"readOnlyHint": true}"#)?;
    /// let everything = Rule::by_name("*".parse()?);
    /// let sre = When::new().with_claim("groups", Presence::of(["sre"])?)?;
    /// let policy = AccessPolicy::new([
    ///     AccessRule::new(When::anyone()).with_allow([ItemPattern::any(reads)]),
    ///     AccessRule::new(sre).with_allow([ItemPattern::any(everything)]),
    /// ])?;
    /// let builder = VaryServer::builder().with_access(policy);
    ///
    /// // A policy without rules allows nothing.
    /// let closed = VaryServer::builder().with_access(AccessPolicy::new([])?);
    /// # let _ = (builder, closed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_access(mut self, policy: AccessPolicy) -> Self {
        self.access = Some(policy);
        self
    }

    /// Limits how often clients call, read and change their variant, by the limits that `rates` has
    /// in the gateway's configuration. What a client may not use is answered as such, at any rate.
    ///
    /// A request above a limit gets the error `-32005`, and a change of the variant `-32000`. The
    /// data has the limit, the seconds to wait and the active variant. Tools have the handler's
    /// names; the key of a server is the name in the handler's `server_info`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary_rmcp::rates::{
    ///     Counted, DEFAULT_CAPACITY, Limit, MonotonicClock, Per, RateLimiter, SharedClock,
    /// };
    ///
    /// let limits = vec![
    ///     Limit::new("calls", Per::Principal, Counted::Calls, "600/min".parse()?)?,
    ///     Limit::new("deletions", Per::Tool, Counted::Calls, "10/h".parse()?)?.for_tools("delete_*")?,
    ///     Limit::new("switches", Per::Principal, Counted::Switches, "12/min".parse()?)?,
    /// ];
    /// let clock = SharedClock::of(MonotonicClock::start());
    /// let limiter = RateLimiter::new(limits, DEFAULT_CAPACITY, clock)?;
    /// let builder = VaryServer::builder().with_rate_limits(limiter);
    ///
    /// // A change of the variant belongs to no tool, so a limit per tool cannot count it.
    /// assert!(Limit::new("wrong", Per::Tool, Counted::Switches, "12/min".parse()?).is_err());
    /// # let _ = builder;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_rate_limits(mut self, limiter: RateLimiter<PrincipalId, SharedClock>) -> Self {
        self.rates = Some(limiter);
        self
    }

    /// Records each request and its outcome, selections and refusals of variants, and reached
    /// limits, with the schema of the gateway's audit log. The log writes to a
    /// [`Sink`](mcp_vary_audit::Sink).
    ///
    /// A request for which the log has no room is refused with `-32603` if its
    /// [`OnFull`](mcp_vary_audit::OnFull) says so. Lengths of messages and HTTP statuses are not
    /// recorded: rmcp knows them, handlers do not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary_rmcp::audit::{AuditConfig, AuditKey, AuditLog, StreamSink};
    ///
    /// # fn microseconds() -> u64 { 1_763_705_520_123_456 }
    /// let config = AuditConfig::new(microseconds, AuditKey::new([7; 32]), "run-1");
    /// let log = AuditLog::start(&config, Box::new(StreamSink::new("stderr", Box::new(std::io::stderr()))))?;
    /// let builder = VaryServer::builder().with_audit_log(log.clone());
    ///
    /// // Records wait in a queue: without this, those that still wait are lost at the end.
    /// assert!(log.close(std::time::Duration::from_secs(3)));
    /// # let _ = builder;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_audit_log(mut self, log: AuditLog) -> Self {
        self.audit_log = Some(log);
        self
    }
}
