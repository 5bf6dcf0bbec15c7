//! The bytes of every message, pinned, and which messages are refused.

use super::*;
use crate::approval::{Approval, ApprovalInput, ApprovalStatus, ChangeStep, Verdict};
use crate::call;
use crate::call::command::Purpose;
use crate::credential::signature::SignatureNonce;
use crate::gate::proxy::Untrusted;
use crate::gate::{Effect, FoundInResult, LaneAction, ListCommand, ObservedResult};
use crate::json::Json;
use crate::limit::{Calendar, Window};
use crate::provenance::Observed;
use crate::receipt::Ending;
use crate::registry::{ChangedKey, Settings, TenantStatus};
use crate::shield::{Mode, Modes, Noted};
use crate::taint::TaintExplanation;
use crate::trace::TraceId;
use crate::trust::SourceTrust;

fn text(text: &str) -> String {
    text.to_owned()
}

fn command() -> GateCommand {
    let body = br#"{"agent":{"id":"bot","environment":"prod"},
            "tool_call":{"tool":"s","action":"x","resource":"r","mutates_state":true,
              "parameters":{"a":[null,true,-1,0.5,"t"]}},
            "context":{"source_trust":"semi_trusted_customer","contains_sensitive_data":true},
            "request_id":"q","approval_id":"p","user":{"id":"u","role":"v"},
            "trace":{"run_id":"w","root_trust_level":"unknown"},
            "nonce":"n","timestamp":"2026-01-01T00:00:00Z","dry_run":true}"#;
    GateCommand {
        tenant: text("t"),
        lane: 7,
        key_id: text("k"),
        secret_hash: [1; 32],
        located: true,
        http_request_id: text("h"),
        trace_id: TraceId::new([2; 16]),
        source_address: Some([192, 0, 2, 7].into()),
        signed: true,
        run_credential: true,
        forwarded: true,
        signature_nonce: Some(SignatureNonce { nonce: text("y"), created_ms: 1 }),
        purpose: Purpose::Forward,
        session: Some(text("z")),
        parameters: Vec::new(),
        beside: Json::Null,
        warrant: None,
        call: call::parse(body, "t").unwrap().0,
    }
}

fn tenant() -> TenantRecord {
    TenantRecord {
        status: TenantStatus::Active,
        epoch: 3,
        settings: Settings {
            risk_denials: Some(4),
            risk_window_s: None,
            risk_quiet_s: Some(60),
            taint_s: Some(61),
            grace_read_s: Some(64),
            grace_write_s: None,
            grace_high_risk_s: Some(65),
            warrant_max_links: Some(8),
            warrant_proof_windows: None,
            warrant_reads_once: Some(true),
            warrant_required: Some(false),
            warrant_alone_trust: None,
            log_public: None,
            shield: Some(Modes { secret: Some(Mode::Redact), ..Modes::default() }),
        },
        lanes: Some(2),
        rows_per_day: None,
        bytes_per_day: Some(63),
        destinations: None,
        shared_limits: [].into(),
    }
}

fn taint() -> TaintExplanation {
    TaintExplanation {
        call: None,
        ends_at: text("e"),
        last_at: text("l"),
        servers: vec![text("s")],
        since: text("b"),
    }
}

fn approval() -> Approval {
    Approval {
        approval_id: text("p"),
        decision_id: text("d"),
        agent: text("bot"),
        server: text("s"),
        tool: text("x"),
        resource: text("r"),
        user_id: text("u"),
        run_id: text("w"),
        assigned: true,
        session: None,
        route: Some((text("GET"), text("/"))),
        source_trust: SourceTrust::Unknown,
        taint: None,
        provenance: None,
        warrant: None,
        reason: text("why"),
        matched_policies: vec![text("m")],
        status: ApprovalStatus::Pending,
        revision: 1,
        approver_groups: Vec::new(),
        action_hash: text("h"),
        edited_action_hash: None,
        edited_by: None,
        approvers: Vec::new(),
        closed_by: None,
        comment: None,
        tampering: 0,
        used_by: None,
        created_at_ms: 1,
        expires_at_ms: 2,
        approved_at_ms: None,
        closed_at_ms: None,
    }
}

