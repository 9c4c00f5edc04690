import pytest

from proxy.upstream import first_byte_timeout


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"600", 600.0), (b"0.5", 0.5), (b"99999", 3600.0), (b"0", None), (b"-1", None), (b"soon", None), (b"nan", None)],
)
def test_the_clients_timeout_is_taken_at_its_word_within_reason(value: bytes, seconds: float | None) -> None:
    assert first_byte_timeout([(b"x-stainless-timeout", value)]) == seconds


def test_without_a_word_of_the_client_the_setting_holds() -> None:
    assert first_byte_timeout([]) is None
