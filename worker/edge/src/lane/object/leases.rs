//! Parts of limits that lanes share: a lane asks for them, a limit's counter object grants them.
//!
//! The calls of a lane that wait for the same limit share one request: while a request is on its way, later calls
//! wait for the next one. The lane holds the granted part for a call until the call is decided.

use std::pin::pin;
use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use gateward_core::call::command::GateCommand;
use gateward_core::lane::Lane;
use gateward_core::lane::protocol::{LaneReply, LeaseCommand};
use gateward_core::limit::Amount;
use gateward_core::limit::book::At;
use gateward_core::limit::lease::{Answer, Granted, MAX_WAITING, Need, book_name};
use gateward_core::log::{Event, Line};

use super::queue::{Queue, Told, Waiting};
use super::state::{Failure, GateLane};
use crate::io;
use crate::lane::shared_counts;
use crate::limits::RECALL_MS;
use crate::log;
use crate::time_zones::offset_s;
use crate::wait::Pause;

/// Lanes that are asked at once to give something back.
const CONCURRENT_RECALLS: usize = 32;

/// Seconds after which a call may try again if it was refused during the pause.
const RETRY_RECALL_S: u64 = 1;

/// How often one call may ask counters: once, and up to two more times if a limit was changed meanwhile.
pub const MAX_ASKS: usize = 3;

/// The answers of counters to one call. The lane holds the granted parts for the call until this is dropped.
pub struct Answers<'a> {
    lane: &'a GateLane,
    by_book: Vec<(String, Answer)>,
    /// How often the call asked.
    asks: usize,
}

impl<'a> Answers<'a> {
    pub fn new(lane: &'a GateLane) -> Self {
        Self { lane, by_book: Vec::new(), asks: 0 }
    }

    pub fn as_slice(&self) -> &[(String, Answer)] {
        &self.by_book
    }

    /// Asks for everything that a call needs. If the call has asked too often, the counters count as unavailable.
    pub async fn ask(&mut self, command: &GateCommand, lanes: u16, needs: Vec<Need>) {
        for need in &needs {
            self.drop_answer(&need.book());
        }
        self.asks += 1;
        if self.asks > MAX_ASKS {
            self.by_book.extend(needs.iter().map(|need| (need.book(), Answer::Unavailable)));
            return;
        }
        let lane = self.lane;
        let asked = needs.into_iter().map(|need| async move {
            let answer = lane.wait_for(command, lanes, &need).await;
            (need.book(), answer)
        });
        self.by_book.extend(join_all(asked).await);
    }

    fn drop_answer(&mut self, book: &str) {
        if let Some(index) = self.by_book.iter().position(|(name, _)| name == book) {
            let (name, answer) = self.by_book.swap_remove(index);
            if let Some(lane) = self.lane.lane.borrow_mut().as_mut() {
                lane.release(&name, answer);
            }
        }
    }
}

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        while let Some((name, _)) = self.by_book.last() {
            let name = name.clone();
            self.drop_answer(&name);
        }
    }
}

impl GateLane {
    /// Waits until a request has asked for this need. The first waiting call asks for all waiting calls. Then the next
    /// call asks for those that arrived meanwhile.
    async fn wait_for(&self, command: &GateCommand, lanes: u16, need: &Need) -> Answer {
        let name = need.book();
        let queue = Rc::clone(self.queues.borrow_mut().entry(name.clone()).or_default());
        let (tell, told) = oneshot::channel();
        let waiting = Waiting { amount: need.amount, revision: need.revision, tell };
        queue.waiting.borrow_mut().push_back(waiting);
        if queue.asks.replace(true) {
            match told.await {
                Ok(Told::Answer(answer)) => return answer,
                Ok(Told::Ask) => {}
                // The call that asked ended before it was answered.
                Err(oneshot::Canceled) => return Answer::Unavailable,
            }
        }
        let _turn = Turn { lane: self, name: &name, queue: &queue };
        let first = take_batch(&queue, need.revision);
        let needs: Vec<Amount> = first.iter().map(|waiting| waiting.amount).collect();
        let answers = self.ask_counter(command, lanes, need, &needs).await;
        let answers = answers.unwrap_or_else(|why| {
            let detail = format!("the limit `{}`: {}", need.counter, why.0);
            log::write(&log::line(Event::LimitNotLeased, command, detail));
            Vec::new()
        });
        let mut answers = answers.into_iter().chain(std::iter::repeat(Answer::Unavailable));
        // This call's own is the first.
        let own = answers.next().unwrap_or(Answer::Unavailable);
        for (waiting, answer) in first.into_iter().skip(1).zip(answers) {
            // A call that no longer waits does not use its part.
            if waiting.tell.send(Told::Answer(answer)).is_err()
                && let Some(lane) = self.lane.borrow_mut().as_mut()
            {
                lane.release(&name, answer);
            }
        }
        own
    }

