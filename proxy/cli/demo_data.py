"""The demo's story: forty turns of one incident. Each is a question, the call that answers it, and what it shows."""

from typing import NamedTuple

MODEL = "gpt-4o"
RULE = "File every ticket and every update under incident 4417, and never restart a replica without asking first."
SYSTEM = (
    "You are the engineer on call for the payments platform. Work through the incident with the tools you have, one "
    f"question at a time. Cite the ids of what you rely on. {RULE}"
)
FIRST_SIZE = 500  # characters of the first result
GROWTH = 1.085  # by which the results grow from turn to turn: an investigation widens


class Step(NamedTuple):
    asks: str
    tool: str
    arguments: dict[str, str]
    concludes: str


def size(turn: int) -> int:
    """Characters of the result in that turn, counted from 1."""
    return int(FIRST_SIZE * GROWTH ** (turn - 1))


STORY: tuple[Step, ...] = (
    Step(
        "Checkout has been slow since about nine. Find out why. What does our runbook say to look at first?",
        "get_runbook", {"name": "latency"},
        "The runbook wants the pool checked first, then a comparison with last week, before anything is rolled back.",
    ),
    Step(
        "How bad is it? Look at the latency of checkout.",
        "query_metrics", {"service": "checkout", "metric": "latency", "since": "2h"},
        "The median is steady and the 99th percentile is not: a part of the requests waits for something.",
    ),
    Step(
        "And pricing, which checkout calls for every quote?",
        "query_metrics", {"service": "pricing", "metric": "latency", "since": "2h"},
        "Pricing shows the same tail, a little earlier. It looks like the source.",
    ),
    Step(
        "What do the logs of checkout say?",
        "search_logs", {"service": "checkout", "query": "ERROR OR WARN", "since": "1h"},
        "Timeouts towards pricing after 3,000 ms, and warnings about the pool of pricing-db.",
    ),
    Step(
        "Did anybody deploy checkout this morning?",
        "list_deploys", {"service": "checkout", "since": "7d"},
        "Nothing in checkout today that would fit the time.",
    ),
    Step(
        "And pricing?",
        "list_deploys", {"service": "pricing", "since": "7d"},
        "dep_8800 of pricing went out shortly before the tail began.",
    ),
    Step(
        "Show me what dep_8800 changed.",
        "get_deploy_diff", {"deploy_id": "dep_8800"},
        "It touches the settings of the pool. That fits the warnings, but does not prove it yet.",
    ),
    Step(
        "Tell the channel where we stand.",
        "post_update", {"channel": "#inc-4417", "text": "Checkout is slow; pricing dep_8800 is suspected. Verifying."},
        "Posted under incident 4417.",
    ),
    Step(
        "Is this known? Search the tracker.",
        "search_tickets", {"query": "checkout slow", "status": "any"},
        "Similar tickets in spring, closed after the pool was widened. PAY-4417 is ours.",
    ),
    Step(
        "Which traces are the slowest?",
        "find_traces", {"service": "checkout", "min_ms": "2000", "since": "1h"},
        "In all of them most of the time is pricing-db.acquire: waiting for a connection.",
    ),
    Step(
        "Look into the database: what is slow there?",
        "inspect_database", {"cluster": "pricing-db", "view": "slow_queries"},
        "The statements themselves are quick; what is slow is getting a connection.",
    ),
    Step(
        "Who holds the connections?",
        "inspect_database", {"cluster": "pricing-db", "view": "connections"},
        "Most belong to pricing, more than its pool should allow.",
    ),
    Step(
        "Any locks?",
        "inspect_database", {"cluster": "pricing-db", "view": "locks"},
        "Locks are ordinary for this hour.",
    ),
    Step(
        "Are all pods healthy?",
        "list_pods", {"namespace": "payments"},
        "A few restarts, spread over the nodes; no pattern that would explain the tail.",
    ),
    Step(
        "Which feature flags does pricing read?",
        "list_feature_flags", {"service": "pricing"},
        "pool_v2 is among them, and it was changed this week.",
    ),
    Step(
        "Search the logs of pricing for that pool.",
        "search_logs", {"service": "pricing", "query": "pool AND pricing-db", "since": "2h"},
        "Waiting grows in steps, each time a replica starts.",
    ),
    Step(
        "How many wait for a connection, over time?",
        "query_metrics", {"service": "pricing", "metric": "pool_waiting", "since": "2h"},
        "It was near zero before dep_8800 and is not since.",
    ),
    Step(
        "Do orders pile up meanwhile?",
        "peek_queue", {"queue": "orders-pending"},
        "Yes: messages older than an hour, tried several times.",
    ),
    Step(
        "What does the runbook say about a backlog?",
        "get_runbook", {"name": "queue-backlog"},
        "Drain only when the cause is fixed, or the retries make it worse.",
    ),
    Step(
        "Is the orders service slow as well?",
        "query_metrics", {"service": "orders", "metric": "latency", "since": "2h"},
        "Its tail follows that of pricing by some minutes. It suffers, it does not cause.",
    ),
    Step(
        "Check the errors of orders.",
        "search_logs", {"service": "orders", "query": "ERROR", "since": "2h"},
        "Timeouts towards pricing again, nothing of its own.",
    ),
    Step(
        "Could the ledger be part of it?",
        "search_logs", {"service": "ledger", "query": "WARN OR ERROR", "since": "2h"},
        "The ledger is quiet apart from retries of others.",
    ),
    Step(
        "Compare dep_8799, the deploy before.",
        "get_deploy_diff", {"deploy_id": "dep_8799"},
        "It left the pool alone. The change is in dep_8800 only.",
    ),
    Step(
        "Post what we know now.",
        "post_update", {"channel": "#inc-4417", "text": "pool_waiting rises since dep_8800; orders back up behind it."},
        "Posted under incident 4417.",
    ),
    Step(
        "What would a rollback take?",
        "get_runbook", {"name": "rollback"},
        "One command, but the runbook wants a person's yes. I will not run it by myself.",
    ),
    Step(
        "Which deploys of orders are recent?",
        "list_deploys", {"service": "orders", "since": "7d"},
        "None today.",
    ),
    Step(
        "Show the slow traces of pricing itself.",
        "find_traces", {"service": "pricing", "min_ms": "1500", "since": "1h"},
        "pricing-db.acquire again, on every node alike.",
    ),
    Step(
        "Are there refunds that wait?",
        "peek_queue", {"queue": "refunds"},
        "Some, younger than the orders. They will follow.",
    ),
    Step(
        "Look at the pods of the platform namespace.",
        "list_pods", {"namespace": "platform"},
        "Nothing unusual there.",
    ),
    Step(
        "How saturated is pricing-db?",
        "query_metrics", {"service": "pricing", "metric": "saturation", "since": "7d"},
        "Higher than last week at the same hours, from this morning on.",
    ),
    Step(
        "Read the failover runbook in case we need it.",
        "get_runbook", {"name": "database-failover"},
        "One replica at a time, 90 seconds each, and only after asking.",
    ),
    Step(
        "Search tickets about the pool.",
        "search_tickets", {"query": "connection pool", "status": "any"},
        "An old one says that pool.max and the database's limit of 400 must move together.",
    ),
    Step(
        "Which flags does checkout read?",
        "list_feature_flags", {"service": "checkout"},
        "quote_cache is partly on; it hides some of the load, not the cause.",
    ),
    Step(
        "Pull the full logs of pricing around nine.",
        "search_logs", {"service": "pricing", "query": "*", "since": "4h"},
        "The first wait over budget comes minutes after dep_8800 reached its last node.",
    ),
    Step(
        "And checkout for the same time.",
        "search_logs", {"service": "checkout", "query": "*", "since": "4h"},
        "The first timeout follows the first wait in pricing. The order of events is clear.",
    ),
    Step(
        "Show the connections once more, now.",
        "inspect_database", {"cluster": "pricing-db", "view": "connections"},
        "Still exhausted.",
    ),
    Step(
        "Get all traces over a second, for the report.",
        "find_traces", {"service": "checkout", "min_ms": "1000", "since": "4h"},
        "They all tell the same story; the slowest are listed by id.",
    ),
    Step(
        "The errors of checkout by minute, for the report.",
        "query_metrics", {"service": "checkout", "metric": "errors", "since": "4h"},
        "They begin with the first waits and have not ended.",
    ),
    Step(
        "The whole backlog of orders, for the report.",
        "peek_queue", {"queue": "orders-pending"},
        "Every order in it can be retried once the pool is back.",
    ),
    Step(
        "Collect the log lines that prove it.",
        "search_logs", {"service": "pricing", "query": "pool AND waiting", "since": "6h"},
        "Cause: dep_8800 changed the pool of pricing. Proposed under incident 4417: roll it back, after your yes.",
    ),
)  # fmt: skip
