//! W3C Trace Context (<https://www.w3.org/TR/trace-context-2/>): the trace that a request belongs to, and how it
//! goes on in the request to a tool.
//!
//! A trace decides nothing. So a malformed one is ignored and is never an error: the tool then gets a new
//! trace.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The header with the ids, and the member of `_meta` with the same text in MCP (SEP-414).
pub const TRACEPARENT: &str = "traceparent";

/// The header of the tracing systems' own data, and the member of `_meta`.
pub const TRACESTATE: &str = "tracestate";

/// Bytes of a `traceparent` of version 00. Later versions can only append.
const PARENT_BYTES: usize = 55;

/// The version that is sent.
const VERSION: u8 = 0;

/// A version that is not valid (section 3.2.2.1).
const FORBIDDEN_VERSION: u8 = 0xff;

/// The caller records its part of the trace.
const SAMPLED: u8 = 1;

/// The trace id is random. Only defined since level 2, which still sends version 00.
const RANDOM: u8 = 1 << 1;

/// Bytes of a `tracestate` that are passed on. The specification asks for at least 512 (section 3.3.1.5).
pub const MAX_STATE_BYTES: usize = 512;

/// Members of a `tracestate` (section 3.3.1.1).
pub const MAX_STATE_MEMBERS: usize = 32;

/// The id of a whole trace; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// `None` for zeros, which are not an id.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id of one step of a trace; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

impl SpanId {
    /// `None` for zeros, which are not an id.
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// The span of a decision: the last 16 digits of the decision's id. They contain its lane's sequence number and
    /// bits of the hash chain, so no two decisions of a trace have the same. So the span of a tool leads to the
    /// decision.
    #[must_use]
    pub fn of_decision(decision_id: &str) -> Option<Self> {
        let (_, low) = Uuid::try_parse(decision_id).ok()?.as_u64_pair();
        Self::new(low.to_be_bytes())
    }
}

/// The place of a request in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    flags: u8,
    state: Option<String>,
}

impl TraceContext {
    /// Reads a caller's `traceparent`, and its `tracestate` if the former is valid. The caller's own span is not
    /// kept: nothing uses it.
    #[must_use]
    pub fn read(parent: &str, state: impl FnOnce() -> Option<String>) -> Option<Self> {
        let (trace_id, flags) = parent_of(parent)?;
        Some(Self { trace_id, flags, state: state().filter(|state| is_state(state)) })
    }

    /// A new trace. It is not known whether anybody records it.
    #[must_use]
    pub fn begin(random: [u8; 16]) -> Option<Self> {
        TraceId::new(random).map(|trace_id| Self { trace_id, flags: 0, state: None })
    }

    /// The headers of a request that Gateward sends in this trace. `span` is Gateward's own.
    #[must_use]
    pub fn headers(&self, span: SpanId) -> Vec<(String, String)> {
        let (trace_id, span, flags) = (self.trace_id, hex::encode(span.0), self.flags);
        let parent = format!("{VERSION:02x}-{trace_id}-{span}-{flags:02x}");
        let state = self.state.iter().map(|state| (TRACESTATE.to_owned(), state.clone()));
        std::iter::once((TRACEPARENT.to_owned(), parent)).chain(state).collect()
    }
}

/// The trace id and the known flags of a `traceparent`.
fn parent_of(text: &str) -> Option<(TraceId, u8)> {
    let (known, rest) = text.split_at_checked(PARENT_BYTES)?;
    let mut fields = known.split('-');
    let [version] = bytes_of(fields.next()?)?;
    let trace_id = TraceId::new(bytes_of(fields.next()?)?)?;
    SpanId::new(bytes_of(fields.next()?)?)?;
    let [flags] = bytes_of(fields.next()?)?;
    match version {
        FORBIDDEN_VERSION => None,
        VERSION => rest.is_empty().then_some((trace_id, flags & (SAMPLED | RANDOM))),
        // In a later version, only this flag is known to have the same meaning.
        _ => (rest.is_empty() || rest.starts_with('-')).then_some((trace_id, flags & SAMPLED)),
    }
}

/// The bytes of lower-case hex.
fn bytes_of<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let is_lower_case = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    (is_lower_case && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}