    fn let_next_ask(&self, name: &str, queue: &Queue) {
        loop {
            let next = queue.waiting.borrow_mut().pop_front();
            let Some(Waiting { amount, revision, tell }) = next else {
                queue.asks.set(false);
                self.queues.borrow_mut().remove(name);
                return;
            };
            // It takes its own place again, as the first.
            let (own, _) = oneshot::channel();
            queue.waiting.borrow_mut().push_front(Waiting { amount, revision, tell: own });
            if tell.send(Told::Ask).is_ok() {
                return;
            }
            queue.waiting.borrow_mut().pop_front();
        }
    }

    async fn ask_counter(
        &self,
        command: &GateCommand,
        lanes: u16,
        need: &Need,
        needs: &[Amount],
    ) -> Result<Vec<Answer>, Failure> {
        let now_ms = io::now_ms();
        let (ask, held) = self.with_lane(|lane, storage| {
            lane.ask(storage, need, needs.to_vec(), (command.lane, lanes), now_ms)
        })?;
        let lease = LeaseCommand {
            tenant: command.tenant.clone(),
            counter: need.counter.to_string(),
            subject: need.subject.clone(),
            terms: need.terms.clone(),
            ask,
        };
        let granted = shared_counts::lease(&self.env, &lease).await;
        if let Some(lane) = self.lane.borrow_mut().as_mut() {
            lane.release(&need.book(), held);
        }
        let Some(granted) = granted? else {
            return Err(Failure("its time zone is unknown".to_owned()));
        };
        self.with_lane(|lane, storage| lane.take_grant(storage, need, needs, &granted, now_ms))
    }

    /// The counter object's side: grants what is left. If that is too little, it asks the other lanes to give back
    /// what they do not use, and tries once more.
    pub(super) async fn grant(&self, command: &LeaseCommand) -> Result<LaneReply, Failure> {
        let LeaseCommand { tenant, counter, subject, terms, ask } = command;
        let grant = || -> Result<Option<(Granted, bool)>, Failure> {
            let at = At { now_ms: io::now_ms(), offset_s };
            self.with_lane(|lane, storage| lane.grant(storage, subject, (terms, ask), at))
        };
        let first = match grant()? {
            Some((first, false)) => first,
            other => return Ok(LaneReply::Leased(other.map(|(granted, _)| granted))),
        };
        let (number, lanes) =
            self.with_lane(|_, storage| Lane::holders(storage, subject, ask.lane))?;
        if lanes.is_empty() {
            return Ok(LaneReply::Leased(Some(first)));
        }
        let now_ms = io::now_ms();
        if !self.recalls.borrow_mut().may_ask(subject, ask.lane, lanes.len(), now_ms) {
            // Other lanes may have parts that they do not use.
            let retry_after_s = Some(RETRY_RECALL_S);
            return Ok(LaneReply::Leased(Some(Granted { retry_after_s, ..first })));
        }
        let recalls = stream::iter(lanes).map(|(lane, granted)| async move {
            let heard = (number, granted);
            (
                lane,
                shared_counts::give_back(&self.env, (tenant, lane), (counter, subject), heard)
                    .await,
            )
        });
        let limit = Pause::new(RECALL_MS.into());
        let mut recalls = pin!(recalls.buffer_unordered(CONCURRENT_RECALLS).take_until(limit));
        while let Some((lane, returned)) = recalls.next().await {
            // A part that a lane does not give back counts as used.
            let returned = returned.unwrap_or_else(|why| {
                log::write(&Line::new(Event::LaneUnavailable, why).in_lane(tenant, lane));
                None
            });
            if let Some(returned) = returned {
                let now_ms = io::now_ms();
                self.with_lane(|_, storage| {
                    Lane::take_back(storage, subject, (lane, &returned), now_ms)
                })?;
            }
        }
        Ok(LaneReply::Leased(grant()?.map(|(granted, _)| granted)))
    }

    /// Gives back what no call uses of a lease.
    pub(super) fn give_back(
        &self,
        (counter, subject): (&str, &str),
        heard: (u64, Amount),
    ) -> Result<LaneReply, Failure> {
        let now_ms = io::now_ms();
        // The parts in an answer that is on its way belong to the calls that wait for it.
        let asks = self.queues.borrow().contains_key(&book_name(counter, subject));
        let heard = Some(heard).filter(|_| !asks);
        let returned = self.with_lane(|lane, storage| {
            lane.give_back(storage, (counter, subject), heard, now_ms)
        })?;
        Ok(LaneReply::Returned(returned))
    }
}

/// While this lives, its call asks for all waiting calls. When it is dropped, for whatever reason, the next call asks.
struct Turn<'a> {
    lane: &'a GateLane,
    name: &'a str,
    queue: &'a Queue,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lane.let_next_ask(self.name, self.queue);
    }
}

/// The calls that know this revision of the limit, a bounded number of them. The others wait on.
fn take_batch(queue: &Queue, revision: u64) -> Vec<Waiting> {
    let mut waiting = queue.waiting.borrow_mut();
    let all = std::mem::take(&mut *waiting);
    let mut batch = Vec::new();
    for one in all {
        if one.revision == revision && batch.len() < MAX_WAITING {
            batch.push(one);
        } else {
            waiting.push_back(one);
        }
    }
    batch
}
