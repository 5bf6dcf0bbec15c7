//! The functions of `io.js`, typed.

use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Env;
use worker::worker_sys::web_sys::{Request, Response};

/// Milliseconds since 1970. The `Date` of the crate `worker` creates an object for each reading.
pub fn now_ms() -> u64 {
    js_sys::Date::now() as u64
}

#[wasm_bindgen(module = "/src/io.js")]
extern "C" {
    pub fn describe(request: &Request, address_header: &str) -> String;

    #[wasm_bindgen(js_name = offsetSeconds)]
    pub fn offset_s(zone: &str, at_ms: f64) -> f64;

    pub fn headers(request: &Request) -> String;

    pub fn body(request: &Request, limit_ms: u32) -> Promise;

    pub fn read(request: &Request, max: u32, max_dropped: u32, limit_ms: u32) -> Promise;

    #[wasm_bindgen(catch)]
    pub fn respond(status: u16, fields: &str, body: &str) -> Result<Response, JsValue>;

    #[wasm_bindgen(catch, js_name = respond)]
    pub fn respond_bytes(status: u16, fields: &str, body: &[u8]) -> Result<Response, JsValue>;

    #[wasm_bindgen(catch, js_name = withBody)]
    pub fn with_body(
        response: &Response,
        body: &str,
        applied: Option<String>,
    ) -> Result<Response, JsValue>;

    /// `docs/openapi.json`, which core's types and routes generate.
    #[wasm_bindgen(catch)]
    pub fn description(fields: &str) -> Result<Response, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn post(env: &Env, name: &str, body: &[u8], limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn answered(env: &Env, name: &str, body: &[u8], limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn text(response: &Response, limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn bytes(response: &Response, limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn send(url: &str, fields: &str, body: &str, limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn ask(
        url: &str,
        fields: &str,
        body: &str,
        max_bytes: u32,
        limit_ms: u32,
    ) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_name = whenSettled)]
    pub fn when_settled(promise: &Promise, number: u32, settle: &JsValue);

    #[wasm_bindgen(js_name = beginPause)]
    pub fn begin_pause(ms: f64, number: u32, settle: &JsValue) -> JsValue;

    #[wasm_bindgen(js_name = endPause)]
    pub fn end_pause(timer: &JsValue);

    #[wasm_bindgen(catch)]
    pub fn query(
        env: &Env,
        binding: &str,
        statements: &Array,
        limit_ms: u32,
    ) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn size(env: &Env, binding: &str, sql: &str, limit_ms: u32) -> Result<Promise, JsValue>;

    #[wasm_bindgen(catch)]
    pub fn exec(
        sql: &JsValue,
        statement: &str,
        texts: &str,
        kinds: &[f64],
    ) -> Result<Option<Uint8Array>, JsValue>;
}

/// What `exec` in `io.js` takes and returns as the kind of a value.
pub const SQL_NULL: f64 = 0.0;
pub const SQL_INTEGER: f64 = 1.0;
pub const SQL_TEXT: f64 = 2.0;
