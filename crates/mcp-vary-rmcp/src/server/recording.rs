//! Requests that are recorded in the audit log.

use std::borrow::Cow;

use mcp_vary_audit::Outcome;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::dyn_handler::HandlerFuture;
use super::request_record::{ActiveRecord, Subject};
use super::vary_server::VaryServer;

impl VaryServer {
    /// Answers a request, and records it in the audit log, if there is one.
    ///
    /// The future is boxed: rmcp spawns a task for each request and moves its future several times, and that future
    /// would have room for the largest method.
    ///
    /// `outcome` says whether an answer reports a failure.
    ///
    /// # Errors
    ///
    /// Those of `answer`, and when the audit log has no room and must not lose records.
    pub(super) fn record<'a, P, T, F>(
        &'a self,
        method: impl Into<Cow<'a, str>>,
        (params, mut context): (P, RequestContext<RoleServer>),
        subject: fn(&P) -> Subject,
        answer: impl FnOnce(P, RequestContext<RoleServer>) -> F + Send + 'a,
        outcome: fn(&T) -> Outcome,
    ) -> HandlerFuture<'a, T>
    where
        P: Send + 'a,
        T: Send + 'a,
        F: Future<Output = Result<T, ErrorData>> + Send + 'a,
    {
        let method = method.into();
        Box::pin(async move {
            let Some(log) = &self.state.audit_log else {
                return answer(params, context).await;
            };
            let (clients, subject) = (&self.state.clients, subject(&params));
            let record = ActiveRecord::begin(log, clients, &method, subject, &mut context).await?;
            let answer = answer(params, context).await;
            record.finish(&answer, outcome);
            answer
        })
    }
}
