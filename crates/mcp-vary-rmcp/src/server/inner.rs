//! Any handler, whatever its type: what a [`ServerHandler`] is behind us.

use std::borrow::Cow;
use std::pin::Pin;

use rmcp::model::{
    ClientNotification, ClientRequest, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, Service, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

pub(super) type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>>;

/// `rmcp::service::DynService` lacks what asks the handler itself.
pub(super) trait Inner: Send + Sync {
    fn request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Answering<'_, ServerResult>;
    /// Straight to the handler: by [`request`](Self::request), rmcp would already have given a modern
    /// client's "not found" the code of any wrong parameter.
    fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answering<'_, ReadResourceResponse>;
    fn notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Answering<'_, ()>;
    fn info(&self) -> ServerConfig;
    fn versions(&self) -> Cow<'static, [ProtocolVersion]>;
    fn tool(&self, name: &str) -> Option<Tool>;
    fn accepts(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter>;
    fn listen(&self, context: SubscriptionContext) -> Answering<'_, ()>;
}

impl<H: ServerHandler> Inner for H {
    fn request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Answering<'_, ServerResult> {
        Box::pin(self.handle_request(request, context))
    }

    fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answering<'_, ReadResourceResponse> {
        Box::pin(self.read_resource(request, context))
    }

    fn notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Answering<'_, ()> {
        Box::pin(self.handle_notification(notification, context))
    }

    fn info(&self) -> ServerConfig {
        ServerHandler::get_info(self)
    }

    fn versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(self)
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.get_tool(name)
    }

    fn accepts(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.accepted_subscription_filter(requested)
    }

    fn listen(&self, context: SubscriptionContext) -> Answering<'_, ()> {
        Box::pin(ServerHandler::listen(self, context))
    }
}
