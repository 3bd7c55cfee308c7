//! The body of a response, with a limit.

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// Collects a body in one piece of memory.
#[derive(Debug)]
pub(super) struct Collect {
    body: Incoming,
    limit: usize,
    first: Bytes,
    /// Used from the second frame on; most bodies have one and are not copied.
    all: BytesMut,
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    Broken(hyper::Error),
}

impl Collect {
    pub(super) fn new(body: Incoming, limit: usize) -> Self {
        Self {
            body,
            limit,
            first: Bytes::new(),
            all: BytesMut::new(),
        }
    }

    /// Reads to the end. Safe to drop while it waits, and to call again.
    pub(super) async fn run(&mut self) -> Result<Bytes, BodyError> {
        if self.body.size_hint().lower() > self.limit as u64 {
            return Err(BodyError::TooLarge);
        }
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(BodyError::Broken)?;
            if let Ok(data) = frame.into_data() {
                self.push(data)?;
            }
        }
        if self.all.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        Ok(self.all.split().freeze())
    }

    fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        if self.first.len() + self.all.len() + data.len() > self.limit {
            return Err(BodyError::TooLarge);
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = data;
            return Ok(());
        }
        if self.all.is_empty() {
            let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(0);
            let whole = self.first.len() + data.len() + announced;
            self.all.reserve(whole.min(self.limit).min(RESERVED));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&data);
        Ok(())
    }
}

/// The memory that is reserved for an announced body; more is reserved as it arrives.
const RESERVED: usize = 1 << 20;

/// Reads and drops what follows an answer, so that the connection can be reused.
pub(super) async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, all).await;
}

const DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Whether a body is HTML.
pub(super) fn is_web_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let starts_with = |word: &[u8]| {
        let start = start.get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    starts_with(b"<!doctype html") || starts_with(b"<html")
}
