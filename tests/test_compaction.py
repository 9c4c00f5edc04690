"""Which requests are the client's own compaction, in wordings close to those of agents in use."""

import json
from typing import Any

import pytest
from support.shared import rows, shared

from policies.compaction import EDGE, PARTS, Compaction
from policies.request import ChatRequest, Item, Prompt

TOOLS = [{"type": "function", "function": {"name": "read_file"}}]
AGENT = {"role": "system", "content": "You are a coding agent. Use the tools."}
TRANSCRIPT = "USER: where is the parser?\nASSISTANT: in src/parse.rs\n" * 200


def prompt(*messages: dict[str, Any], **fields: Any) -> Prompt:
    return ChatRequest.parse(json.dumps({"model": "m", "messages": messages, **fields}).encode()).prompt


def in_loop(text: Any) -> Prompt:
    """The text as the newest user message of an agent's conversation with tools."""
    answer = {"role": "assistant", "content": "Done."}
    return prompt(AGENT, {"role": "user", "content": "Fix it"}, answer, {"role": "user", "content": text}, tools=TOOLS)


def aside(instruction: str, text: str = TRANSCRIPT) -> Prompt:
    """The instruction as the system message of a request without tools."""
    return prompt({"role": "system", "content": instruction}, {"role": "user", "content": text})


NEWEST = {
    "a detailed summary, text only": (
        "IMPORTANT: answer with text only, no tools.\n\nYour task is to write a detailed summary of the conversation so"
        " far, with attention to what the user asked for and what you did. It must hold what is essential for"
        " continuing the work without losing context."
    ),
    "a checkpoint for another model": (
        "You are performing a context checkpoint compaction. Create a handoff summary for another LLM that will resume"
        " the task.\n\nInclude:\n- progress so far\n- what is left\n- paths that matter and constraints of the user"
    ),
    "a prompt to continue with": (
        "Provide a detailed prompt for continuing our conversation above. Say what we did, what we are doing and which"
        " files we work on, since the new session will not see this conversation."
    ),
    "an anchored summary in a template": (
        "Create a new anchored summary from the conversation history above.\n\nKeep this template:\n## Goal\n"
        "- one line\n## Decisions\n## Next Steps\n## Relevant Files\n"
    ),
    "an update of the last summary": (
        "Update the anchored summary below with the conversation history above; keep what still holds, drop what does"
        " not.\n<previous-summary>\nThe user wants a date parser.\n</previous-summary>"
    ),
    "an urgent task": (
        '<explicit_instructions type="summarize">\nThe conversation is running out of context. Now, your urgent task is'
        " to create a comprehensive summary of the conversation so far.\n</explicit_instructions>"
    ),
    "the summary extended": (
        "This is the summary of the conversation up to now: the user wants dates parsed in nine formats, and three"
        " designs were weighed.\n\nExtend the summary by taking into account the new messages above:"
    ),
    "contents listed, no purpose": (
        "Generate a detailed summary of this conversation. Include:\n1. An overview of the topics\n2. Key facts that"
        " were found\n3. Outcomes that were reached\n4. Next steps, if any\nUse Markdown with headings."
    ),
    "a summary in tags": (
        "Please give a concise summary of the conversation history: decisions, facts and what the tools said. Put it in"
        " <summary></summary>."
    ),
    "only the summary": (
        "Your task is to create a detailed summary of the conversation so far. Answer in its language, with only the"
        " summary and no comment."
    ),
    "a summary that stands alone": (
        "Summarize the conversation above with its goals, decisions and open work so that the conversation can continue"
        " from it."
    ),
    "priorities for compaction": (
        "Above is a list of messages. You are now given a task to compact this conversation context by these"
        " priorities:\n1. Current task\n2. Errors and how they were solved\n3. Files and their final code\n4. TODO"
        " items that are open\nDrop the rest."
    ),
}

SYSTEM = {
    "part of a longer talk": (
        "*Briefly* summarize this partial conversation about programming. Say more about the newest messages.\nIt is"
        " only part of a longer conversation, so do not end with a conclusion."
    ),
    "a component": (
        "You are the component that summarizes internal chat history into a given structure.\n\nYour snapshot becomes"
        " the agent's *only* memory of the past, and the agent will resume its work from it."
    ),
    "an extraction": (
        "<role>\nExtraction assistant\n</role>\n<objective>\nYour sole objective is to extract the most relevant"
        " context from the conversation history below.\n</objective>\nIt will overwrite the history shown."
    ),
    "a talk with an assistant": (
        "You are an assistant tasked with summarizing conversations.\nGiven is the conversation between a user and an"
        " assistant; write what they wanted, what was decided and where they stand."
    ),
    "a window": (
        "Your job is to summarize a history of messages between a persona and a human. They come from a fixed context"
        " window and may not be complete. Write at most a hundred words."
    ),
    "a running summary": (
        "You update a running summary of a conversation. Keep facts, goals, decisions, constraints, names, deadlines."
        " Be concise, write compact sentences and leave small talk out."
    ),
    "a summarizer that saves space": (
        "You are a conversation summarizer for a coding assistant. What you write will replace the original messages to"
        " save context window space. Keep exact paths and names."
    ),
}

