import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pieces import pieces

from policies.texts.digest import digest, identifiers


def found(text: str) -> list[str]:
    return [one.text for one in identifiers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"reservation_id": "4OG6T3", "flight": "HAT123"}', "4OG6T3 HAT123"),
        ("see TCK-4821, then mail li@x.cn.", "TCK-4821 li@x.cn"),
        ("open https://a.example/x?id=7&p=q now", "https://a.example/x?id=7&p=q"),
        ("see https://a.example/x, or (https://b.example/y).", "https://a.example/x https://b.example/y"),
        (
            "{\"result\": \"'a_report.pdf' moved to 'old/a_report.pdf' for good, as you said\"}",
            "a_report.pdf old/a_report.pdf",
        ),
        ('{"/srv/a.csv": {"rows": 3}, "seats": 2, "TCK-4821": null}', "/srv/a.csv TCK-4821"),
        ('{"username": "kong"}', "kong"),
        ('"url": "https://a.example/x?id=7&p=q"', "https://a.example/x?id=7&p=q"),
        ("commit 9f8e7d6c5b4a in /srv/app/main.py", "9f8e7d6c5b4a /srv/app/main.py"),
        ("id: 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("call get_user_details or parseDate or HttpClient", "get_user_details parseDate HttpClient"),
        ("paid 1,299.50 on 2024-05-21", "1,299.50 2024-05-21"),
        ("from DEN to IAH by 7", "DEN IAH"),
        ("it was Raj Sanchez", "Raj Sanchez"),
        ('{"owner": "Raj Sanchez"}', "'Raj Sanchez'"),
        ("- server_name: fetch\n  tool: x", "fetch"),
        ("status=delayed name=fetch", "fetch"),
        ("{'payment_id': 'gift_card_7', 'n': None}", "gift_card_7"),
        ('"departs": "2024-05-21T06:00:00Z"', "2024-05-21"),
        ("订单TCK-4821已发货，姓名：“张伟”", "TCK-4821 张伟"),
        ('{"name": "\\u5f20\\u4f1f \\ud83d\\ude80"}', "'张伟 🚀'"),
        (r'"{\"file\": \"a/b.py\",\\n\\\"ref\\\": \\\"q\'z\\\"}"', "a/b.py q'z"),
        ("don't take the cat's food", ""),
        ("", ""),
        ('"this" and "The"', ""),
        ('"a long sentence names HAT123, and (TCK-4821), among several others in it"', "HAT123 TCK-4821"),
    ],
)
def test_an_identifier_is_what_a_later_call_would_pass(text: str, expected: str) -> None:
    assert digest(text, measure=pieces) == expected


def test_names_of_members_are_not_listed() -> None:
    assert found('{"flight_number": 12345, "fare_class": "economy"}') == ["12345", "economy"]


def test_a_payload_is_not_an_identifier() -> None:
    assert found("A1" * 81 + " " + "B2" * 80) == ["B2" * 80]


def test_a_repeated_identifier_stands_once() -> None:
    assert digest("HAT123 HAT123, HAT123", measure=pieces) == "HAT123"


def test_beginning_middle_and_end_are_all_represented() -> None:
    text = "\n".join(f"row {index} id ITEM-{index:05d}" for index in range(4000))
    listed = [int(one.removeprefix("ITEM-")) for one in digest(text, 100, measure=pieces).split()]
    assert listed == sorted(listed)
    assert listed[0] < 600
    assert listed[-1] >= 3300
    assert any(1500 <= one < 2500 for one in listed)


def test_a_text_longer_than_the_sample_is_read_in_slices_to_its_end() -> None:
    text = " ".join(f"ITEM-{index:06d}" for index in range(100_000))
    listed = [int(one.removeprefix("ITEM-")) for one in digest(text, 200, measure=pieces).split()]
    assert listed[0] == 0
    assert listed[-1] > 80_000


def test_the_weightiest_are_kept_when_the_join_costs_more_than_its_parts() -> None:
    def measure(text: str) -> int:
        return 2 if text.count(" ") <= 1 else 30

    assert digest("DEN TCK-4821", 20, measure=lambda text: 1 + 20 * (text == "DEN TCK-4821")) == "TCK-4821"
    assert digest("DEN TCK-4821", 20, measure=measure) == "DEN TCK-4821"


def test_identifiers_too_dear_for_the_cap_are_passed_over() -> None:
    assert digest("https://a.example/a/very/long/path/indeed DEN", 4, measure=pieces) == "DEN"


@given(st.text(max_size=400), st.integers(0, 60))
def test_a_digest_is_within_its_cap_and_on_one_line(text: str, cap: int) -> None:
    listed = digest(text, cap, measure=pieces)
    assert pieces(listed) <= cap
    assert listed == digest(text, cap, measure=pieces)
    assert "\n" not in listed
    listed.encode()


@given(st.lists(st.from_regex(r"[A-Z]{3}-[0-9]{4}", fullmatch=True), max_size=12, unique=True))
def test_codes_in_json_are_all_listed_when_there_is_room(codes: list[str]) -> None:
    assert digest(json.dumps([{"code": code} for code in codes]), 1000, measure=pieces).split() == codes


def test_a_place_on_the_map_a_handle_and_a_hashtag_are_passed_on() -> None:
    text = json.dumps([{"lat": 35.6851, "lng": 139.7106, "by": "@VehicleGuru", "tags": ["#CarMaintenance", "#7"]}])
    weights = {one.text: one.weight for one in identifiers(text)}
    assert weights == {"35.6851": 5, "139.7106": 5, "@VehicleGuru": 4, "#CarMaintenance": 4}


@pytest.mark.parametrize("word", ["a" + "_" * 120 + "%", "_".join(["ab"] * 50) + "%x", "a.-:_" * 30 + "%x"])
def test_a_form_to_fill_in_is_read_in_no_more_time_than_another_word(word: str) -> None:
    assert found(f"sign {word} TCK-4821") == ["TCK-4821"]
