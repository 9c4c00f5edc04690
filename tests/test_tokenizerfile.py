"""A model's own tokenizer files: the total is that of the rendered prompt, the shares add up to it."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from policies.counting import Counter
from policies.request import ChatRequest, Prompt
from proxy.extras import MissingExtra, extra
from proxy.tokenizerfile import IMAGE, UNTEMPLATED, NotUsable, TokenizerFile

TEMPLATE = """\
{%- if tools %}
<|sys|> tools
{%- for tool in tools %} {{ tool | tojson }}{% endfor %}<|end|>
{%- endif %}
{%- for message in messages %}
{%- if message.role not in ('system', 'user', 'assistant', 'tool') %}{{ raise_exception('no such role') }}{% endif %}
<|start|> {{ message.role }} : {{ message.content }}
{%- for call in message.tool_calls or [] %} call {{ call.function.name }} {{ call.function.arguments.city }}{% endfor %}
<|end|>
{%- endfor %}
{%- if add_generation_prompt %}<|start|> assistant : {% generation %}{% endgeneration %}{% endif %}"""

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tells the weather of a city"}}


def write(directory: Path, template: object = TEMPLATE, config: bool = True) -> Path:
    """A tokenizer of one token a word or punctuation run, with three special tokens."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in ("<|start|>", "<|end|>", "<|sys|>")])
    tokenizer.save(str(directory / "tokenizer.json"))
    if config:
        words = {"bos_token": {"content": "<|start|>"}, "eos_token": "<|end|>", "pad_token": None}
        (directory / "tokenizer_config.json").write_text(json.dumps({**words, "chat_template": template}))
    return directory


def prompt_of(*messages: object, **fields: object) -> Prompt:
    body = {"model": "m", "messages": messages, **fields}
    return ChatRequest.parse(json.dumps(body).encode()).prompt


@pytest.fixture
def counter(tmp_path: Path) -> TokenizerFile:
    return TokenizerFile.load(write(tmp_path))


def test_a_prompt_costs_what_its_rendering_costs(counter: TokenizerFile) -> None:
    bill = counter.bill(prompt_of({"role": "user", "content": "How is Oslo today"}))
    assert bill.total == 8 + 3  # <|start|> user : How is Oslo today <|end|>, and <|start|> assistant :
    assert bill.exact
    assert (bill.messages, bill.tools, bill.overhead) == ((8,), (), 3)