NEGATIVE = {
    "one line in a chat": "Summarise this conversation in one line.",
    "a long wish of a person": (
        "Please write a detailed summary of our conversation for my boss. Include the decisions and the next steps, and"
        " format it with headings so that he can read it quickly before the meeting."
    ),
    "JSON": "Compact the JSON in the response, it is far too long for the log. " * 4,
    "a feature to build": (
        "Write a function that summarizes the conversation so that another agent can continue the work once the context"
        " window is full, and test it with the messages of the fixture."
    ),
    "an endpoint to build": (
        "Create a summary endpoint for sessions. Another agent calls it when the context window of the first is full,"
        " and it has to answer within a second even for long chats."
    ),
    "code that is named": (
        "Condense the conversation history in `memory.py` before it reaches the context window: the loop in there drops"
        " the wrong messages, and the tests say so. Run them when you are done."
    ),
    "an explanation": (
        "In our product, when the context window is full, we summarize the conversation and continue the work with the"
        " summary. Why does the model forget the file names afterwards?"
    ),
    "a summary handed back": (
        "This session is being continued from a previous conversation that ran out of context. The conversation is"
        " summarized below:\n1. Primary Request: the user asked for a date parser.\n2. Files: src/parse.rs\n3. Errors:"
        " none\n4. Pending: tests\n5. Next step: run them\n\nPlease continue from where we left it off."
    ),
    "a quotation": (
        'The agent printed this and hung:\n"Your task is to create a detailed summary of the conversation so far, for'
        ' continuing the work without losing context."\nFind out where the string comes from.'
    ),
    "a title": (
        "Summarize the conversation above into a title of four to five words. Use title case and no quotes; if there is"
        " no conversation, answer: New Session."
    ),
    "a log to read": "Extract the failing session from the log and say which context window it had. " * 3,
}


@pytest.mark.parametrize("name", NEWEST)
def test_an_agents_compaction_is_recognised_by_its_newest_message(name: str) -> None:
    assert Compaction().asked_in(in_loop(NEWEST[name]))


@pytest.mark.parametrize("name", SYSTEM)
def test_a_summarizer_without_tools_is_recognised_by_its_system_message(name: str) -> None:
    assert Compaction().asked_in(aside(SYSTEM[name]))


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_people_ask_for_is_no_compaction(name: str) -> None:
    assert not Compaction().asked_in(in_loop(NEGATIVE[name]))
    assert not Compaction().asked_in(aside(NEGATIVE[name], "Go on."))


def test_a_chat_that_works_with_summaries_is_no_compaction() -> None:
    told = "You are a friendly guide. You will be given a summary of the conversation so far; use it to continue the"
    assert not Compaction().asked_in(aside(f"{told} conversation with the user, and never mention the context window."))


def test_an_app_that_summarizes_talks_for_people_is_no_compaction() -> None:
    told = "You are an assistant that summarizes support conversations for the team. Name the product, the fault, what"
    assert not Compaction().asked_in(aside(f"{told} was tried and the outcome.\n1. Next steps\n2. Errors\n3. Files"))


def test_an_instruction_behind_a_long_transcript_is_found() -> None:
    ask = "\n\nCreate a structured summary of the conversation above that another LLM will use to go on with the work."
    assert Compaction().asked_in(in_loop(TRANSCRIPT + ask))
    assert Compaction().asked_in(in_loop(ask + "\n" + TRANSCRIPT))


def test_an_instruction_in_the_middle_of_a_text_is_part_of_what_the_text_is_about() -> None:
    middle = "x " * EDGE + NEWEST["a checkpoint for another model"] + " x" * EDGE
    assert not Compaction().asked_in(in_loop(middle))


def test_an_instruction_may_be_one_content_part_of_several() -> None:
    parts = [{"type": "text", "text": "[read_file] ok"}, {"type": "text", "text": NEWEST["an urgent task"]}]
    assert Compaction().asked_in(in_loop(parts))
    assert not Compaction().asked_in(in_loop([*reversed(parts), *parts[:1] * PARTS]))


def test_a_loop_that_goes_on_behind_the_instruction_is_no_compaction() -> None:
    asked = {"role": "user", "content": NEWEST["an urgent task"]}
    assert not Compaction().asked_in(prompt(AGENT, asked, {"role": "assistant", "content": "## Goal"}, tools=TOOLS))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"tools": []}, True),
        ({"tools": TOOLS}, False),
        ({"tools": TOOLS, "tool_choice": "none"}, True),
        ({"tools": TOOLS, "tool_choice": "auto"}, False),
        ({"functions": [{"name": "read_file"}]}, False),
        ({"functions": []}, True),
        ({"functions": None}, True),
    ],
)
def test_a_system_message_decides_only_where_no_tool_can_be_called(fields: dict[str, Any], expected: bool) -> None:
    messages = [{"role": "system", "content": SYSTEM["a window"]}, {"role": "user", "content": "USER: hello"}]
    assert Compaction().asked_in(prompt(*messages, **fields)) is expected


def test_further_patterns_are_enough_whatever_the_text() -> None:
    recognised = Compaction.of([r"^/verdichte\b", "bitte zusammenfassen"])
    assert recognised.asked_in(in_loop("/verdichte"))
    assert recognised.asked_in(aside("BITTE ZUSAMMENFASSEN: alles"))
    assert not recognised.asked_in(in_loop("Was heißt /verdichte?"))


def test_a_pattern_that_is_none_is_named_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"^compaction\[1\] '\(': no regular expression: missing \)"):
        Compaction.of(["fine", "("])


def test_what_cannot_be_read_is_no_compaction() -> None:
    assert not Compaction().asked_in(Prompt("m", ()))
    assert not Compaction().asked_in(Prompt("m", (Item.of(b'{"role": nonsense}'),)))
    assert not Compaction().asked_in(in_loop([{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]))


def test_no_request_of_the_recorded_conversations_is_taken_for_a_compaction() -> None:
    for row in rows(shared("data/sessions.jsonl")):
        for end in range(1, len(row["messages"]) + 1):
            asked = prompt(*row["messages"][:end])
            assert not Compaction().asked_in(asked), (row["id"], end)
