//! Requests and notifications that belong to no variant; they are sent to every handler.

use rmcp::model::{ClientNotification, ClientRequest, ErrorCode, ServerResult};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer};

use super::errors::mismatched_result;
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
        context: RequestContext<RoleServer>,
        unknown: ErrorCode,
    ) -> Result<ServerResult, ErrorData> {
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
}
