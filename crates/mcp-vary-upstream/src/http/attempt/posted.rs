//! Requests of the transport of 2024-11-05: posted, and answered on the stream of the session.

use http::Response;
use mcp_vary_base::tasks::spawn;
use mcp_vary_http_client::body::Incoming;

use super::super::collect::{Collect, drain};
use super::super::sending::SendError;
use super::refusal::RefusalHead;
use super::{Attempt, State};
use crate::error::UpstreamError;
use crate::message::Answer;

impl Attempt {
    /// Handles the answer that arrived on the stream of the transport of 2024-11-05.
    pub(super) fn on_answer(&mut self, answer: Option<Answer>) -> Result<(), UpstreamError> {
        self.touch();
        let endpoint = &self.shared.endpoint;
        let repeated = || endpoint.misbehaved("it answered a request twice".to_owned());
        let first = answer.ok_or_else(repeated)?;
        self.finish(Ok(first))
    }

    /// Handles the response to a `POST` of the transport of 2024-11-05.
    pub(super) fn on_posted(
        &mut self,
        posted: Result<Response<Incoming>, SendError>,
    ) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let response = posted.map_err(|error| endpoint.delivery_error(&error))?;
        endpoint.check_response(&response)?;
        self.shared.gateways.record(response.headers());
        let head = RefusalHead::of(&response);
        let body = response.into_body();
        if !head.status.is_success() {
            self.state = State::ReadingError(head, Collect::new(body, endpoint.limits.body));
        } else if let State::Posted { response, .. } = &mut self.state {
            *response = None;
            spawn(drain(body));
        }
        self.touch();
        Ok(())
    }
}
