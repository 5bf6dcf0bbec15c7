//! Waiting for promises of the runtime, and for time to pass.
//!
//! What an instance of the module waits for shares one closure. `JsFuture` would make two for each promise, and register
//! each with the garbage collector, which takes longer than the rest of a wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::Closure;

use crate::io;

type Settle = Closure<dyn Fn(u32, bool, JsValue)>;

thread_local! {
    static WAITING: RefCell<Waiting> = RefCell::default();
    /// What JavaScript calls. After a trap, the closure of the instance before does nothing but throw.
    static SETTLE: Settle = Closure::new(settle);
}

/// What is waited for, by number.
#[derive(Default)]
struct Waiting {
    last: u32,
    places: HashMap<u32, Place>,
}

#[derive(Default)]
struct Place {
    waker: Option<Waker>,
    result: Option<Result<JsValue, JsValue>>,
}

/// Notes the result of what has this number, unless nobody waits for it any more.
fn settle(number: u32, is_resolved: bool, value: JsValue) {
    let waker = WAITING.with_borrow_mut(|waiting| {
        let place = waiting.places.get_mut(&number)?;
        place.result = Some(if is_resolved { Ok(value) } else { Err(value) });
        place.waker.take()
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The result of a promise.
pub struct Settled(u32);

impl Settled {
    /// Calls `begin` with a number and the function that takes its result.
    fn begin<T>(begin: impl FnOnce(u32, &JsValue) -> T) -> (Self, T) {
        let number = WAITING.with_borrow_mut(|waiting| {
            waiting.last = waiting.last.wrapping_add(1);
            waiting.places.insert(waiting.last, Place::default());
            waiting.last
        });
        let settled = Self(number);
        let begun = SETTLE.with(|settle| begin(number, settle.as_ref()));
        (settled, begun)
    }
}

impl Future for Settled {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        WAITING.with_borrow_mut(|waiting| {
            let Some(place) = waiting.places.get_mut(&self.0) else { return Poll::Pending };
            match place.result.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    place.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        // The place is dropped after the borrow has ended: whatever a value does when it is dropped may wait, too.
        drop(WAITING.with_borrow_mut(|waiting| waiting.places.remove(&self.0)));
    }
}

/// The result of a promise. An error also if there is no promise.
pub async fn settled(promise: Result<Promise, JsValue>) -> Result<JsValue, JsValue> {
    let promise = promise?;
    let (settled, ()) = Settled::begin(|number, settle| io::when_settled(&promise, number, settle));
    settled.await
}

/// Time that passes. Dropping it ends the timer.
pub struct Pause {
    over: Settled,
    timer: JsValue,
}

impl Pause {
    pub fn new(ms: u64) -> Self {
        let begin = |number, settle: &JsValue| io::begin_pause(ms as f64, number, settle);
        let (over, timer) = Settled::begin(begin);
        Self { over, timer }
    }
}

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.over).poll(context).map(drop)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        io::end_pause(&self.timer);
    }
}
