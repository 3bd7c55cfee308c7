//! Object-safe [`ServerHandler`].

use std::borrow::Cow;
use std::pin::Pin;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientNotification, ClientRequest, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, ServerResult,
    SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Service, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::rules::{Context, McpResult};

type HandlerFuture<'a, T> = Pin<Box<dyn Future<Output = McpResult<T>> + Send + 'a>>;

/// A handler behind a pointer. `rmcp::service::DynService` does not have the methods that ask the
/// handler itself.
pub(super) trait DynHandler: Send + Sync {
    fn request(&self, request: ClientRequest, context: Context) -> HandlerFuture<'_, ServerResult>;
    /// Calls the handler directly. Through [`request`](Self::request), rmcp would already have
    /// replaced the "not found" code for modern clients by the one for invalid parameters.
    fn read_resource_directly(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> HandlerFuture<'_, ReadResourceResponse>;
    /// Calls the handler directly. Through [`request`](Self::request), rmcp would check and read
    /// `_meta` of a modern request again, which it has done for the server.
    fn call_tool_directly(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> HandlerFuture<'_, CallToolResponse>;
    fn notify(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> HandlerFuture<'_, ()>;
    fn server_info(&self) -> ServerConfig;
    fn protocol_versions(&self) -> Cow<'static, [ProtocolVersion]>;
    fn find_tool(&self, name: &str) -> Option<Tool>;
    fn accepted_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter>;
    fn listen(&self, context: SubscriptionContext) -> HandlerFuture<'_, ()>;
}

impl<H: ServerHandler> DynHandler for H {
    fn request(&self, request: ClientRequest, context: Context) -> HandlerFuture<'_, ServerResult> {
        Box::pin(self.handle_request(request, context))
    }

    fn read_resource_directly(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> HandlerFuture<'_, ReadResourceResponse> {
        Box::pin(self.read_resource(request, context))
    }

    fn call_tool_directly(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> HandlerFuture<'_, CallToolResponse> {
        Box::pin(self.call_tool(request, context))
    }

    fn notify(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> HandlerFuture<'_, ()> {
        Box::pin(self.handle_notification(notification, context))
    }

    fn server_info(&self) -> ServerConfig {
        ServerHandler::get_info(self)
    }

    fn protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(self)
    }

    fn find_tool(&self, name: &str) -> Option<Tool> {
        self.get_tool(name)
    }

    fn accepted_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.accepted_subscription_filter(requested)
    }

    fn listen(&self, context: SubscriptionContext) -> HandlerFuture<'_, ()> {
        Box::pin(ServerHandler::listen(self, context))
    }
}
