//! Server-sent events, as bytes: where one ends, what it carries, and the same event with other data.

/// The media type.
pub const EVENT_STREAM: &str = "text/event-stream";

const BOM: &[u8] = &[0xef, 0xbb, 0xbf];

/// Whether a body of this `Content-Type` is a stream of events.
#[must_use]
pub fn is_stream(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case(EVENT_STREAM)
}

/// Cuts a stream into whole events. What ends a line is LF, CR, or both.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// Where the line begins that is not whole yet, and how far it was looked at.
    line: usize,
    looked: usize,
    /// The last byte that was taken was a CR: an LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Splitter {
    /// The events that are whole with these bytes, each with the empty line that ends it; `None` when
    /// one is beyond `max_bytes`.
    pub fn push(&mut self, bytes: &[u8], max_bytes: usize) -> Option<Vec<Vec<u8>>> {
        let mut events = Vec::new();
        self.buffer.extend_from_slice(bytes);
        if !self.begun && (self.buffer.len() >= BOM.len() || !BOM.starts_with(&self.buffer)) {
            self.begun = true;
            if self.buffer.starts_with(BOM) {
                self.buffer.drain(..BOM.len());
            }
        }
        // Where the event begins that is not whole yet.
        let mut begin = 0;
        while self.begun
            && let Some(byte) = self.buffer.get(self.looked).copied()
        {
            // The second half of a line's end.
            let continued = self.after_cr && byte == b'\n';
            self.looked += 1;
            self.after_cr = byte == b'\r';
            if !continued && !matches!(byte, b'\r' | b'\n') {
                continue;
            }
            // An empty line ends an event; after it, another ends none.
            let between = self.line == begin;
            if continued && between {
                begin = self.looked;
            } else if !continued && self.looked == self.line + 1 {
                if !between {
                    events.extend(self.buffer.get(begin..self.looked).map(<[u8]>::to_vec));
                }
                begin = self.looked;
            }
            self.line = self.looked;
        }
        self.buffer.drain(..begin);
        self.line -= begin;
        self.looked -= begin;
        (self.buffer.len() <= max_bytes).then_some(events)
    }
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty when it names none, which stands for `message`.
    pub kind: String,
    /// What it carries; `None` when it has no data at all, as a comment that keeps a connection alive.
    pub data: Option<String>,
    /// Every other line that goes on, as it does.
    others: Vec<String>,
}

impl Event {
    /// Reads a whole event; what is not UTF-8 is none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut event = Self { kind: String::new(), data: None, others: Vec::new() };
        // Both bytes of a line's end that has two: what is between them is empty.
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

    /// Whether it carries a message of MCP; an event without data carries none, and one whose data
    /// are empty only names its id.
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

    /// The event as it goes on, with these data, which are JSON; with none, what is left of it, so that
    /// a connection stays alive, and the id known that a client resumes from. It is always written
    /// anew: what the specification does not know could be read by some as another event. So
    /// comments lose their text, and what only some readers end a line at, as Python's `splitlines`
    /// does, is escaped in data and does not go on elsewhere.
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

/// An event of Gateward's own.
#[must_use]
pub fn message(data: &str) -> String {
    Event { kind: String::new(), data: None, others: vec!["event: message".to_owned()] }
        .with(Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_where_a_line_is_empty_however_lines_end_and_bytes_arrive() {
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
    fn a_stream_is_known_by_its_media_type_alone() {
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
    fn what_stands_between_events_is_not_kept() {
        let mut splitter = Splitter::default();
        let mut bytes = vec![b'\n'; 1 << 20];
        bytes.extend(b"data: a\n\n");
        assert_eq!(splitter.push(&bytes, 10), Some(vec![b"data: a\n\n".to_vec()]));
        assert!(splitter.buffer.is_empty());
        // Each event has no more than its own bytes.
        let events = splitter.push(&b":\n\n".repeat(1 << 16), 10).unwrap();
        assert_eq!((events.len(), events.iter().map(Vec::capacity).max()), (1 << 16, Some(3)));
    }

    #[test]
    fn an_event_without_end_is_not_held() {
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
