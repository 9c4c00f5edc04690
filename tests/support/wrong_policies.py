"""Wrong policies, one of each kind, and the line that each gets: place, fault, remedy."""

GOOD = """version = 1
name = "own"
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


def _step(*lines: str) -> str:
    return GOOD + "\n".join(["[[steps]]", *lines]) + "\n"


WRONG: dict[str, tuple[str, str]] = {
    "not TOML": ("version = ", "not valid TOML: Invalid value (at end of document)"),
    "a table twice": (GOOD + "[levels.history]\n", "not valid TOML: Cannot declare ('levels', 'history') twice"),
    "no version": ('name = "own"\n', "'version' must be 1 (this build reads no other)"),
    "another version": (GOOD.replace("version = 1", "version = 2"), "'version' must be 1 (this build reads no other)"),
    "version that is no number": (GOOD.replace("version = 1", "version = true"), "'version' must be 1"),
    "misspelt key": (GOOD.replace("version", "verison"), "unknown key 'verison'; did you mean 'version'?"),
    "unknown key": (
        "zzz = 1\n" + GOOD,
        "unknown key 'zzz'; known are version, name, on_refuse, budget, shares, caps, levels, buckets, steps, reminder",
    ),
    "empty name": (GOOD.replace('"own"', '""'), "'name' must be a text that is not empty"),
    "name that is no text": (GOOD.replace('"own"', "7"), "'name' must be a text that is not empty"),
    "unknown form of refusal": (
        'on_refuse = "shout"\n' + GOOD,
        "'on_refuse' must be \"error\" or \"message\", not 'shout'",
    ),
    "budget that is no table": ("budget = 7\n" + GOOD, "'budget' must be a table, written as [budget]"),
    "misspelt budget": (GOOD + "[budget]\nwindw = 1\n", "[budget]: unknown key 'windw'; did you mean 'window'?"),
    "window of nothing": (
        GOOD + "[budget]\nwindow = 0\n",
        "[budget]: 'window' must be a whole number above 0, in tokens, not 0",
    ),
    "reserve that is no number": (
        GOOD + "[budget]\noutput_reserve = true\n",
        "[budget]: 'output_reserve' must be a whole number above 0, in tokens, not True",
    ),
    "window in parts": (
        GOOD + "[budget]\nwindow = 8.5\n",
        "[budget]: 'window' must be a whole number above 0, in tokens, not 8.5",
    ),
    "margin above all": (
        GOOD + "[budget]\nmargin = 1.5\n",
        "[budget]: 'margin' must be tokens (a whole number) or a share below 1, not 1.5",
    ),
    "misspelt tier": (GOOD + "[shares]\nL5 = 0.1\n", "[shares]: unknown key 'L5'; known are L0, L1, L2, L3"),
    "share of more than all": (
        GOOD + "[shares]\nL0 = 2\n",
        "[shares]: 'L0' must be a number above 0 and up to 1, not 2",
    ),
    "shares of more than all": (
        GOOD + "[shares]\nL0 = 0.5\n",
        "[shares]: the shares come to 1.42; lower them until they are 1 or less",
    ),
    "cap of an unknown bucket": (GOOD + "[caps]\nmemroy = 1\n", "[caps]: unknown key 'memroy'; did you mean 'memory'?"),
    "cap that is no number": (
        GOOD + '[caps]\nmemory = "800"\n',
        "[caps]: 'memory' must be a whole number above 0, in tokens, not '800'",
    ),
    "misspelt level": (
        GOOD.replace("levels.history", "levels.histroy"),
        "[levels]: unknown key 'histroy'; did you mean 'history'?",
    ),
    "level that is no table": ("levels.history = 0.9\n" + 'version = 1\nname = "a"', "'history' must be a table"),
    "pressure against something unknown": (
        'levels.of = "world"\nversion = 1\nname = "a"',
        "[levels]: 'of': must be one of room, window, not 'world'",
    ),
    "threshold of nothing": (
        GOOD.replace("0.95", "0"),
        "[levels.history]: 'enter' must be a number above 0 and up to 1, not 0",
    ),
    "threshold that is no number": (
        GOOD.replace("0.95", '"a"'),
        "[levels.history]: 'enter' must be a number above 0 and up to 1, not 'a'",
    ),
    "half a pair of thresholds": (
        GOOD.replace("0.95", "{ small = 0.95 }"),
        "[levels.history]: 'enter.large' must be a number above 0 and up to 1, not None",
    ),
    "misspelt pair of thresholds": (
        GOOD.replace("0.95", "{ smal = 0.95, large = 0.9 }"),
        "[levels.history]: 'enter': unknown key 'smal'; did you mean 'small'?",
    ),
    "misspelt key of a level": (
        GOOD.replace("free_to = 0.6", "fre_to = 0.6", 1),
        "[levels.history]: unknown key 'fre_to'; did you mean 'free_to'?",
    ),
    "level that frees nothing": (
        GOOD.replace("0.6", "0.99", 1),
        "[levels.history]: 'free_to' must not be above 'enter', or the level would free nothing",
    ),
    "level that frees nothing of a request alone": (
        GOOD.replace("free_to = 0.6", "alone_to = 0.99", 1),
        "[levels.history]: 'alone_to' must not be above 'enter', or the level would free nothing",
    ),
    "levels in the wrong order": (
        GOOD.replace("0.95", "0.7"),
        "[levels.history]: 'enter' must not be below that of the level before, which is gentler",
    ),
    "buckets that are no list": (
        "buckets = 7\n" + GOOD,
        "'buckets' must be a list of tables, each written as [[buckets]]",
    ),
    "rule for every message": (
        GOOD + '[[buckets]]\nbucket = "memory"\n',
        "buckets[0]: says of no message that it is meant; give it 'role' or 'match'",
    ),
    "rule that does nothing": (
        GOOD + '[[buckets]]\nrole = "system"\n',
        "buckets[0]: does nothing; give it 'bucket', 'evict' or 'priority'",
    ),
    "pattern that is none": (
        GOOD + '[[buckets]]\nmatch = "[MEMORY"\nbucket = "memory"\n',
        "buckets[0]: 'match' '[MEMORY' is no regular expression: ",
    ),
    "rule for an unknown bucket": (
        GOOD + '[[buckets]]\nrole = "system"\nbucket = "tools"\n',
        "buckets[0]: 'bucket': must be one of system, state, memory, summary, history, tool_results, current_turn, not",
    ),
    "unknown class of eviction": (
        GOOD + '[[buckets]]\nrole = "system"\nevict = "never"\n',
        "buckets[0]: 'evict': must be one of pinned, reconstructible, recoverable, not 'never'",
    ),
    "misspelt reminder": (f"{GOOD}[reminder]\ntxt = 1", "[reminder]: unknown key 'txt'; did you mean 'text'?"),
    "reminder that is no text": (f"{GOOD}[reminder]\ntext = 1", "[reminder]: 'text': must be a text, not 1"),
    "reminder in an unknown place": (
        f'{GOOD}[reminder]\nplaces = ["top"]',
        "[reminder]: 'places' knows head and tail, not 'top'",
    ),
    "reminder in no list of places": (
        f'{GOOD}[reminder]\nplaces = "head"',
        "[reminder]: 'places': must be a list, not 'head'",
    ),
    "constitution that is missing": (
        f'{GOOD}[reminder]\nfile = "gone.md"',
        "[reminder]: 'file' 'gone.md' cannot be read: No such file or directory; check the path",
    ),
    "steps that are no list": (f"steps = 7\n{GOOD}", "'steps' must be a list of tables, each written as [[steps]]"),
    "steps that are no tables": (f"steps = [7]\n{GOOD}", "'steps' must be a list of tables, each written as [[steps]]"),
    "misspelt step": (_step('use = "elied"'), "steps[0]: unknown step 'elied'; did you mean 'elide'?"),
    "step without a name": (
        _step("keep = 1"),
        "steps[0]: 'use' must name a step, not None; known are reminder, ",
    ),
    "unknown key of a step": (
        _step('use = "clip"', "over = 1"),
        "steps[0] 'clip': unknown key 'over'; ",
    ),
    "key of a step that cannot be set": (
        _step('use = "emergency"', 'name = "a"'),
        "steps[0] 'emergency': unknown key 'name'; known are level",
    ),
    "whole number in parts": (
        _step('use = "clip"', "over_tokens = 1.5"),
        "steps[0] 'clip': 'over_tokens': must be a whole number, not 1.5",
    ),
    "whole number that is none": (
        _step('use = "clip"', "over_tokens = true"),
        "steps[0] 'clip': 'over_tokens': must be a whole number, not True",
    ),
    "number that is a text": (
        _step('use = "clip"', 'over_share = "a"'),
        "steps[0] 'clip': 'over_share': must be a number, not 'a'",
    ),
    "list with something else": (
        _step('use = "elide"', 'keep_rounds = ["a"]'),
        "steps[0] 'elide': 'keep_rounds': must be a whole number, not 'a'",
    ),
    "unknown level of a step": (
        _step('use = "fit"', "[[steps]]", 'use = "clip"', 'level = "hard"'),
        "steps[1] 'clip': 'level': must be one of none, tool_results, history, topics, emergency, not 'hard'",
    ),
    "route to nowhere": (
        GOOD + '[[route]]\nmodel = "gpt-*"\n',
        "route[0]: 'policy' is missing; it must be a text",
    ),
    "route for no tenant": (
        GOOD + '[[route]]\ntenant = "Ann"\npolicy = "frugal"\n',
        "route[0]: 'tenant' must be * or 4 to 32 hex digits of a tenant's hash, not 'Ann'",
    ),
    "route to an empty name": (
        GOOD + '[[route]]\npolicy = ""\n',
        "route[0]: 'policy' and 'model' must not be empty",
    ),
}
