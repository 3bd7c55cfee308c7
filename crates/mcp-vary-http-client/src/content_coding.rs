//! Content codings that servers use although they are asked for none: gzip and deflate, decoded piece by piece.
//!
//! Sources: RFC 9110, section 8.4.1; RFC 1950 to 1952.

use bytes::{Buf as _, Bytes, BytesMut};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// A content coding that can be decoded.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
}

/// A name in `Content-Encoding` that cannot be decoded.
pub(crate) struct UnknownCoding;

impl Coding {
    /// The coding that `value` of `Content-Encoding` names; `None` for what is no coding, such as `utf-8`.
    pub(crate) fn parse(value: &str) -> Result<Option<Self>, UnknownCoding> {
        match value.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            "br" | "compress" | "dcb" | "dcz" | "x-compress" | "zstd" => Err(UnknownCoding),
            several if several.contains(',') => Err(UnknownCoding),
            _ => Ok(None),
        }
    }

    /// The length of the header that `head` begins with, and what follows it; `None` if there is not enough of it.
    fn read_head(self, head: &[u8]) -> Result<Option<(usize, DataFormat)>, Corrupt> {
        match (self, head) {
            (Self::Gzip, _) => Ok(gzip_header(head)?.map(|length| (length, DataFormat::Raw))),
            (Self::Deflate, [first, second, ..]) => {
                // "Some non-conformant implementations send the "deflate" compressed data without the zlib wrapper."
                let check = u16::from_be_bytes([*first, *second]);
                let is_zlib = first & 0x0f == 8 && check.is_multiple_of(31);
                let format = [DataFormat::Raw, DataFormat::Zlib][usize::from(is_zlib)];
                Ok(Some((0, format)))
            }
            (Self::Deflate, _) => Ok(None),
        }
    }
}

/// Decodes one body.
pub(crate) struct Decoder {
    coding: Coding,
    /// What has arrived and is not decoded yet.
    input: BytesMut,
    /// Within compressed data.
    inflater: Option<Box<InflateState>>,
    /// How many bytes of the member before the input begins with: a checksum, which TCP and TLS make needless.
    trailer: usize,
}

/// The bytes are not those of the coding.
#[derive(Debug)]
pub(crate) struct Corrupt;

impl Decoder {
    pub(crate) fn new(coding: Coding) -> Self {
        Self {
            coding,
            input: BytesMut::new(),
            inflater: None,
            trailer: 0,
        }
    }

    /// Adds a piece, after [`Self::decode`] has returned nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
    }

    /// The next decoded bytes, at most [`PIECE`] at once, whatever the input expands to. Nothing if more input is needed.
    pub(crate) fn decode(&mut self) -> Result<Bytes, Corrupt> {
        loop {
            let Some(inflater) = &mut self.inflater else {
                let Some(head) = self.input.get(self.trailer..) else {
                    return Ok(Bytes::new());
                };
                match self.coding.read_head(head) {
                    Ok(Some((length, format))) => {
                        self.input.advance(self.trailer + length);
                        self.inflater = Some(InflateState::new_boxed(format));
                        continue;
                    }
                    Ok(None) if self.input.len() <= MAX_HEAD => {}
                    // Padding behind the last member.
                    Err(Corrupt) if self.trailer > 0 => self.input.clear(),
                    _ => return Err(Corrupt),
                }
                return Ok(Bytes::new());
            };
            let mut output = [0; PIECE];
            let result = inflate(inflater, &self.input, &mut output, MZFlush::None);
            self.input.advance(result.bytes_consumed);
            match result.status {
                Ok(MZStatus::StreamEnd) => {
                    self.inflater = None;
                    self.trailer = [0, GZIP_TRAILER][usize::from(self.coding == Coding::Gzip)];
                }
                Ok(_) | Err(MZError::Buf) if result.bytes_written + result.bytes_consumed > 0 => {}
                Ok(_) | Err(MZError::Buf) if self.input.is_empty() => return Ok(Bytes::new()),
                _ => return Err(Corrupt),
            }
            if result.bytes_written > 0 {
                return Ok(Bytes::copy_from_slice(&output[..result.bytes_written]));
            }
        }
    }

    /// Whether the body may end here: before or behind compressed data.
    pub(crate) fn is_complete(&self) -> bool {
        self.inflater.is_none() && (self.trailer > 0 || self.input.is_empty())
    }
}

/// The length of the header of gzip (RFC 1952, section 2.3); `None` if there is not enough of it.
fn gzip_header(head: &[u8]) -> Result<Option<usize>, Corrupt> {
    let mut start = head.iter().zip([0x1f, 0x8b, 8]);
    if start.any(|(byte, expected)| *byte != expected) {
        return Err(Corrupt);
    }
    let (Some(flags), mut length) = (head.get(3), 10) else {
        return Ok(None);
    };
    if flags & 4 != 0 {
        let Some([low, high]) = head.get(length..length + 2) else {
            return Ok(None);
        };
        length += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    // A name and a comment, which end with a zero.
    for _ in [8, 16].into_iter().filter(|flag| flags & flag != 0) {
        let text = head.get(length..).unwrap_or_default();
        let Some(end) = text.iter().position(|byte| *byte == 0) else {
            return Ok(None);
        };
        length += end + 1;
    }
    length += usize::from(flags & 2);
    Ok((head.len() >= length).then_some(length))
}

/// The most decoded bytes at once.
const PIECE: usize = 8 << 10;
/// The longest header of gzip; its parts can be 64 KiB each, and are read again with each piece.
const MAX_HEAD: usize = 16 << 10;
/// Checksum and length.
const GZIP_TRAILER: usize = 8;
