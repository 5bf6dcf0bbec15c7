//! All tests of the administration that need no part of it that is private, in one program (`worker/core/tests/all.rs`).

mod administered;
mod openapi;
mod servers;
mod support;
mod webhook;