/// Bytes in hex, the last of them as text.
fn pin(bytes: &str, text: &str) -> String {
    [bytes, &hex::encode(text)].concat()
}

/// Every request, with the bytes of this version in hex. The order is that of the enum.
fn requests() -> Vec<(LaneRequest<'static>, String)> {
    let decide = DecideCommand {
        tenant: text("t"),
        lane: 7,
        approval_id: text("p"),
        administrator: text("ada"),
        key_id: text("k"),
        issued_by: Some(text("i")),
        http_request_id: text("h"),
        groups: vec![text("g")],
        epoch: 3,
        verdict: Verdict::Approve { edit: Some(text("{}")) },
        comment: Some(text("c")),
        action_hash: None,
        if_match: Some(text("1")),
    };
    let outcome = OutcomeCommand {
        tenant: text("t"),
        lane: 7,
        agent: text("bot"),
        server: text("s"),
        tool: text("x"),
        decision_id: text("d"),
        decision_hash: text("h"),
        status: 200,
        bytes: 300,
        duration_ms: 12,
        result_sha256: text("r"),
        ending: Ending::TimedOut,
        effect: Effect::Succeeded,
        untrusted: Some(Untrusted {
            run: Some(text("w")),
            period_ms: 1_000,
            instructions_sha256: None,
        }),
        observed: Some(ObservedResult {
            run: text("w"),
            values: Observed { key: 1, trusted: vec![2], untrusted: vec![3], incomplete: true },
        }),
        found: Some(FoundInResult { noted: Noted::default(), blocked: true }),
    };
    let taint = TaintCommand {
        tenant: text("t"),
        lane: 7,
        agent: text("bot"),
        server: text("s"),
        run: None,
        period_ms: 1_000,
    };
    let list = ListCommand {
        tenant: text("t"),
        lane: 7,
        agent: text("bot"),
        server: text("s"),
        method: text("l"),
        observed: ObservedResult {
            run: text("w"),
            values: Observed { key: 1, incomplete: true, ..Observed::default() },
        },
    };
    let carry_out = AgentCommand {
        tenant: text("t"),
        lane: 7,
        agent: text("bot"),
        action: LaneAction::Untaint,
        administrator: text("ada"),
        epoch: 3,
    };
    let change = ChangeCommand {
        tenant: text("t"),
        lane: 0,
        administrator: text("ada"),
        key_id: text("k"),
        epoch: 3,
        action_hash: text("h"),
        step: ChangeStep::Use { approval_id: text("p"), request_id: text("q") },
    };
    let push = EpochPush {
        from: 3,
        epoch: 4,
        keys: vec![
            ChangedKey::Tenant,
            ChangedKey::Tool(text("s/x")),
            ChangedKey::Warrants,
            ChangedKey::All,
        ],
    };
    let pending = PendingPushes { tenant: text("t"), lanes: vec![0, 7], epoch: 4 };
    let calendar = Calendar { window: Window::Day, time_zone: text("UTC") };
    let lease = LeaseCommand {
        tenant: text("t"),
        counter: text("l"),
        subject: text("*"),
        terms: Terms::Sum { max: Amount::whole(9), calendar },
        ask: Ask {
            lane: 7,
            lanes: 8,
            revision: 5,
            number: 300,
            granted: Amount::whole(2),
            returned: Amount::whole(1),
            free: Amount::ZERO,
            needs: vec![Amount::whole(1)],
        },
    };
    let request = CountRequest {
        window: text("w"),
        key: 300,
        width_ms: 1_000,
        amount: Some(Amount::whole(1)),
    };
    vec![
        (
            LaneRequest::Call(Cow::Owned(command())),
            pin(
                "1200017407016b01010101010101010101010101010101010101010101010101010101010101\
                0101016801020202020202020202020202020202020100c0000207010101010179010101017a00000003626f740470726f6401730178017201060101\
                610505000101020103000000000000e03f040174000201010171010170017501760177010501\
                016e0180a0d5edee6601596f262c1c56b820c5ce78a93b71693cd6eea4a26eeeac0efc5b\
                b73e4691423aeaf49919b9c6744bd3a4a6a5b55c8359f608f5ed471fdfe97ca34d437fe7549900",
                "",
            ),
        ),
        (
            LaneRequest::DecideApproval(Cow::Owned(decide)),
            pin("1201017407017003616461016b0101690168010167030001027b7d01016300010131", ""),
        ),
        (
            LaneRequest::RecordOutcome(outcome),
            pin(
                "120201740703626f740173017801640168c801ac020c0172030001010177e8070001017701080200000000000000080300000000000000013a",
                r#"{"noted":{"findings":[],"truncated":false},"blocked":true}"#,
            ),
        ),
        (LaneRequest::Taint(taint), pin("120301740703626f74017300e807", "")),
        (LaneRequest::CarryOut(carry_out), pin("120401740703626f74010361646103", "")),
        (LaneRequest::SettleChange(change), pin("120501740003616461016b0301680101700171", "")),
        (LaneRequest::TakeEpoch(Cow::Owned(push)), pin("1206030404000403732f780607", "")),
        (LaneRequest::KeepPushes(pending), pin("1207017402000704", "")),
        (LaneRequest::ReadApproval { approval_id: text("p") }, pin("12080170", "")),
        (
            LaneRequest::ReadContainment { agent: text("bot"), tenant: tenant() },
            pin(
                "120903626f748103",
                r#"{"status":"active","epoch":3,"risk_denials":4,"risk_window_s":null,"risk_quiet_s":60,"taint_s":61,"grace_read_s":64,"grace_write_s":null,"grace_high_risk_s":65,"warrant_max_links":8,"warrant_proof_windows":null,"warrant_reads_once":true,"warrant_required":false,"warrant_alone_trust":null,"log_public":null,"shield":{"secret":"redact"},"lanes":2,"rows_per_day":null,"bytes_per_day":63}"#,
            ),
        ),
        (LaneRequest::ReadChainEnds, pin("120a", "")),
        (LaneRequest::ReadRow { seq: 300 }, pin("120bac02", "")),
        (LaneRequest::ReadRows { from: 301 }, pin("120cad02", "")),
        (LaneRequest::ReadBooks { names: vec![text("b")] }, pin("120d010162", "")),
        (
            LaneRequest::Lease(Cow::Owned(lease)),
            pin("120e0174016c012a0201390203555443070805ac02013201310130010131", ""),
        ),
        (
            LaneRequest::GiveBack {
                counter: text("l"),
                subject: text("*"),
                number: 300,
                granted: Amount::whole(2),
            },
            pin("120f016c012aac020132", ""),
        ),
        (LaneRequest::ReadPools { subjects: vec![text("u")] }, pin("1210010175", "")),
        (
            LaneRequest::CountCall { entry: text("e"), request: request.clone() },
            pin("121101650177ac02e807010131", ""),
        ),
        (
            LaneRequest::Withdraw { entry: text("e"), request },
            pin("121201650177ac02e807010131", ""),
        ),
        (
            LaneRequest::KeepCheckpoint(LaneCheckpoint {
                tenant: text("t"),
                of_lane: 7,
                note: text("n"),
                first: 300,
                pruned_through: 301,
            }),
            pin("1213017407016eac02ad02", ""),
        ),
        (LaneRequest::IncludeEvents { tenant: text("t") }, pin("12140174", "")),
        (LaneRequest::AwaitCheckpoint { seq: 300, wait_ms: 301 }, pin("1215ac02ad02", "")),
        (LaneRequest::ObserveList(list), pin("121601740703626f740173016c017701000001", "")),
    ]
}

