"""POSTs a file and prints the status: URL, token, content type, file."""

import sys

import requests

url, token, content_type, path = sys.argv[1:]
with open(path, "rb") as file:
    answer = requests.post(
        url,
        data=file.read(),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": content_type,
            "Accept": "application/json, text/event-stream",
        },
        timeout=60,
    )
print(answer.status_code)
