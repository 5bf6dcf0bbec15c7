//! Server-sent events: splitting a stream into events, reading one, and writing it with other data.

/// The media type.
pub const EVENT_STREAM: &str = "text/event-stream";

const BOM: &[u8] = &[0xef, 0xbb, 0xbf];

/// Whether a body of this `Content-Type` is a stream of events.
#[must_use]
pub fn is_stream(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case(EVENT_STREAM)
}

/// Splits a stream into whole events. A line ends with LF, CR or CRLF.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// The start of the unfinished line, and the offset up to which it was read.
    line: usize,
    scanned: usize,
    /// Whether the last byte was a CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    started: bool,
}

impl Splitter {
    /// Adds bytes; returns the events that they complete, each with the empty line that ends it. `None`
    /// when an unfinished event has more than `max_bytes`.
    pub fn push(&mut self, bytes: &[u8], max_bytes: usize) -> Option<Vec<Vec<u8>>> {
        let mut events = Vec::new();
        self.buffer.extend_from_slice(bytes);
        if !self.started && (self.buffer.len() >= BOM.len() || !BOM.starts_with(&self.buffer)) {
            self.started = true;
            if self.buffer.starts_with(BOM) {
                self.buffer.drain(..BOM.len());
            }
        }
        // The start of the unfinished event.
        let mut begin = 0;
        while self.started
            && let Some(byte) = self.buffer.get(self.scanned).copied()
        {
            // The LF of a CRLF.
            let continued = self.after_cr && byte == b'\n';
            self.scanned += 1;
            self.after_cr = byte == b'\r';
            if !continued && !matches!(byte, b'\r' | b'\n') {
                continue;
            }
            // An empty line ends an event. Further empty lines are skipped.
            let between = self.line == begin;
            if continued && between {
                begin = self.scanned;
            } else if !continued && self.scanned == self.line + 1 {
                if !between {
                    events.extend(self.buffer.get(begin..self.scanned).map(<[u8]>::to_vec));
                }
                begin = self.scanned;
            }
            self.line = self.scanned;
        }
        self.buffer.drain(..begin);
        self.line -= begin;
        self.scanned -= begin;
        (self.buffer.len() <= max_bytes).then_some(events)
    }
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty when it has none, which means `message`.
    pub kind: String,
    /// Its data; `None` when it has no `data` line, such as a comment that keeps a connection alive.
    pub data: Option<String>,
    /// Every other line that is forwarded, as it is written.
    others: Vec<String>,
}

impl Event {
    /// Reads a whole event. `None` when it is not UTF-8.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut event = Self { kind: String::new(), data: None, others: Vec::new() };
        // A CRLF is split twice; the empty text between its bytes is dropped.
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => match &mut event.data {
                    None => event.data = Some(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                },
                "" => event.others.push(":".to_owned()),
                "id" | "event" | "retry" => {
                    if name == "event" {
                        value.clone_into(&mut event.kind);
                    }
                    if !value
                        .contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
                    {
                        event.others.push([name, ": ", value].concat());
                    }
                }
                _ => {}
            }
        }
        Some(event)
    }

    /// Whether its data is an MCP message. An event with empty data only sets its id.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(self.kind.as_str(), "" | "message")
            && self.data.as_deref().is_some_and(|data| !data.is_empty())
    }

    /// Whether a client can resume from it.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.others.iter().any(|line| line.starts_with("id:"))
    }

    /// The event with this data, which is JSON. Without data, the other lines are written: they keep the
    /// connection alive, and tell the client the id to resume from.
    ///
    /// The event is always written anew, because clients differ in how they read lines that the
    /// specification does not define. So comments lose their text. Characters that only some clients end
    /// a line at, as Python's `splitlines` does, are escaped in the data; other lines that contain one are
    /// dropped.
    #[must_use]
    pub fn with(&self, data: Option<&str>) -> String {
        let mut out = String::new();
        for line in &self.others {
            out.push_str(line);
            out.push('\n');
        }
        for line in data.into_iter().flat_map(|data| data.split(['\n', '\r'])) {
            out.push_str("data: ");
            for c in line.chars() {
                match c {
                    '\u{85}' => out.push_str("\\u0085"),
                    '\u{2028}' => out.push_str("\\u2028"),
                    '\u{2029}' => out.push_str("\\u2029"),
                    c => out.push(c),
                }
            }
            out.push('\n');
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }
}

