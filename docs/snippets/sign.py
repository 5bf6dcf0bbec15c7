"""Signs a request for Gateward and sends it: RFC 9421 with hmac-sha256, and RFC 9530.

GATEWARD_TOKEN=… GATEWARD_SIGNING_KEY=… python3 sign.py POST URL 'Name: value' … < body
"""
import base64, hashlib, hmac, os, secrets, sys, time, urllib.error, urllib.parse, urllib.request


def sign(method, url, token, signing_key, headers=None, body=b""):
    """All headers of one signed request. Sign each request anew, also if it is tried again."""
    signed = {name.lower(): value for name, value in (headers or {}).items()}
    if body:
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        signed["content-digest"] = f"sha-256=:{digest}:"
    target = urllib.parse.urlsplit(url)
    components = {"@method": method, "@path": target.path or "/", "@query": "?" + target.query, **signed}
    # gw_<tenant>.<agent>.<lane>.<key id>… or gwa_<tenant>.<key id>…
    key_id = token.split(".")[1 if token.startswith("gwa_") else 3]
    names = " ".join(f'"{name}"' for name in components)
    params = f'({names});created={int(time.time())};keyid="{key_id}";nonce="{secrets.token_hex(16)}"'
    lines = [f'"{name}": {value}' for name, value in components.items()]
    base = "\n".join([*lines, f'"@signature-params": {params}'])
    # The key is the text of the signing key: its 64 characters, not the bytes that they encode.
    mac = base64.b64encode(hmac.new(signing_key.encode(), base.encode(), hashlib.sha256).digest()).decode()
    signature = {"signature-input": f"sig1={params}", "signature": f"sig1=:{mac}:"}
    return {**signed, **signature, "authorization": f"Bearer {token}"}


if __name__ == "__main__":
    method, url, *lines = sys.argv[1:]
    headers = dict(line.split(": ", 1) for line in lines)
    body = sys.stdin.buffer.read()
    all_headers = sign(method, url, os.environ["GATEWARD_TOKEN"], os.environ["GATEWARD_SIGNING_KEY"], headers, body)
    request = urllib.request.Request(url, data=body or None, headers=all_headers, method=method)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    print(answer.status, answer.read().decode())
