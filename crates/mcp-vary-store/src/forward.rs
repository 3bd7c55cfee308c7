//! A request that another replica answers.

use std::pin::pin;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use crate::mailbox::{
    ForwardError, Kind, MAX_HEAD, ReplicaBody, ReplicaResponse, RequestHead, SILENCE, Sending,
    decode_response,
};
use crate::operations::{Operation, Outcome};
use crate::store::Store;

impl Store {
    /// The address of this replica for [`forward`](Self::forward).
    pub fn tag(&self) -> u32 {
        self.mailbox.tag()
    }

    /// Has the replica with the tag `to` answer a request.
    ///
    /// # Errors
    ///
    /// If it does not. After [`ForwardError::Unanswered`] it may still handle the request.
    pub async fn forward(
        &self,
        to: u32,
        head: &RequestHead,
        body: &[u8],
    ) -> Result<ReplicaResponse, ForwardError> {
        let mut request = head.encode();
        let may_ask = self.connection.load().is_some() && request.len() <= MAX_HEAD;
        let begun = if may_ask {
            self.mailbox.begin_exchange(to, head.share())
        } else {
            Err(ForwardError::NotSent)
        };
        let skipped = |_: &ForwardError| self.operations.add(Operation::Forward, Outcome::Skipped);
        let (sending, response) = begun.inspect_err(skipped)?;
        request.extend_from_slice(body);
        let exchange = self.exchange_with(to, sending, response, request.freeze());
        let answer = exchange.await;
        let outcome = answer.as_ref().map_or(Outcome::Failed, |_| Outcome::Ok);
        self.operations.add(Operation::Forward, outcome);
        answer
    }

    async fn exchange_with(
        &self,
        to: u32,
        mut sending: Sending,
        mut response: ReplicaBody,
        request: Bytes,
    ) -> Result<ReplicaResponse, ForwardError> {
        let began = Instant::now();
        let head = {
            let mut sent = pin!(sending.send(Kind::Open, request, true));
            let mut answered = pin!(async {
                let in_time = timeout(SILENCE, response.next_frame()).await;
                let first = in_time.unwrap_or_else(|_| {
                    self.mailbox.avoid_if_silent(to, began);
                    Err(ForwardError::Unanswered)
                })?;
                response.read_head(first).await
            });
            // The owner may refuse a request before it has all of it.
            tokio::select! {
                biased;
                head = &mut answered => head?,
                sent = &mut sent => {
                    sent?;
                    answered.await?
                }
            }
        };
        let (status, headers) = decode_response(&head).ok_or(ForwardError::Unanswered)?;
        Ok(ReplicaResponse {
            status,
            headers,
            body: response,
        })
    }
}