def test_tools_calls_and_results_are_in_the_total_and_have_their_shares(counter: TokenizerFile) -> None:
    talk = [
        {"role": "developer", "content": "Be brief"},
        {"role": "user", "content": [{"type": "text", "text": "Oslo"}, {"type": "text", "text": "please"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    bill = counter.bill(prompt_of(*talk, tools=[TOOL]))
    assert bill.exact
    assert bill.messages == (6, 6, 10, 6)  # text, name and arguments, and what the template puts around the role
    assert bill.tools == (counter.text(json.dumps(TOOL)) + 1,)
    without = counter.bill(prompt_of(*talk)).total
    assert without == 5 + 5 + 7 + 4 + 3 + 3  # with <|start|> role : <|end|> for each, and the answer's opening
    assert bill.total == without + counter.text(f"<|sys|> tools {json.dumps(TOOL)} <|end|>")


def test_facts_of_a_message_name_its_calls_and_tokens(counter: TokenizerFile) -> None:
    (item,) = prompt_of({"role": "assistant", "content": "Looking", "tool_calls": [CALL]}).messages
    facts = counter.facts(item)
    assert (facts.role, facts.call_ids, facts.call_names, facts.chars) == ("assistant", ("c1",), ("weather",), 7)
    assert (facts.tokens, facts.exact) == (11, True)
    assert counter.facts(item) is facts


def test_calls_in_odd_shapes_are_rendered_as_they_are(counter: TokenizerFile) -> None:
    odd = [{"function": {"name": "a", "arguments": "not JSON"}}, {"function": {"arguments": {"city": "Rome"}}}, 7]
    bill = counter.bill(prompt_of({"role": "assistant", "content": "", "tool_calls": odd[:2]}))
    assert bill.exact
    assert not counter.bill(prompt_of({"role": "assistant", "content": "", "tool_calls": odd})).exact


def test_a_tokenizer_without_special_tokens_counts_in_one_piece(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert TokenizerFile.load(tmp_path).text("one two") == 2


def test_a_template_that_knows_no_calls_still_tells_what_surrounds_the_others(tmp_path: Path) -> None:
    refusing = (
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}a b {{ m.content }} "
    )
    counter = TokenizerFile.load(write(tmp_path, refusing + "{% endfor %}"))
    assert counter.bill(prompt_of({"role": "user", "content": "one"})).messages == (3,)
    assert not counter.bill(prompt_of({"role": "tool", "content": "one"})).exact


def test_what_was_counted_is_not_new_again(counter: TokenizerFile) -> None:
    prompt = prompt_of({"role": "user", "content": "one"}, tools=[TOOL])
    assert counter.new_bytes(prompt) == sum(len(item.raw) for item in (*prompt.messages, *prompt.tools))
    counter.bill(prompt)
    assert counter.new_bytes(prompt) == 0
    longer = prompt_of({"role": "user", "content": "one"}, {"role": "user", "content": "two"}, tools=[TOOL])
    assert counter.new_bytes(longer) == len(longer.messages[1].raw)


def test_a_template_that_refuses_leaves_an_estimate(counter: TokenizerFile) -> None:
    bill = counter.bill(prompt_of({"role": "critic", "content": "one two"}))
    assert not bill.exact
    assert bill.messages == (2 + UNTEMPLATED,)


@pytest.mark.parametrize("template", [None, 7, []])
def test_without_a_template_the_bill_is_an_estimate(tmp_path: Path, template: object) -> None:
    bill = TokenizerFile.load(write(tmp_path, template)).bill(prompt_of({"role": "user", "content": "one two"}))
    assert (bill.total, bill.exact) == (2 + UNTEMPLATED + UNTEMPLATED, False)


def test_an_image_is_estimated_and_said_to_be(counter: TokenizerFile) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    bill = counter.bill(prompt_of({"role": "user", "content": [{"type": "text", "text": "see"}, image]}))
    assert not bill.exact
    assert bill.total == IMAGE + 5 + 3


def test_text_that_the_template_leaves_out_costs_nothing(tmp_path: Path) -> None:
    counter = TokenizerFile.load(write(tmp_path, "{{ messages[-1].content }}"))
    bill = counter.bill(prompt_of({"role": "user", "content": "left out " * 50}, {"role": "user", "content": "one"}))
    assert bill.total == 1
    assert bill.overhead >= 0


def test_a_template_in_its_own_file_stands_above_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, "one two three")
    (tmp_path / "chat_template.jinja").write_text("one")
    assert TokenizerFile.load(tmp_path).bill(prompt_of()).total == 1


def test_of_several_templates_the_one_for_tools_is_taken(tmp_path: Path) -> None:
    listed = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "one two"}, "noise"]
    assert TokenizerFile.load(write(tmp_path, listed)).bill(prompt_of()).total == 2
    assert TokenizerFile.load(write(tmp_path, listed[:1])).bill(prompt_of()).total == 1


def test_templates_see_the_tokenizers_own_tokens_and_a_fixed_date(tmp_path: Path) -> None:
    counter = TokenizerFile.load(write(tmp_path, "{{ bos_token }}{{ eos_token }} {{ strftime_now('%d %B %Y') }}"))
    assert counter.bill(prompt_of()).total == 2 + 3


def test_a_tokenizer_without_configuration_still_counts_text(tmp_path: Path) -> None:
    counter: Counter = TokenizerFile.load(write(tmp_path, config=False))
    assert counter.text("one two <|end|> three") == 4
    assert counter.name == f"tokenizer/{tmp_path.name}"


def test_a_directory_without_a_tokenizer_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotUsable, match=r"there is no tokenizer\.json; name the directory that holds it"):
        TokenizerFile.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("tokenizer.json", "{}", r"tokenizer\.json cannot be read"),
        ("tokenizer_config.json", "[]", "Expected `object`"),
        ("tokenizer_config.json", '{"chat_template": "{% if %}"}', "fetch the model's files again"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, text: str, fault: str) -> None:
    (write(tmp_path) / name).write_text(text)
    with pytest.raises(NotUsable, match=fault):
        TokenizerFile.load(tmp_path)


def test_a_missing_extra_says_what_to_install() -> None:
    assert extra("proxy.tokenizerfile", "tokenizer", "a tokenizer file").TokenizerFile is TokenizerFile
    with pytest.raises(MissingExtra, match=r"a tokenizer file needs 'no_such': pip install 'edgewise\[tokenizer\]'"):
        extra("no_such", "tokenizer", "a tokenizer file")


@pytest.fixture(scope="module")
def shared_counter(tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    return TokenizerFile.load(write(tmp_path_factory.mktemp("tokenizer")))


@settings(deadline=None)
@given(texts=st.lists(st.text(st.characters(codec=None)), max_size=4), tools=st.booleans())
def test_shares_add_up_whatever_the_text(shared_counter: TokenizerFile, texts: list[str], tools: bool) -> None:
    fields: dict[str, object] = {"tools": [TOOL]} if tools else {}
    bill = shared_counter.bill(prompt_of(*({"role": "user", "content": text} for text in texts), **fields))
    assert bill.total == sum(bill.messages) + sum(bill.tools) + bill.overhead
    assert bill.overhead >= 0
    assert len(bill.messages) == len(texts)


def test_a_real_tokenizer_adds_up_piece_by_piece() -> None:
    directory = Path(os.environ.get("WORK", f"{tempfile.gettempdir()}/edgewise-e2e")) / "tokenizer"
    if not (directory / "tokenizer.json").exists():
        pytest.skip(f"{directory} is absent: `python e2e/counts.py` fetches a real tokenizer")
    counter = TokenizerFile.load(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    text = "<|im_start|>user\n你好, wörld!\n\n  x = [1e5]<|im_end|>\n<tool_call>\n{}\n</tool_call>"
    assert counter.text(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert counter.bill(prompt_of({"role": "user", "content": "hi"}, tools=[TOOL])).exact
