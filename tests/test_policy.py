"""Every kind of wrong policy is told in one line: place, fault, remedy."""

import pytest
from support.prompts import balanced

from policies.plan import Level
from policies.policy import LevelRule, Policy, PolicyError
from policies.steps.elide import ElideResults
from policies.steps.reminder import Reminder

LEVELS = """
[levels.tool_results]
enter = 0.75
free_to = 0.3
[levels.history]
enter = 0.95
free_to = 0.6
[levels.topics]
enter = 0.97
free_to = 0.6
[levels.emergency]
enter = 1
free_to = 0.75
"""
GOOD = f'version = 1\nname = "own"\n{LEVELS}'


def read(name: str) -> str:
    if name != "rules.md":
        raise FileNotFoundError(2, "No such file or directory")
    return "Cite ids.\n"


def fault(text: str) -> str:
    with pytest.raises(PolicyError) as raised:
        Policy.parse(text, "own.toml", read)
    message = str(raised.value)
    assert message.startswith("own.toml: ")
    assert "\n" not in message
    return message.removeprefix("own.toml: ")


def test_the_smallest_policy_is_a_version_a_name_and_the_levels() -> None:
    policy = Policy.parse(GOOD, "own.toml")
    assert policy == Policy(
        "own",
        (),
        {
            Level.TOOL_RESULTS: LevelRule(0.75, 0.3),
            Level.HISTORY: LevelRule(0.95, 0.6),
            Level.TOPICS: LevelRule(0.97, 0.6),
            Level.EMERGENCY: LevelRule(1.0, 0.75),
        },
    )


def test_steps_are_made_in_the_order_of_the_file_with_their_fields() -> None:
    steps = """
        [[steps]]
        use = "elide"
        keep_rounds = [2, 1]
        level = "history"
        [[steps]]
        use = "fit"
    """
    policy = Policy.parse(GOOD + steps, "own.toml")
    assert policy.steps[0] == ElideResults(keep_rounds=(2, 1), level=Level.HISTORY)
    assert [step.name for step in policy.steps] == ["elide", "fit"]


def test_the_default_policy_has_every_step_that_makes_a_prompt_fit() -> None:
    assert {step.name for step in balanced().steps} == {
        "fold-json", "clip", "elide", "window", "topics", "emergency", "cap-tools", "fit",
    }  # fmt: skip
    assert balanced().on_refuse == "error"


def test_a_budget_and_the_form_of_refusals_are_read() -> None:
    text = 'on_refuse = "message"\n' + GOOD + "[budget]\nwindow = 8000\noutput_reserve = 500\n"
    policy = Policy.parse(text, "own.toml")
    assert (policy.window, policy.output_reserve, policy.on_refuse) == (8000, 500, "message")


@pytest.mark.parametrize(
    ("table", "step"),
    [
        ('text = "Be kind."', Reminder("Be kind.")),
        ('file = "rules.md"', Reminder("Cite ids.")),
        ('text = "Be kind."\nfile = "rules.md"', Reminder("Cite ids.\n\nBe kind.")),
        ('text = "a"\nplaces = ["tail"]\nmax_tokens = 9', Reminder("a", ("tail",), 9)),
    ],
)
def test_a_reminder_is_the_constitution_and_the_text(table: str, step: Reminder) -> None:
    assert Policy.parse(f"{GOOD}[reminder]\n{table}\n", "own.toml", read).steps == (step,)


