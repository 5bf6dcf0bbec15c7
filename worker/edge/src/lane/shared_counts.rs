//! Requests about counts that the lanes of a tenant share: to the counters of limits, to the lanes that hold parts of a
//! limit, and to the windows of the tenant.

use std::borrow::Cow;

use gateward_core::lane::protocol::{LaneReply, LaneRequest, LeaseCommand};
use gateward_core::limit::Amount;
use gateward_core::limit::lease::{Granted, Returned};
use gateward_core::problem::Problem;
use gateward_core::velocity::Counted;
use gateward_core::velocity::shared::CountRequest;
use worker::Env;

use super::client::{ask, object, try_ask, unavailable_to, unexpected};
use crate::app::App;
use crate::limits::{COUNT_CALL_MS, LANE_MS, LEASE_MS, RECALL_MS};

/// Prefix of the object that counts a limit which a tenant's lanes share; tenant and counter follow.
const COUNTER_OBJECT: &str = "_limits/";

/// Prefix of the objects that hold the windows of a tenant; tenant and number follow.
const WINDOW_OBJECT: &str = "_windows/";

/// Objects for the windows of one tenant: an object answers about a thousand requests a second.
const WINDOW_OBJECTS: u64 = 32;

/// Asks a limit's counter object for parts of the limit. `None`: the limit's time zone is unknown. The error says why there
/// is no answer.
pub async fn lease(env: &Env, command: &LeaseCommand) -> Result<Option<Granted>, String> {
    let name = counter_object(&command.tenant, &command.counter);
    match try_ask(env, &name, &LaneRequest::Lease(Cow::Borrowed(command)), LEASE_MS).await? {
        LaneReply::Leased(granted) => Ok(granted),
        reply => Err(unexpected(&reply)),
    }
}

/// Asks a lane to give back what it does not use of a lease. `None`: it has no such lease. The error says why there is no
/// answer.
pub async fn give_back(
    env: &Env,
    (tenant, lane): (&str, u16),
    (counter, subject): (&str, &str),
    (number, granted): (u64, Amount),
) -> Result<Option<Returned>, String> {
    let (counter, subject) = (counter.to_owned(), subject.to_owned());
    let request = LaneRequest::GiveBack { counter, subject, number, granted };
    match try_ask(env, &object(tenant, lane), &request, RECALL_MS).await? {
        LaneReply::Returned(returned) => Ok(returned),
        reply => Err(unexpected(&reply)),
    }
}

/// Asks the object of a tenant's window for the count of other calls. The object counts this call too, unless the call's
/// name is empty. The error says why there is no answer.
pub async fn count_call(
    env: &Env,
    tenant: &str,
    entry: &str,
    request: &CountRequest,
) -> Result<Counted, String> {
    let object = window_object(tenant, request);
    let request = LaneRequest::CountCall { entry: entry.to_owned(), request: request.clone() };
    match try_ask(env, &object, &request, COUNT_CALL_MS).await? {
        LaneReply::Counted(counted) => Ok(counted),
        reply => Err(unexpected(&reply)),
    }
}

/// Tells the object of a tenant's window that a call does not count. The error says why it did not confirm that.
pub async fn withdraw(
    env: &Env,
    tenant: &str,
    entry: &str,
    request: &CountRequest,
) -> Result<(), String> {
    let object = window_object(tenant, request);
    let request = LaneRequest::Withdraw { entry: entry.to_owned(), request: request.clone() };
    match try_ask(env, &object, &request, COUNT_CALL_MS).await? {
        LaneReply::Done => Ok(()),
        reply => Err(unexpected(&reply)),
    }
}

/// The hash of the key selects the object. So all calls with one key reach the same object, and the keys of a busy window
/// are spread over objects.
fn window_object(tenant: &str, request: &CountRequest) -> String {
    format!("{WINDOW_OBJECT}{tenant}/{}", request.key % WINDOW_OBJECTS)
}

/// The counts of a limit's counter object for these subjects; for the first ones if none is named. Pairs of subjects, and
/// counts as [`gateward_core::limit::pool::Pool::parse`] reads them.
pub async fn pools(
    app: &App,
    tenant: &str,
    counter: &str,
    subjects: Vec<String>,
) -> Result<Vec<(String, String)>, Problem> {
    let name = counter_object(tenant, counter);
    match ask(app, &name, &LaneRequest::ReadPools { subjects }, LANE_MS).await? {
        LaneReply::Pools(pools) => Ok(pools),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

fn counter_object(tenant: &str, counter: &str) -> String {
    [COUNTER_OBJECT, tenant, "/", counter].concat()
}