/// Whether a `tracestate` is passed on. In `_meta` it is any text, and a line break would begin another header.
fn is_state(text: &str) -> bool {
    let members = text.split(',').filter(|member| !member.trim().is_empty()).count();
    text.len() <= MAX_STATE_BYTES
        && (1..=MAX_STATE_MEMBERS).contains(&members)
        && text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: SpanId = SpanId([0, 0, 0, 0, 0, 0, 0xab, 1]);

    /// The headers that are sent for a caller's headers; empty if a new trace begins.
    fn sent(parent: &str, state: Option<&str>) -> Vec<(String, String)> {
        let read = TraceContext::read(parent, || state.map(str::to_owned));
        read.map(|trace| trace.headers(SPAN)).unwrap_or_default()
    }

    #[test]
    fn a_valid_traceparent_goes_on_with_another_span() {
        let caller = "b7ad6b7169203331";
        for (named, version, flags, rest, expected) in [
            ("not sampled", "00", "00", "", Some("00")),
            ("sampled", "00", "01", "", Some("01")),
            ("a random trace id", "00", "03", "", Some("03")),
            ("unknown flags become zero", "00", "ff", "", Some("03")),
            ("a later version", "01", "01", "", Some("01")),
            ("a later version with more", "cc", "ff", "-what-the-future-brings", Some("01")),
            ("a later version that ends in a dash", "fe", "00", "-", Some("00")),
            ("a later version that goes on without a dash", "cc", "01", ".what", None),
            ("this version with more", "00", "01", "-what", None),
            ("this version that ends in a dash", "00", "01", "-", None),
            ("the forbidden version", "ff", "01", "", None),
            ("upper case in the version", "0A", "01", "", None),
            ("upper case in the flags", "00", "0A", "", None),
            ("flags that are not hex", "00", "0g", "", None),
            ("a version that is not hex", ".0", "01", "", None),
            ("two headers that the runtime joined", "00", "01", ", 00", None),
        ] {
            let parent = format!("{version}-{TRACE}-{caller}-{flags}{rest}");
            let expected = expected.map(|flags| format!("00-{TRACE}-000000000000ab01-{flags}"));
            let got = sent(&parent, None).first().map(|(_, value)| value.clone());
            assert_eq!(got, expected, "{named}");
        }
    }

    #[test]
    fn a_malformed_traceparent_is_ignored() {
        let upper = format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase());
        for (named, parent) in [
            ("nothing", ""),
            ("a word", "trace"),
            ("no flags", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"),
            ("half of the flags", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"),
            ("a trace of zeros", "00-00000000000000000000000000000000-b7ad6b7169203331-01"),
            ("a span of zeros", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
            ("upper case", &upper),
            ("underscores", "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01"),
            ("dashes elsewhere", "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01"),
            ("a space before it", " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("a line break", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\n"),
            ("a character of two bytes", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0é"),
        ] {
            assert_eq!(sent(parent, Some("a=1")), [], "{named}");
        }
    }

    #[test]
    fn tracestate_is_passed_on_unchanged_within_its_bounds() {
        let members = |count: usize| vec!["a=1"; count].join(",");
        let long = |bytes: usize| format!("a={}", "x".repeat(bytes - 2));
        for (named, state, passes) in [
            ("one member", "congo=t61rcWkgMzE".to_owned(), true),
            ("spaces and tabs", "congo=1 ,\trojo=2".to_owned(), true),
            ("empty members", "congo=1,,rojo=2,".to_owned(), true),
            ("as many members as there may be", members(MAX_STATE_MEMBERS), true),
            ("one more", members(MAX_STATE_MEMBERS + 1), false),
            ("as many bytes as there may be", long(MAX_STATE_BYTES), true),
            ("one byte more", long(MAX_STATE_BYTES + 1), false),
            ("nothing", String::new(), false),
            ("only commas", " , ,".to_owned(), false),
            ("a line break", "a=1\nx-other: 1".to_owned(), false),
            ("letters beyond ASCII", "a=é".to_owned(), false),
        ] {
            let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
            let headers = sent(&parent, Some(&state));
            let got = headers.iter().find(|(name, _)| name == TRACESTATE);
            let expected = (TRACESTATE.to_owned(), state);
            assert_eq!(got, passes.then_some(&expected), "{named}");
            assert_eq!(headers.len(), 1 + usize::from(passes), "{named}");
        }
    }

    #[test]
    fn a_new_trace_is_not_sampled() {
        let headers = TraceContext::begin([7; 16]).unwrap().headers(SPAN);
        let parent = "00-07070707070707070707070707070707-000000000000ab01-00";
        assert_eq!(headers, [(TRACEPARENT.to_owned(), parent.to_owned())]);
        assert_eq!(TraceContext::begin([0; 16]), None);
    }

    #[test]
    fn the_span_of_a_decision_is_the_end_of_its_id() {
        let id = crate::id::decision_id(1_700_000_000_000, 7, 42, &[9; 32]);
        let digits = id.replace('-', "");
        assert_eq!(hex::encode(SpanId::of_decision(&id).unwrap().0), digits[16..]);
        for not_an_id in ["", "decision", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(SpanId::of_decision(not_an_id), None, "{not_an_id}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_reads_as_the_same_trace(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), flags in any::<u8>()) {
            let parent = format!("00-{}-{}-{flags:02x}", hex::encode(trace), hex::encode(span));
            let read = TraceContext::read(&parent, || None);
            prop_assert_eq!(read.is_some(), trace != [0; 16] && span != [0; 8]);
            if let Some(read) = read {
                prop_assert_eq!(read.trace_id.to_string(), hex::encode(trace));
                let (_, again) = &read.headers(SPAN)[0];
                prop_assert_eq!(TraceContext::read(again, || None), Some(read));
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic_and_sends_no_line_break(parent in ".{0,70}", valid in any::<bool>(), state in any::<String>()) {
            let parent = if valid { format!("00-{TRACE}-b7ad6b7169203331-01") } else { parent };
            for (_, value) in sent(&parent, Some(&state)) {
                prop_assert!(value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
                prop_assert!(value.len() <= MAX_STATE_BYTES);
            }
        }

        #[test]
        fn only_lower_case_hex_and_dashes_in_their_places_are_read(at in 0..PARENT_BYTES, byte in b'!'..=b'~') {
            let mut parent = format!("00-{TRACE}-b7ad6b7169203331-01").into_bytes();
            parent[at] = byte;
            let parent = String::from_utf8(parent).unwrap();
            // Only lower-case hex in its places, and dashes in theirs, is read.
            let fits = parent.bytes().enumerate().all(|(at, byte)| match at {
                2 | 35 | 52 => byte == b'-',
                _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            });
            prop_assert_eq!(!sent(&parent, None).is_empty(), fits && !parent.starts_with("ff"));
        }
    }
}
