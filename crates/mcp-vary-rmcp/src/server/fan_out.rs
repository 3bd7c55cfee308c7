//! Requests and notifications that belong to no variant; they are sent to every handler.
#![expect(deprecated, reason = "clients use logging, though it is deprecated")]

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ServerResult, SetLevelRequest,
    SetLevelRequestParams,
};
use rmcp::service::NotificationContext;
use rmcp::{ErrorData, RoleServer};

use super::errors::mismatched_result;
use super::rules::{Context, McpResult};
use super::vary_server::VaryServer;

impl VaryServer {
    /// Sends `notification` to every handler.
    pub(super) async fn notify_all(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) {
        for handler in self.distinct_handlers() {
            if let Err(error) = handler.notify(notification.clone(), context.clone()).await {
                tracing::debug!(%error, "notification rejected by a handler");
            }
        }
    }

    /// Sends a request to each handler until one returns something other than the error `unknown`.
    /// Tasks and custom requests belong to one handler, whatever the selected variant.
    pub(super) async fn request_any(
        &self,
        request: ClientRequest,
        context: Context,
        unknown: ErrorCode,
    ) -> McpResult<ServerResult> {
        self.check_required(&context)?;
        let mut first = None;
        for handler in self.distinct_handlers() {
            match handler.request(request.clone(), context.clone()).await {
                Err(error)
                    if error.code == unknown || error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    first.get_or_insert(error);
                }
                answer => return answer,
            }
        }
        Err(first.unwrap_or_else(mismatched_result))
    }

    /// Sets the level of logs in every handler that has logs.
    pub(super) async fn set_level_of_handlers(
        &self,
        request: SetLevelRequestParams,
        context: Context,
    ) -> McpResult<()> {
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(request));
        let mut answer = Err(ErrorData::method_not_found::<
            rmcp::model::SetLevelRequestMethod,
        >());
        for handler in self.distinct_handlers() {
            answer = match (
                handler.request(request.clone(), context.clone()).await,
                answer,
            ) {
                (Err(error), answer) if error.code == ErrorCode::METHOD_NOT_FOUND => answer,
                (Err(error), _) => return Err(error),
                (Ok(_), _) => Ok(()),
            };
        }
        answer
    }
}
