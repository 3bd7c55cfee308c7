//! Reads bodies of responses to their end, within a limit.

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use mcp_vary_http_client::body::{Incoming, ReadError, without_mark};

use crate::answer_memory::AnswerLease;

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
    /// It finds no room in the memory for answers.
    NoRoom,
    /// It broke off, or cannot be read.
    Broken(ReadError),
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

    /// Reads to the end, without a byte order mark at the start. Safe to drop while it waits, and to call again.
    pub(super) async fn run(&mut self) -> Result<Bytes, BodyError> {
        self.run_in(&mut AnswerLease::default()).await
    }

    /// The same for an answer that takes `memory`. One of a known size waits for room before it is read.
    pub(super) async fn run_in(&mut self, memory: &mut AnswerLease) -> Result<Bytes, BodyError> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.limit {
            return Err(BodyError::TooLarge);
        }
        if self.first.is_empty() && self.all.is_empty() {
            let room = memory.wait_for(announced).await;
            room.map_err(|_| BodyError::NoRoom)?;
        }
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(BodyError::Broken)?;
            if let Ok(data) = frame.into_data() {
                let length = self.first.len() + self.all.len() + data.len();
                let room = memory.grow_to(length);
                room.map_err(|_| BodyError::NoRoom)?;
                self.push(data)?;
            }
        }
        let whole = if self.all.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            self.all.split().freeze()
        };
        self.body.check_charset(&whole).map_err(BodyError::Broken)?;
        Ok(without_mark(whole))
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
