//! Every parser and walker of outside input, with the largest input that it accepts, in the form that costs the most.
//!
//! A name ends with the input's KiB: the target is 50 ms for each MiB. An operation asserts that its input is
//! accepted, so that no operation is fast because it refuses its input.

use std::borrow::Cow;
use std::hint::black_box;

use gateward_admin::manifest::{Discovered, ToolManifest};
use gateward_core::bounds::{MAX_BODY_BYTES, MAX_JSON_DEPTH, MAX_JSON_NODES, MAX_RAW_PARTS};
use gateward_core::call::command::{GateCommand, MAX_CANDIDATES};
use gateward_core::call::headers::{self, Caches};
use gateward_core::call::http_tool::{self, HttpRequest};
use gateward_core::credential::token::MacKeys;
use gateward_core::glob::Glob;
use gateward_core::json::Json;
use gateward_core::json::raw::{self, RawObject};
use gateward_core::lane::protocol::LaneRequest;
use gateward_core::mcp::forward;
use gateward_core::mcp::listing::Page;
use gateward_core::mcp::message::{self, Headers};
use gateward_core::mcp::method::Listed;
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::seal::Seal;
use gateward_core::mcp::sse::{self, Event, Splitter};
use gateward_core::policy::input;
use gateward_core::provenance::ValueKey;
use gateward_core::registry::upstream::{
    DEFAULT_MAX_RESULT_BYTES, HttpRoute, MAX_ROUTE_SEGMENTS, MAX_ROUTES,
};
use gateward_core::schema::{self, MAX_SCHEMA_BYTES, Schema, cost};
use gateward_core::shield::{Redaction, Rules, Shield};
use gateward_core::target::{MAX_TARGET_BYTES, Target};
use gateward_core::{call, json};

use crate::decide::{Call, TENANT};
use crate::operation::{GATEWARD, Operation};
use crate::{provenance, shield};

/// Bytes of all headers that the runtime takes.
pub const HEADER_BYTES: usize = 128 * 1024;

/// Bytes of a URL that the runtime takes.
const URL_BYTES: usize = 16 * 1024;

/// The operations.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let mut all = bodies();
    all.extend(results());
    all.extend(schemas());
    all.extend(texts());
    all
}

/// The shield redacts nothing.
fn nothing() -> Redaction<'static> {
    let shield = Box::leak(Box::new(Shield::new(Rules::default())));
    Redaction { shield, tenant: TENANT, categories: &[] }
}

fn operation<F, T>(name: &'static str, prepare: impl Fn() -> F + 'static) -> Operation
where
    F: Fn() -> T + 'static,
{
    Operation::new(name, GATEWARD, prepare)
}

/// An object with the most fields that are allowed, which fill `bytes`. Its keys are equal for most
/// of their length, are in the wrong order, and are not ASCII.
pub fn wide(bytes: usize) -> String {
    let fields = MAX_JSON_NODES - 100;
    let length = bytes / fields - 12;
    let field = |at| format!("\"é{}{at:05}\":1", "k".repeat(length));
    format!("{{{}}}", (0..fields).rev().map(field).collect::<Vec<_>>().join(","))
}

/// An object of the greatest depth, which is wide at its bottom.
fn deep(bytes: usize, levels: usize) -> String {
    let around = levels * r#"{"a":}"#.len();
    let mut text = r#"{"a":"#.repeat(levels);
    text.push_str(&wide(bytes - around));
    text.push_str(&"}".repeat(levels));
    text
}

