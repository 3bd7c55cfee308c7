//! Server-sent events, as far as MCP uses them: the data of each event.

/// Finds events in a stream of bytes. The reader of the bytes bounds their number.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    ends_with_return: bool,
}

impl EventReader {
    /// The data of the events that `bytes` complete.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for &byte in bytes {
            let is_second_of_pair = byte == b'\n' && self.ends_with_return;
            self.ends_with_return = byte == b'\r';
            match byte {
                _ if is_second_of_pair => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Some(std::mem::take(&mut self.data)).filter(|data| !data.is_empty());
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            self.data
                .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.data.push(b'\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(stream: &str, expected: &[&str]) {
        for size in 1..=stream.len() {
            let mut reader = EventReader::default();
            let pieces = stream.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| reader.read(piece)).collect();
            let events: Vec<_> = events
                .iter()
                .map(|event| std::str::from_utf8(event).unwrap().trim_end())
                .collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn events_end_with_an_empty_line_of_any_kind() {
        reads("data: 1\n\ndata:2\r\n\r\ndata: 3\r\r", &["1", "2", "3"]);
    }

    #[test]
    fn comments_and_events_without_data_are_nothing() {
        let stream = ": ping\n\nid: 7\n\nevent: message\nid: 8\ndata: {}\n\n";
        reads(stream, &["{}"]);
    }

    #[test]
    fn an_unfinished_event_is_not_one() {
        reads("data: 1\n", &[]);
    }
}
