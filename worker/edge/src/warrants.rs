//! Warrants of requests: reading them, and judging them with the isolate's cache of verified chains.

use gateward_core::call::command::GateCommand;
use gateward_core::gate::warrant::{ANY_TOLERANCE, agent_key};
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::{self, Call, Carried, Judged};

use crate::app::App;
use crate::http::Request;
use crate::io;

/// The warrant of a request's headers.
pub fn in_headers(request: &Request) -> Option<Carried> {
    Carried::in_headers(|name| request.header(name).map(str::to_owned))
}

/// Keeps the chain of a caller without a credential, after the lane has verified the proof. A new chain is verified once
/// more for that. If it was held until the lane answers, strangers could fill the memory with chains.
pub fn keep_chain(request: &Request, app: &App, command: &GateCommand) {
    if command.located
        && let Some(Carried { judged: Judged::Later(presented), .. }) = in_headers(request)
    {
        let cache = &mut app.settings.engine.chains().borrow_mut();
        let caller = (agent_key(command), io::now_ms() / 1_000);
        // If the chain has expired meanwhile, it need not be kept.
        let _ = warrant::keep_chain(&presented, caller, cache);
    }
}

/// Judges the warrant of a call whose tool is known, and adds it to the command. The lane checks the rest. The worker
/// judges, because a lane serves one call at a time. One exception: the lane judges chains that are longer than usual,
/// because only the lane knows whether the tenant accepts them.
pub fn judge(app: &App, command: &mut GateCommand, carried: Option<Carried>) {
    let Some(mut carried) = carried else { return };
    // Without a credential, the proof must be verified before the lane is woken.
    if let (false, Judged::Later(presented)) = (command.located, &carried.judged)
        && presented.links() > DEFAULT_MAX_LINKS
    {
        command.warrant = Some(carried);
        return;
    }
    let (call, now_s) = (&command.call, io::now_ms() / 1_000);
    let (server, tool, input) = (call.server.as_str(), call.tool.as_str(), &call.input);
    let call = Call { server, tool, input, now_s, agent_key: agent_key(command) };
    carried.judge(&call, ANY_TOLERANCE, &mut app.settings.engine.chains().borrow_mut());
    command.warrant = Some(carried);
}