fn authorize(parameters: &str) -> String {
    let body = Call::read().body();
    let body = body.replace(r#"{"repo":"acme/shop"}"#, parameters);
    assert!(body.len() <= MAX_BODY_BYTES && body.len() > MAX_BODY_BYTES * 9 / 10);
    body
}

/// What an agent sends.
fn bodies() -> Vec<Operation> {
    const BYTES: usize = MAX_BODY_BYTES - 1_000;
    fn parsed(text: &str) -> Json {
        json::parse(text.as_bytes()).unwrap()
    }
    vec![
        operation("worst_case_json_wide_256_kib", || {
            let text = wide(BYTES);
            assert!(json::parse(text.as_bytes()).is_ok());
            move || json::parse(black_box(text.as_bytes()))
        }),
        operation("worst_case_json_numbers_256_kib", || {
            let number = format!("0.{}", "1234567".repeat(3));
            let text = format!("[{}]", vec![number; MAX_JSON_NODES - 1].join(","));
            assert!(json::parse(text.as_bytes()).is_ok() && text.len() < MAX_BODY_BYTES);
            move || json::parse(black_box(text.as_bytes()))
        }),
        operation("worst_case_json_escapes_256_kib", || {
            let text = format!("[\"{}\"]", r"\ud83d\ude00".repeat(BYTES / 12));
            assert!(json::parse(text.as_bytes()).is_ok());
            move || json::parse(black_box(text.as_bytes()))
        }),
        operation("worst_case_canonical_256_kib", || {
            let value = parsed(&format!("[\"{}\"]", r"\u0001".repeat(BYTES / 6)));
            move || black_box(&value).canonical()
        }),
        operation("worst_case_canonical_numbers_256_kib", || {
            let number = format!("0.{}", "1234567".repeat(3));
            let value = parsed(&format!("[{}]", vec![number; MAX_JSON_NODES - 1].join(",")));
            move || black_box(&value).canonical()
        }),
        operation("worst_case_call_256_kib", || {
            let body = authorize(&wide(BYTES));
            assert!(call::parse(body.as_bytes(), TENANT).is_ok());
            move || call::parse(black_box(body.as_bytes()), TENANT)
        }),
        operation("worst_case_hop_256_kib", || {
            let mut command = Call::read().command();
            command.call.input = parsed(&wide(BYTES));
            let hop = |command: &GateCommand| {
                LaneRequest::decode(&LaneRequest::Call(Cow::Borrowed(command)).encode())
            };
            assert_eq!(hop(&command), Ok(LaneRequest::Call(Cow::Borrowed(&command))));
            move || hop(black_box(&command))
        }),
        operation("worst_case_shield_256_kib", || {
            let text = shield::worst_case(BYTES);
            let (shield, value) = (Shield::new(gateward_policies::bundle().shield), parsed(&text));
            move || {
                shield.inspect(
                    TENANT,
                    &ValueKey::new([7; 16]),
                    ("", black_box(&value), &Json::Null),
                    None,
                )
            }
        }),
        operation("worst_case_cedar_input_256_kib", || {
            let value = parsed(&wide(BYTES));
            assert!(input::convert(&value, None).is_ok());
            move || input::convert(black_box(&value), None)
        }),
        operation("worst_case_cedar_set_256_kib", || {
            let items = MAX_JSON_NODES / 2 - 10;
            let item = |at| format!("[\"{}{at:05}\"]", "k".repeat(BYTES / items - 12));
            let text = format!(
                r#"{{"a":[{}]}}"#,
                (0..items).rev().map(item).collect::<Vec<_>>().join(",")
            );
            let value = parsed(&text);
            assert!(input::convert(&value, None).is_ok());
            move || input::convert(black_box(&value), None)
        }),
        operation("worst_case_mcp_message_256_kib", || {
            let (body, headers) = message(&wide(BYTES));
            assert!(message::receive(body.as_bytes(), &headers).is_ok());
            move || message::receive(black_box(body.as_bytes()), &headers)
        }),
        operation("worst_case_mcp_rewrite_256_kib", || rewrite(wide(BYTES), "k")),
        operation("worst_case_redact_deep_256_kib", || {
            rewrite(deep(BYTES, MAX_JSON_DEPTH - 4), "b")
        }),
        operation("worst_case_redact_all_256_kib", || {
            let item = format!(r#"{{"b":"{}"}}"#, "x".repeat(38));
            rewrite(format!(r#"{{"a":[{}]}}"#, vec![item; MAX_JSON_NODES / 2 - 20].join(",")), "b")
        }),
        operation("worst_case_http_redact_256_kib", || {
            let request = HttpRequest {
                method: "POST".to_owned(),
                path: "/a".to_owned(),
                query: "b=%62&".repeat(URL_BYTES / 6),
                body: Some(parsed(&wide(BYTES))),
            };
            let names: Vec<String> = (0..64).map(|at| format!("name-{at}")).collect();
            move || http_tool::redact(&mut black_box(&request).clone(), "/a", &names, nothing())
        }),
    ]
}

/// A call in the stateless era, with the most `Mcp-Param` headers that are allowed. Each repeats the last argument.
fn message(arguments: &str) -> (String, Headers) {
    let last = arguments.rfind('}').unwrap();
    let arguments = format!("{},\"z\":42}}", &arguments[..last]);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    assert!(body.len() <= MAX_BODY_BYTES);
    let headers = Headers {
        protocol_version: Some("2026-07-28".to_owned()),
        method: Some("tools/call".to_owned()),
        name: Some("t".to_owned()),
        parameters: vec![("n".to_owned(), "42.0".to_owned()); 32],
    };
    (body, headers)
}

/// The changes to a message before it is forwarded.
fn rewrite(arguments: String, name: &'static str) -> impl Fn() -> String {
    let (body, headers) = message(&arguments);
    let mut received = message::receive(body.as_bytes(), &headers).unwrap();
    let message = received.messages.remove(0);
    let keys = MacKeys::new("0123456789abcdef0123456789abcdef", None).unwrap();
    let names = [name.to_owned()];
    move || {
        let seal = Seal { keys: &keys, tenant: TENANT, agent: "a", server: "s", action: &[] };
        let mut removed = Removed::default();
        forward::rewrite(black_box(&message), &names, nothing(), &seal, &mut removed).unwrap()
    }
}

/// What a server sends.
fn results() -> Vec<Operation> {
    const BYTES: usize = DEFAULT_MAX_RESULT_BYTES as usize;
    vec![
        operation("worst_case_raw_object_4096_kib", || {
            let length = BYTES / MAX_RAW_PARTS - 12;
            let field = |at| format!("\"{}{at:05}\":1", "k".repeat(length - 5));
            let fields: Vec<String> = (0..MAX_RAW_PARTS).rev().map(field).collect();
            let text = format!("{{{}}}", fields.join(","));
            let written = RawObject::parse(&text).unwrap().write();
            assert_eq!(written, text);
            move || RawObject::parse(black_box(&text)).map(|object| object.write())
        }),
        operation("worst_case_raw_items_4096_kib", || {
            let item = format!("[{}1]", "1,".repeat(BYTES / MAX_RAW_PARTS / 2 - 3));
            let text = format!("[{}]", vec![item; MAX_RAW_PARTS].join(","));
            assert!(raw::items(&text).is_some());
            move || raw::items(black_box(&text)).map(|items| serde_json::to_string(&items))
        }),
        operation("worst_case_sse_events_4096_kib", || {
            let bytes = b":\n\n".repeat(BYTES / 3);
            move || read_events(black_box(&bytes), 64 * 1024)
        }),
        operation("worst_case_sse_pieces_4096_kib", || {
            let bytes = [b"data:".as_slice(), &b"x".repeat(BYTES - 7), b"\n\n"].concat();
            assert_eq!(read_events(&bytes, 16), 1);
            move || read_events(black_box(&bytes), 16)
        }),
        operation("worst_case_sse_lines_4096_kib", || {
            let bytes = [b"data\r\n".repeat(BYTES / 6 - 1).as_slice(), b"\r\n"].concat();
            assert_eq!(read_events(&bytes, 64 * 1024), 1);
            move || read_events(black_box(&bytes), 64 * 1024)
        }),
        operation("worst_case_listing_4096_kib", || {
            let result = listing(BYTES);
            let page = move || {
                let result = RawObject::parse(black_box(&result)).unwrap();
                Page::read(Listed::Tools, &result).unwrap().candidates().len()
            };
            assert_eq!(page(), MAX_CANDIDATES);
            page
        }),
        operation("worst_case_manifest_4096_kib", || {
            let result = RawObject::parse(&listing(BYTES)).unwrap();
            let tools = raw::items(result.get("tools").unwrap()).unwrap();
            let tools = tools.into_iter().map(ToOwned::to_owned).collect();
            let discovered =
                Discovered { tools, resources: false, prompts: false, instructions: None };
            move || ToolManifest::of_server(black_box(&discovered))
        }),
    ]
}

fn read_events(bytes: &[u8], piece: usize) -> usize {
    let mut splitter = Splitter::default();
    let mut events = 0;
    for piece in bytes.chunks(piece) {
        for event in splitter.push(piece, bytes.len()).unwrap() {
            let event = Event::read(&event).unwrap();
            events += usize::from(!event.with(event.data.as_deref()).is_empty());
        }
    }
    assert!(sse::is_stream(sse::EVENT_STREAM));
    events
}

/// The most tools that are allowed, each with patterns that are expensive to check.
fn listing(bytes: usize) -> String {
    let tool = |at: usize| {
        let pattern = r"[^\\d]{1,20}\\p{L}";
        let text = "d".repeat(bytes / MAX_CANDIDATES - 200);
        format!(
            r#"{{"name":"t{at}","description":"{text}","inputSchema":{{"properties":{{"a":{{"pattern":"{pattern}"}},"b":{{"pattern":"{pattern}"}}}}}}}}"#
        )
    };
    let tools: Vec<String> = (0..MAX_CANDIDATES).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

/// The schemas of servers, and arguments.
fn schemas() -> Vec<Operation> {
    vec![
        // The targets of these are 20 ms and 4 MB.
        operation("worst_case_schema_compile_patterns", || compile(costliest(true))),
        operation("worst_case_schema_compile_parts", || compile(costliest(false))),
        operation("worst_case_schema_check_64_kib", || {
            let text = costliest(true);
            let check = move || schema::check(black_box(&text), &mut { cost::MAX_COST });
            assert_eq!(check(), Ok(()));
            check
        }),
        operation("worst_case_schema_apply_256_kib", || {
            let any = [r#"{"type":"string","maxLength":9}"#; 8].join(",");
            let schema = format!(r##"{{"items":{{"anyOf":[{any},{{}}]}}}}"##);
            apply(schema, format!("[{}1]", "1,".repeat(9_000)))
        }),
        operation("worst_case_schema_apply_pattern_256_kib", || {
            let schema = r#"{"items":{"pattern":"^(?:[a-c]|[b-d]|[c-e]){0,40}$"}}"#;
            let item = format!("\"{}\"", "abcde".repeat(5));
            apply(schema.to_owned(), format!("[{}]", vec![item; 9_000].join(",")))
        }),
        operation("worst_case_schema_apply_references_256_kib", || {
            let schema = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"b":{"$ref":"#"}}}],"additionalProperties":{"items":{"type":"integer"}}}"##;
            let fields: Vec<String> = (0..4_900).map(|at| format!("\"{at:045}\":[1]")).collect();
            apply(schema.to_owned(), format!("{{{}}}", fields.join(",")))
        }),
    ]
}

/// The most expensive schema that is accepted. It is found by adding parts while the schema is accepted.
///
/// # Panics
///
/// If there is no such schema.
#[must_use]
pub fn costliest(patterns: bool) -> String {
    let of = |parts: usize, text: usize| {
        let pattern = r#"{"pattern":"[^\\S][\\p{L}\\p{N}x]"}"#;
        let patterns = if patterns { [pattern; 3].join(",") + "," } else { String::new() };
        let parts = (0..parts).map(|at| format!(r#""p{at:03}":{{"type":"string"}}"#));
        format!(
            r#"{{"description":"{}","allOf":[{patterns}true],"properties":{{{}}}}}"#,
            "d".repeat(text),
            parts.collect::<Vec<_>>().join(",")
        )
    };
    let fits = |parts: &usize| schema::check(&of(*parts, 0), &mut { cost::MAX_COST }).is_ok();
    let parts = (1..1_000).take_while(fits).last().unwrap();
    let parts = parts - MAX_SCHEMA_BYTES / 2 / 64 / 60 - 1;
    of(parts, MAX_SCHEMA_BYTES / 2)
}

fn compile(schema: String) -> impl Fn() -> bool {
    let compile = move || Schema::compile(black_box(&schema)).is_ok();
    assert!(compile());
    compile
}

fn apply(schema: String, arguments: String) -> impl Fn() -> bool {
    assert!(arguments.len() <= MAX_BODY_BYTES, "{}", arguments.len());
    let schema = Schema::compile(&schema).unwrap();
    let arguments = json::parse(arguments.as_bytes()).unwrap();
    let refused = schema.check(&arguments).err().unwrap_or_default();
    assert!(!refused.contains("too long"), "{refused}");
    move || schema.check(black_box(&arguments)).is_ok()
}

/// Globs, URLs and headers.
fn texts() -> Vec<Operation> {
    vec![
        operation("worst_case_globs_192_kib", || {
            let glob: Glob = format!("*{}b*", "a".repeat(95)).parse().unwrap();
            let globs = vec![glob; gateward_core::bounds::MAX_LIST_ENTRIES];
            let names: Vec<String> = vec!["a".repeat(192); MAX_CANDIDATES];
            let matches = move || {
                let any = |name: &&String| globs.iter().any(|glob| glob.matches(name));
                black_box(&names).iter().filter(any).count()
            };
            assert_eq!(matches(), 0);
            matches
        }),
        operation("worst_case_url_16_kib", || {
            // Every literal except the last one matches if case is ignored.
            let route = |at| HttpRoute {
                method: "GET".to_owned(),
                path: format!("{}/{at}", "/A".repeat(MAX_ROUTE_SEGMENTS - 1)),
                tool: "t".to_owned(),
            };
            let any = |at| format!("/{{p{at}}}");
            let any: String = (0..MAX_ROUTE_SEGMENTS).map(any).collect();
            let mut routes: Vec<HttpRoute> = (0..MAX_ROUTES).map(route).collect();
            routes[0].path = any;
            let request = HttpRequest {
                method: "GET".to_owned(),
                path: "/%61".repeat(MAX_ROUTE_SEGMENTS),
                query: "%61=%62&".repeat(URL_BYTES / 8),
                body: None,
            };
            assert!(http_tool::resolve(&routes, &request).is_ok());
            move || http_tool::resolve(&routes, black_box(&request))
        }),
        operation("worst_case_target_2_kib", || {
            let text = format!("https://example.com/{}", "é".repeat(MAX_TARGET_BYTES / 2 - 20));
            assert!(Target::parse(&text, false).is_ok());
            move || Target::parse(black_box(&text), false)
        }),
        operation("worst_case_extract_1024_kib", || {
            let text = provenance::worst_case_text();
            move || provenance::extract(black_box(&text))
        }),
        operation("worst_case_headers_128_kib", || {
            let names: Vec<String> = (0..HEADER_BYTES / 20).map(|at| format!("h{at:05}")).collect();
            let mut fields = vec![("connection".to_owned(), names.join(","))];
            fields.extend(names.iter().map(|name| (name.replace('h', "x"), "v".to_owned())));
            let passed = headers::to_caller(fields.clone(), Caches::All);
            assert_eq!(passed.len(), names.len());
            move || headers::to_caller(black_box(&fields).clone(), Caches::All)
        }),
    ]
}
