"""Edgewise with no planner in it: requests are read, opened and digested, and forwarded as they came.

It prints where it listens; settings come from the environment. What it spends on long bodies is what bytes cost.
"""

from proxy.app import create_app
from proxy.server import Server, configure
from proxy.settings import Settings


def main() -> None:
    settings = Settings.load(port=0)
    Server(configure(settings, create_app(settings)), lambda url: print(url, flush=True)).run()


if __name__ == "__main__":
    main()