/// Every reply with its pinned form.
fn replies() -> Vec<(LaneReply, String)> {
    let link = |seq, hash| ChainHead { seq, hash: text(hash) };
    let input = ApprovalInput { asked: Some(text("{}")), edited: None };
    let granted = Granted {
        number: 300,
        ends_at_ms: 301,
        granted: Amount::whole(2),
        returned: Amount::whole(1),
        back: Amount::ZERO,
        left: Amount::ZERO,
        overdrawn: false,
        retry_after_s: Some(5),
    };
    vec![
        (LaneReply::Done, pin("1200", "")),
        (
            LaneReply::from(Problem::new(ProblemCode::JournalFull, "full")),
            pin("12010c6a6f75726e616c5f66756c6c0466756c6c", ""),
        ),
        (LaneReply::ApprovalId(text("p")), pin("12020170", "")),
        (
            LaneReply::Approval(Some(HeldApproval { approval: approval(), input })),
            pin(
                "1203a704",
                r#"{"approval":{"approval_id":"p","decision_id":"d","agent":"bot","server":"s","tool":"x","resource":"r","user_id":"u","run_id":"w","assigned":true,"session":null,"route":["GET","/"],"source_trust":"unknown","reason":"why","matched_policies":["m"],"status":"pending","revision":1,"approver_groups":[],"action_hash":"h","edited_action_hash":null,"edited_by":null,"approvers":[],"closed_by":null,"comment":null,"tampering":0,"used_by":null,"created_at_ms":1,"expires_at_ms":2,"approved_at_ms":null,"closed_at_ms":null},"input":{"asked":"{}","edited":null}}"#,
            ),
        ),
        (
            LaneReply::Containment(Containment {
                quarantined: true,
                risk_steps: 2,
                taint: Some(taint()),
            }),
            pin(
                "120465",
                r#"{"quarantined":true,"risk_steps":2,"taint":{"ends_at":"e","last_at":"l","servers":["s"],"since":"b"}}"#,
            ),
        ),
        (
            LaneReply::ChainEnds(ChainEnds { head: link(300, "h"), pruned_through: link(0, "g") }),
            pin("1205ac020168000167", ""),
        ),
        (LaneReply::Row(Some(text("{}"))), pin("120601027b7d", "")),
        (LaneReply::Rows(text("[]")), pin("1207025b5d", "")),
        (LaneReply::Books(vec![text("[]")]), pin("120801025b5d", "")),
        (LaneReply::Leased(Some(granted)), pin("120901ac02ad020132013101300130000105", "")),
        (
            LaneReply::Returned(Some(Returned { number: 300, returned: Amount::whole(1) })),
            pin("120a01ac020131", ""),
        ),
        (LaneReply::Pools(vec![(text("u"), text("{}"))]), pin("120b010175027b7d", "")),
        (LaneReply::Counted(Counted { count: 2, sum: Amount::whole(1) }), pin("120c020131", "")),
        (LaneReply::PublishedThrough(300), pin("120dac02", "")),
    ]
}

