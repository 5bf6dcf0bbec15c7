"""Uses the client that openapi-python-client made of Gateward's description.

Its input is `{"url", "agent_token", "administrator_token", "agent", "call"}`; it prints what it got,
each receipt by the type that its kind has.
"""

import json
import sys

from gateward_client import AuthenticatedClient
from gateward_client.api.agents import create_agent
from gateward_client.api.calls import authorize
from gateward_client.api.decisions import list_decisions
from gateward_client.api.receipts import list_receipts
from gateward_client.models import (
    Agent,
    ApprovalReceiptBody,
    AuthorizeRequest,
    AuthorizeResponse,
    CreateAgent,
    DeadLetterReceiptBody,
    DecisionPage,
    DecisionReceiptBody,
    OutcomeReceiptBody,
    Problem,
    ReceiptPage,
    RegistryReceiptBody,
)


def said(body):
    """What a receipt says, by the members that its kind has."""
    match body:
        case DecisionReceiptBody():
            return f"decision {body.decision.value} {body.reason_code.value} {body.server}/{body.tool}"
        case ApprovalReceiptBody():
            return f"approval {body.change.value} {body.status.value} {body.approval_id}"
        case OutcomeReceiptBody():
            return f"outcome {body.ending.value} {body.status} {body.result_sha256}"
        case DeadLetterReceiptBody():
            return f"dead_letter {body.change.value} {body.message_id} {body.attempts}"
        case RegistryReceiptBody():
            return f"registry {body.change.value} {body.administrator}"
        case _:
            raise TypeError(f"{body!r} is no receipt's body")


def got(kind, answer):
    """An answer that must be of this type."""
    if not isinstance(answer.parsed, kind):
        raise TypeError(f"expected {kind}, got {answer.status_code}: {answer.parsed!r}")
    return answer.parsed


given = json.load(sys.stdin)
agent = AuthenticatedClient(given["url"], given["agent_token"], raise_on_unexpected_status=True)
administrator = AuthenticatedClient(given["url"], given["administrator_token"], raise_on_unexpected_status=True)

call = AuthorizeRequest.from_dict(given["call"])
decided = got(AuthorizeResponse, authorize.sync_detailed(client=agent, body=call))
decisions = got(DecisionPage, list_decisions.sync_detailed(client=agent, limit=200))
receipts = got(ReceiptPage, list_receipts.sync_detailed(client=administrator, lane=0))
wanted = CreateAgent(agent=given["agent"], environment="production")
created = got(Agent, create_agent.sync_detailed(client=administrator, body=wanted))
refused = got(Problem, create_agent.sync_detailed(client=administrator, body=wanted))

json.dump(
    {
        "decided": {"decision": decided.decision.value, "receipt": decided.receipt.receipt_id},
        "decisions": [decision.decision_id for decision in decisions.decisions],
        "receipts": [said(receipt.body) for receipt in receipts.receipts],
        "created": {"agent": created.agent, "lane": created.lane, "allowed_tools": created.allowed_tools},
        "refused": {"status": refused.status, "code": refused.code.value},
    },
    sys.stdout,
)
