//! The context of a request, which ends with its caller's connection unless something holds it.

use futures_channel::oneshot::{self, Sender};

use crate::app::App;

/// Keeps the request's context alive until this is dropped, even if the caller disconnects. For a call, it begins before
/// the lane decides: one that was allowed, and used up an approval or a part of a limit, must have an outcome.
pub struct Hold {
    /// Nothing is ever sent. The receiver ends when this is dropped.
    _until_dropped: Sender<()>,
}

impl Hold {
    pub fn new(app: &App) -> Self {
        let (until_dropped, dropped) = oneshot::channel();
        app.context.wait_until(async move {
            // That nothing was sent is no error here.
            let _ = dropped.await;
        });
        Self { _until_dropped: until_dropped }
    }
}