/// The tag of a request. A variant that is added does not compile here until it has a number, and
/// then the test below demands its bytes.
fn request_tag(request: &LaneRequest<'_>) -> u8 {
    match request {
        LaneRequest::Call(_) => LaneRequest::CALL_TAG,
        LaneRequest::DecideApproval(_) => 1,
        LaneRequest::RecordOutcome(_) => 2,
        LaneRequest::Taint(_) => 3,
        LaneRequest::CarryOut(_) => 4,
        LaneRequest::SettleChange(_) => 5,
        LaneRequest::TakeEpoch(_) => 6,
        LaneRequest::KeepPushes(_) => 7,
        LaneRequest::ReadApproval { .. } => 8,
        LaneRequest::ReadContainment { .. } => 9,
        LaneRequest::ReadChainEnds => 10,
        LaneRequest::ReadRow { .. } => 11,
        LaneRequest::ReadRows { .. } => 12,
        LaneRequest::ReadBooks { .. } => 13,
        LaneRequest::Lease(_) => 14,
        LaneRequest::GiveBack { .. } => 15,
        LaneRequest::ReadPools { .. } => 16,
        LaneRequest::CountCall { .. } => 17,
        LaneRequest::Withdraw { .. } => 18,
        LaneRequest::KeepCheckpoint(_) => 19,
        LaneRequest::IncludeEvents { .. } => 20,
        LaneRequest::AwaitCheckpoint { .. } => 21,
        LaneRequest::ObserveList(_) => 22,
    }
}