def test_a_file_that_nobody_can_read_is_not_asked_for() -> None:
    assert Policy.parse(f'{GOOD}[reminder]\nfile = "rules.md"\n', "own.toml").steps == (Reminder(""),)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("version = ", "not valid TOML: Invalid value (at end of document)"),
        (f'name = "own"\n{LEVELS}', "'version' must be 1 (this build reads no other)"),
        (GOOD.replace("version = 1", "version = 2"), "'version' must be 1 (this build reads no other)"),
        (GOOD.replace("version", "verison"), "unknown key 'verison'; did you mean 'version'?"),
        (
            "zzz = 1\n" + GOOD,
            "unknown key 'zzz'; known are version, name, on_refuse, budget, levels, steps, reminder",
        ),
        (GOOD.replace('"own"', '""'), "'name' must be a text that is not empty"),
        (GOOD.replace('"own"', "7"), "'name' must be a text that is not empty"),
        ('on_refuse = "shout"\n' + GOOD, "'on_refuse' must be \"error\" or \"message\", not 'shout'"),
        ("budget = 7\n" + GOOD, "'budget' must be a table"),
        (GOOD + "[budget]\nwindw = 1\n", "[budget]: unknown key 'windw'; did you mean 'window'?"),
        (
            GOOD + "[budget]\nwindow = 0\n",
            "[budget]: 'window' must be a whole number above 0, in tokens, not 0",
        ),
        (
            GOOD + "[budget]\noutput_reserve = true\n",
            "[budget]: 'output_reserve' must be a whole number above 0, in tokens, not True",
        ),
        (
            GOOD + "[budget]\nwindow = 8.5\n",
            "[budget]: 'window' must be a whole number above 0, in tokens, not 8.5",
        ),
        ('version = 1\nname = "own"\n', "[levels.tool_results]: is missing; give it enter and free_to"),
        (
            GOOD.replace("levels.history", "levels.histroy"),
            "[levels]: unknown key 'histroy'; did you mean 'history'?",
        ),
        (GOOD.replace("0.95", "0"), "[levels.history]: 'enter' must be a number above 0 and up to 1, not 0"),
        (GOOD.replace("0.95", "1.5"), "[levels.history]: 'enter' must be a number above 0 and up to 1, not 1.5"),
        (GOOD.replace("0.95", '"a"'), "[levels.history]: 'enter' must be a number above 0 and up to 1, not 'a'"),
        (GOOD.replace("0.95", "true"), "[levels.history]: 'enter' must be a number above 0 and up to 1, not True"),
        (
            GOOD.replace("free_to = 0.6", "fre_to = 0.6"),
            "[levels.history]: unknown key 'fre_to'; did you mean 'free_to'?",
        ),
        (
            GOOD.replace("free_to = 0.6", ""),
            "[levels.history]: 'free_to' must be a number above 0 and up to 1, not None",
        ),
        (
            GOOD.replace("0.6", "0.99"),
            "[levels.history]: 'free_to' must not be above 'enter', or the level would free nothing",
        ),
        (f"{GOOD}[reminder]\ntxt = 1", "[reminder]: unknown key 'txt'; did you mean 'text'?"),
        (f"{GOOD}[reminder]\ntext = 1", "[reminder]: 'text': must be a text, not 1"),
        (f'{GOOD}[reminder]\nplaces = ["top"]', "[reminder]: 'places' knows head and tail, not 'top'"),
        (f'{GOOD}[reminder]\nplaces = "head"', "[reminder]: 'places': must be a list, not 'head'"),
        (
            f'{GOOD}[reminder]\nfile = "gone.md"',
            "[reminder]: 'file' 'gone.md' cannot be read: No such file or directory; check the path",
        ),
        (f"steps = 7\n{GOOD}", "'steps' must be a list of tables, each written as [[steps]]"),
        (f"steps = [7]\n{GOOD}", "'steps' must be a list of tables, each written as [[steps]]"),
        (f'{GOOD}[[steps]]\nuse = "elied"', "steps[0]: unknown step 'elied'; did you mean 'elide'?"),
        (
            f"{GOOD}[[steps]]\nkeep = 1",
            "steps[0]: unknown step None; known are reminder, fold-json, clip",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "clip"\nover = 1',
            "steps[0] 'clip': unknown key 'over'; known are over_tokens, over_share, level",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "fit"\nname = "a"',
            "steps[0] 'fit': unknown key 'name'; known are gentle_tokens, level",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "clip"\nover_tokens = 1.5',
            "steps[0] 'clip': 'over_tokens': must be a whole number, not 1.5",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "clip"\nover_tokens = true',
            "steps[0] 'clip': 'over_tokens': must be a whole number, not True",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "clip"\nover_share = "a"',
            "steps[0] 'clip': 'over_share': must be a number, not 'a'",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "elide"\nkeep_rounds = ["a"]',
            "steps[0] 'elide': 'keep_rounds': must be a whole number, not 'a'",
        ),
        (
            f'{GOOD}[[steps]]\nuse = "fit"\n[[steps]]\nuse = "clip"\nlevel = "hard"',
            "steps[1] 'clip': 'level': must be one of none, tool_results, history, topics, emergency, not 'hard'",
        ),
    ],
)
def test_a_wrong_policy_is_told_with_place_fault_and_remedy(wrong: str, message: str) -> None:
    assert fault(wrong).startswith(message)


def test_a_whole_number_is_a_number_too() -> None:
    policy = Policy.parse(GOOD + '[[steps]]\nuse = "clip"\nover_share = 1\n', "own.toml")
    assert [getattr(step, "over_share", None) for step in policy.steps] == [1]
