import pytest
from support.prompts import chat, counter, draft, edits, planned, round_of, texts, user

from policies.budget import Budget
from policies.needs import solve
from policies.pipeline import plan_once
from policies.plan import Action, Edit, Pass, Rewrite
from policies.policy import Policy
from policies.refs import Refs
from policies.steps.project import Project, Rule
from policies.texts.stubs import by_ref
from proxy.policyfile import load

SHIPMENT = '{"status": "in_transit", "eta": "2026-12-03", "trace": [' + ", ".join(['{"hub": "LEJ"}'] * 40) + "]}"
GREP = "\n".join(f"src/a.py:{line}:    value = compute_something_quite_long_{line}()" for line in range(40))
TABLE = "id,a,b\n1,this one is quite long so that it pays to leave it out,x\n2,and this one is even longer than that,y"
WIDE = TABLE.replace("long", "long " * 40)
RULES = (Rule("get_shipment*", jmespath="{status: status, eta: eta}"), Rule("grep*", regex="(?P<line>[0-9]+):"))
POLICY = load("balanced")


def always(*rules: Rule) -> Policy:
    return Policy("own", (Project(rules, when="always"),), POLICY.levels)


def proposed(name: str, text: str, step: Project) -> list[Edit]:
    return edits(step, draft([user("a"), *round_of(0, text, name)], limit=5))


def test_the_first_rule_that_matches_the_tool_applies() -> None:
    (edit,) = proposed("get_shipment_by_id", SHIPMENT, Project(RULES))
    assert isinstance(edit, Rewrite)
    assert b'{\\"status\\":\\"in_transit\\",\\"eta\\":\\"2026-12-03\\"}' in edit.raw
    assert edit.because == "rule 0 for 'get_shipment*' applied"
    assert edit.check == "2 values are the source's"
    first = Project((Rule("*", jmespath="status"), *RULES))
    (edit,) = proposed("get_shipment", SHIPMENT, first)
    assert isinstance(edit, Rewrite)
    assert edit.because == "rule 0 for '*' applied"


def test_text_and_tables_have_rules_of_their_own() -> None:
    made = draft([user("a"), *round_of(0, GREP, "grep_files")], limit=5)
    edits(Project(RULES), made)
    assert texts(made)[2].startswith('{"columns":["line"],"rows":[[0],[1],[2]')
    table = draft([user("a"), *round_of(0, TABLE, "list")], limit=5)
    edits(Project((Rule(columns=("id",)),)), table)
    assert texts(table)[2] == "id\n1\n2\n[… 2 more columns not shown: a, b]"


def test_tools_that_no_rule_names_are_left_alone() -> None:
    assert proposed("read_log", SHIPMENT, Project(RULES)) == []


def test_a_rule_that_matches_nothing_says_so_in_a_decision_once() -> None:
    (edit,) = proposed("get_shipment", '{"error": "unknown"}', Project(RULES))
    assert edit == Pass("m2", "rule 0 for 'get_shipment*' matches nothing: it selects nothing")
    policy = Policy("own", (Project(RULES),), POLICY.levels)
    messages = [user("a"), *round_of(0, '{"state": "' + "lost " * 300 + '"}', "get_shipment")]
    made = planned(chat(messages), 100, policy)
    said = [one for one in made.decisions if one.step == "project"]
    assert [(one.action, one.outcome, one.spans, one.before == one.after) for one in said] == [
        (Action.PASS, "refused", ("m2",), True)
    ]
    assert said[0].because.endswith("matches nothing: it selects nothing")


def test_when_enough_is_free_the_next_is_left_alone() -> None:
    messages = [user("a"), *round_of(0, SHIPMENT, "get_shipment"), *round_of(1, SHIPMENT, "get_shipment")]
    made = draft(messages, limit=draft(messages).total - 50)
    assert len(edits(Project(RULES), made)) == 1


def test_always_means_below_every_threshold_too() -> None:
    request = chat([user("a"), *round_of(0, SHIPMENT, "get_shipment")])
    made = solve(plan_once(request, always(*RULES), counter(), Budget(100_000)))
    assert made.level.value == "none"
    assert [one.outcome for one in made.decisions] == ["applied"]
    assert made.sent_total < made.received_total / 3
    waits = Policy("own", (Project(RULES),), POLICY.levels)
    assert solve(plan_once(request, waits, counter(), Budget(100_000))).decisions == ()


def test_what_is_always_done_is_not_given_back_under_pressure() -> None:
    rounds = [message for number in range(9) for message in round_of(number, GREP)]
    request = chat([user("a"), *round_of(9, SHIPMENT, "get_shipment"), *rounds])
    policy = Policy("own", (*always(*RULES).steps, *POLICY.steps), POLICY.levels)
    made = planned(request, 4_000, policy)
    assert made.level.value != "none"
    assert made.sent_total <= 4_000
    (projected,) = [one for one in made.decisions if one.step == "project"]
    assert projected.outcome == "applied"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, "a rule has one of 'jmespath', 'regex' and 'columns'"),
        ({"jmespath": "a", "regex": "(?P<b>.)"}, "a rule has one of 'jmespath', 'regex' and 'columns'"),
        ({"regex": "a"}, "'regex' needs a named group"),
    ],
)
def test_a_wrong_rule_is_refused_when_it_is_made(fields: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Rule("x", **fields)  # type: ignore[arg-type] # the fields given here are texts


def test_rules_are_read_from_a_policy_file() -> None:
    levels = "".join(
        f"[levels.{name}]\nenter = 1.0\nfree_to = 0.5\n" for name in ("tool_results", "history", "topics", "emergency")
    )
    rules = 'rules = [{tool = "grep*", regex = "(?P<line>[0-9]+):"}, {columns = ["a"]}]'
    text = f'version = 1\nname = "own"\n{levels}[[steps]]\nuse = "project"\n{rules}'
    (step,) = Policy.parse(text, "own.toml").steps
    assert step == Project((Rule("grep*", regex="(?P<line>[0-9]+):"), Rule(columns=("a",))))


@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        (SHIPMENT, Rule(jmespath="{eta: eta}"), '{"eta":"2026-12-03","…":"parts are not shown; BACK"}'),
        (SHIPMENT, Rule(jmespath="[eta]"), '["2026-12-03",{"…":"parts are not shown; BACK"}]'),
        (SHIPMENT, Rule(jmespath="eta"), '["2026-12-03",{"…":"parts are not shown; BACK"}]'),
        (WIDE, Rule(columns=("id",)), "id\n1\n2\n[… 2 more columns not shown: a, b]\n[… parts are not shown; BACK]"),
    ],
    ids=["object", "array", "value", "text"],
)
def test_what_a_rule_leaves_out_can_be_read_again(text: str, rule: Rule, said: str) -> None:
    made = draft([user("a"), *round_of(0, text)], limit=5)
    made.refs = Refs(b"key")
    edits(Project((rule,)), made)
    back = by_ref(made.refs.ref_of(text))
    assert texts(made)[2] == said.replace("BACK", back.replace('"', '\\"') if rule.jmespath else back)