fn reply_tag(reply: &LaneReply) -> u8 {
    match reply {
        LaneReply::Done => 0,
        LaneReply::Refused { .. } => 1,
        LaneReply::ApprovalId(_) => 2,
        LaneReply::Approval(_) => 3,
        LaneReply::Containment(_) => 4,
        LaneReply::ChainEnds(_) => 5,
        LaneReply::Row(_) => 6,
        LaneReply::Rows(_) => 7,
        LaneReply::Books(_) => 8,
        LaneReply::Leased(_) => 9,
        LaneReply::Returned(_) => 10,
        LaneReply::Pools(_) => 11,
        LaneReply::Counted(_) => 12,
        LaneReply::PublishedThrough(_) => 13,
    }
}

const REQUESTS: u8 = 23;
const REPLIES: u8 = 14;

/// If this fails, raise [`PROTOCOL_VERSION`] and pin the new bytes: the other end of a hop may still
/// run the code before the change.
#[test]
fn every_message_keeps_the_bytes_of_its_version() {
    let mut tags = Vec::new();
    for (request, pinned) in requests() {
        let bytes = request.encode();
        assert_eq!(hex::encode(&bytes), pinned, "{request:?}");
        assert_eq!(bytes[1], request_tag(&request), "{request:?}");
        assert_eq!(LaneRequest::decode(&bytes), Ok(request));
        tags.push(bytes[1]);
    }
    assert_eq!(tags, Vec::from_iter(0..REQUESTS));
    tags.clear();
    for (reply, pinned) in replies() {
        let bytes = reply.encode();
        assert_eq!(hex::encode(&bytes), pinned, "{reply:?}");
        assert_eq!(bytes[1], reply_tag(&reply), "{reply:?}");
        assert_eq!(LaneReply::decode(&bytes), Ok(reply));
        tags.push(bytes[1]);
    }
    assert_eq!(tags, Vec::from_iter(0..REPLIES));
}

#[test]
fn the_statuses_between_worker_and_lane_are_stable() {
    assert_eq!([DONE, OTHER_VERSION, OUTDATED, TERMINAL, NO_MEMORY], [204, 421, 425, 410, 507]);
}

#[test]
fn a_message_of_another_version_or_length_is_refused() {
    let requests = requests().into_iter().map(|(request, _)| request.encode());
    let replies = replies().into_iter().map(|(reply, _)| reply.encode());
    let decode_request = |bytes: &[u8]| LaneRequest::decode(bytes).map(drop);
    let decode_reply = |bytes: &[u8]| LaneReply::decode(bytes).map(drop);
    type Decode<'a> = &'a dyn Fn(&[u8]) -> Result<(), ProtocolError>;
    let requests = requests.map(|bytes| (bytes, &decode_request as Decode<'_>));
    let replies = replies.map(|bytes| (bytes, &decode_reply as Decode<'_>));
    for (bytes, decode) in requests.chain(replies) {
        let shown = hex::encode(&bytes);
        for version in [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1] {
            let other = [&[version], &bytes[1..]].concat();
            assert_eq!(decode(&other), Err(ProtocolError::OtherVersion(version)), "{shown}");
        }
        let trailing = [bytes.as_slice(), &[0]].concat();
        assert_eq!(decode(&trailing), Err(ProtocolError::Malformed), "{shown}");
        let cut_off = &bytes[..bytes.len() - 1];
        assert_eq!(decode(cut_off), Err(ProtocolError::Malformed), "{shown}");
    }
    for (bytes, error, says) in [
        (&b""[..], ProtocolError::Malformed, "the message is malformed"),
        // The worker of the version before this protocol sent JSON.
        (b"{}", ProtocolError::OtherVersion(b'{'), "protocol version 123 instead of 18"),
        (&[PROTOCOL_VERSION], ProtocolError::Malformed, "the message is malformed"),
        (&[PROTOCOL_VERSION, REQUESTS], ProtocolError::Malformed, "the message is malformed"),
    ] {
        assert_eq!(LaneRequest::decode(bytes), Err(error));
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn a_refusal_keeps_its_code_and_sentence() {
    let problem = Problem::new(ProblemCode::StateConflict, "it was used");
    let LaneReply::Refused { code, detail } = LaneReply::from(problem.clone()) else { panic!() };
    assert_eq!(refusal(&code, detail), Some(problem));
    assert_eq!(refusal("of_tomorrow", String::new()), None);
}
