"""The smallest agent there is: one question to OPENAI_BASE_URL, the answer and the token bill to the terminal.

Standard library only. It stands in compose.yaml for your own agent, which needs nothing but the same base URL.
"""

import json
import os
import urllib.request

BASE_URL = os.environ["OPENAI_BASE_URL"]
QUESTION = {
    "model": os.environ.get("MODEL", "gpt-4o-mini"),
    "messages": [{"role": "user", "content": "In one sentence: what does a reverse proxy do?"}],
}


def main() -> None:
    asked = urllib.request.Request(  # noqa: S310 - the base URL is the operator's own setting
        f"{BASE_URL}/chat/completions",
        data=json.dumps(QUESTION).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - as above
        print(json.load(answer)["choices"][0]["message"]["content"])
        print("Edgewise-Tokens:", answer.headers["Edgewise-Tokens"])
        print("Edgewise-Budget:", answer.headers["Edgewise-Budget"])


if __name__ == "__main__":
    main()