/// A message of Gateward's own as an event.
#[must_use]
pub fn message(data: &str) -> String {
    Event { kind: String::new(), data: None, others: vec!["event: message".to_owned()] }
        .with(Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_ends_an_event_whatever_the_line_ends_and_chunks_are() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["data: a\n\n", "data: b\n\n"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec!["data: a\r\n\r", "data: b\r\n\r"]),
            ("data: a\r\rdata: b\r\r", vec!["data: a\r\r", "data: b\r\r"]),
            ("data: a\r\n\ndata: b", vec!["data: a\r\n\n"]),
            (": alive\n\n\ndata: a\n\n", vec![": alive\n\n", "data: a\n\n"]),
            ("\n\r\n\rdata: a\r\n\r\n\r\n\ndata: b\n\n", vec!["data: a\r\n\r", "data: b\n\n"]),
            ("\u{feff}data: a\n\n", vec!["data: a\n\n"]),
            ("data: \u{feff}\n\n", vec!["data: \u{feff}\n\n"]),
            ("", vec![]),
        ] {
            for size in [1, 2, 3, 1000] {
                let mut splitter = Splitter::default();
                let mut events = Vec::new();
                for chunk in stream.as_bytes().chunks(size) {
                    events.extend(splitter.push(chunk, 100).unwrap());
                }
                let events: Vec<&str> =
                    events.iter().map(|e| std::str::from_utf8(e).unwrap()).collect();
                assert_eq!(events, expected, "{stream:?} by {size}");
            }
        }
    }

    #[test]
    fn only_the_media_type_decides_whether_a_body_is_a_stream() {
        for (content_type, expected) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("text/event-streams", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_stream(content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn empty_lines_between_events_are_not_buffered() {
        let mut splitter = Splitter::default();
        let mut bytes = vec![b'\n'; 1 << 20];
        bytes.extend(b"data: a\n\n");
        assert_eq!(splitter.push(&bytes, 10), Some(vec![b"data: a\n\n".to_vec()]));
        assert!(splitter.buffer.is_empty());
        // Each event allocates its own bytes only.
        let events = splitter.push(&b":\n\n".repeat(1 << 16), 10).unwrap();
        assert_eq!((events.len(), events.iter().map(Vec::capacity).max()), (1 << 16, Some(3)));
    }

    #[test]
    fn an_unfinished_event_is_bounded() {
        let mut splitter = Splitter::default();
        assert!(splitter.push(&[b'x'; 10], 10).is_some());
        assert!(splitter.push(b"x", 10).is_none());
    }

    #[test]
    fn an_event_keeps_its_other_lines() {
        for (text, data, is_message, expected) in [
            ("id: 7\ndata: {}\n\n", Some("{}"), true, "id: 7\ndata: new\n\n"),
            (
                "event: message\r\nid:7\r\ndata:a\r\ndata:  b\r\n\r",
                Some("a\n b"),
                true,
                "event: message\nid: 7\ndata: new\n\n",
            ),
            ("id: 7\ndata\nretry: 5\n\n", Some(""), false, "id: 7\nretry: 5\ndata: new\n\n"),
            (": alive\n\n", None, false, ":\ndata: new\n\n"),
            (
                ": a\u{2028}\u{2028}data: b\nother: c\nid: 7\u{85}data: {}\nretry: 5\u{c}id: 8\ndata: {}\n\n",
                Some("{}"),
                true,
                ":\ndata: new\n\n",
            ),
            ("event: message\u{2029}data: x\ndata: {}\n\n", Some("{}"), false, "data: new\n\n"),
            ("event: endpoint\ndata: /x\n\n", Some("/x"), false, "event: endpoint\ndata: new\n\n"),
        ] {
            let event = Event::read(text.as_bytes()).unwrap();
            assert_eq!((event.data.as_deref(), event.is_message()), (data, is_message), "{text}");
            assert_eq!(event.with(Some("new")), expected);
            let rest = expected.replace("data: new\n", "");
            assert_eq!(event.with(None), if rest == "\n" { "" } else { &rest });
            assert_eq!(event.has_id(), expected.contains("id: "));
        }
        assert_eq!(Event::read(b"data: \xff\n\n"), None);
        let data = "{\"a\":\"b\u{2028}\u{2028}data: c\u{85}d\u{2029}\"}";
        let escaped = r#"data: {"a":"b\u2028\u2028data: c\u0085d\u2029"}"#;
        let event = Event::read(b"data: x\n\n").unwrap();
        assert_eq!(event.with(Some(data)), [escaped, "\n\n"].concat());
        assert_eq!(message("{\n}"), "event: message\ndata: {\ndata: }\n\n");
    }
}
