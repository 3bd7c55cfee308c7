//! The lines of a process, bounded.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The next line without its end; `None` at the end of the stream.
///
/// # Errors
///
/// If the stream cannot be read, or the line is longer than `limit` bytes: [`io::ErrorKind::InvalidData`].
pub(crate) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(most).read_until(b'\n', &mut line).await?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > limit {
        let error = format!("a line is longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    } else if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_ends_at_its_break_or_with_the_stream() {
        let mut reader = &b"a\n\nbc"[..];
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader, 2).await.unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, [&b"a"[..], b"", b"bc"]);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_an_error() {
        for text in ["abc", "abc\n"] {
            let error = next_line(&mut text.as_bytes(), 2).await.unwrap_err();
            assert_eq!(error.to_string(), "a line is longer than 2 bytes");
        }
    }
}
