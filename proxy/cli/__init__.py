"""The `edgewise` command: what it takes, what it prints, and the upstream and the agent that it brings along."""
