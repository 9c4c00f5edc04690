import os
from typing import Any

import pytest

from proxy.access import Access
from proxy.routing import Upstream
from proxy.settings import Settings, SettingsError, strangers
from proxy.sidemodel import Lane
from proxy.upstream import Timeouts


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EDGEWISE_")]:
        monkeypatch.delenv(name)


def test_the_defaults_are_those_that_are_documented() -> None:
    settings = Settings.load()
    assert (settings.host, settings.policy, settings.mode, settings.window) == (
        "127.0.0.1",
        "balanced",
        "enforce",
        "auto",
    )
    assert settings.max_body_bytes == 67_108_864
    assert settings.max_header_bytes == 65_536
    assert settings.timeouts == Timeouts(connect=5, first_byte=600, idle=300, pool_idle=30)
    assert settings.keep_alive_timeout == 75
    assert settings.access == Access()
    assert settings.routes.upstreams == ()


def test_settings_come_from_the_environment_and_overrides_go_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWISE_UPSTREAM", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("EDGEWISE_WINDOW", "8000")
    monkeypatch.setenv("EDGEWISE_INBOUND_KEYS", "a, b ,")
    monkeypatch.setenv("EDGEWISE_API_KEY", "k")
    monkeypatch.setenv("EDGEWISE_TENANT_FROM", "header:X-Team")
    monkeypatch.setenv("EDGEWISE_PORT", "1234")
    settings = Settings.load(port=0, window=None)
    assert (settings.port, settings.window) == (0, 8000)
    assert settings.access == Access((b"a", b"b"), b"x-team")
    assert settings.routes.default == Upstream("127.0.0.1:1", "http://127.0.0.1:1/v1", "k")


def test_without_a_side_model_there_is_no_lane() -> None:
    assert Settings.load().lane is None


def test_a_side_model_has_a_lane_of_its_own() -> None:
    settings = Settings.load(side_model="tiny", side_model_url="http://a.test/v1/", side_model_api_key="k")
    assert settings.lane == Lane("http://a.test/v1", "tiny", "k", timeout=10, total=30, concurrency=4, window=8_000)
    assert not settings.injects


def test_upstreams_by_model_may_carry_their_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "EDGEWISE_UPSTREAMS", '{"gpt-*": "https://a.test/v1", "qwen*": {"url": "http://b.test/v1", "api_key": "q"}}'
    )
    monkeypatch.setenv("EDGEWISE_ALLOW_OPEN", "true")
    routes = Settings.load().routes
    assert routes.for_model("gpt-4o") == Upstream("a.test", "https://a.test/v1")
    assert routes.for_model("qwen3") == Upstream("b.test", "http://b.test/v1", "q")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"port": "x"}, "EDGEWISE_PORT: Input should be a valid integer"),
    ({"port": 70_000}, "EDGEWISE_PORT: Input should be less than or equal to 65535"),
    ({"window": 0}, "EDGEWISE_WINDOW: "),
    ({"mode": "loud"}, "EDGEWISE_MODE: Input should be 'enforce' or 'observe'"),
    ({"upstream": "localhost:1"}, "EDGEWISE_UPSTREAM: 'localhost:1' is no plain http:// or https:// URL; give"),
    ({"upstreams": "{"}, "EDGEWISE_UPSTREAMS: is not JSON"),
    ({"upstreams": "[]"}, "EDGEWISE_UPSTREAMS: is JSON, but no object; write an object"),
    ({"upstreams": {"a*": 7}}, "EDGEWISE_UPSTREAMS['a*']: is neither a URL nor an object; write"),
    ({"upstreams": {"a*": {"uri": "http://x"}}}, "EDGEWISE_UPSTREAMS['a*']: takes 'url' and 'api_key'; got 'uri'"),
    ({"upstreams": {"a*": {}}}, "EDGEWISE_UPSTREAMS['a*']: takes 'url' and 'api_key'; got nothing"),
    ({"upstream": "http://a/v1", "api_key": "k"}, "EDGEWISE_INBOUND_KEYS: is empty while a key is injected"),
    ({"host": "0.0.0.0"}, "EDGEWISE_HOST: 0.0.0.0 is reachable from outside and no inbound key is set; bind"),  # noqa: S104 - the case
    ({"host": "example.test"}, "EDGEWISE_HOST: example.test is reachable"),
    ({"tenant_from": "cookie"}, "EDGEWISE_TENANT_FROM: 'cookie' is neither 'authorization' nor 'header:NAME'"),
    ({"tenant_from": "header: "}, "EDGEWISE_TENANT_FROM: "),
    ({"api_key": "two words"}, "EDGEWISE_API_KEY: holds a key that is empty or not printable ASCII; copy"),
    ({"inbound_keys": ("ok", "sch\u00f6n")}, "EDGEWISE_INBOUND_KEYS: holds a key"),
    ({"side_model": "tiny"}, "EDGEWISE_SIDE_MODEL_URL: is empty; give the base URL at which the side model answers"),
    ({"side_model_url": "http://a/v1"}, "EDGEWISE_SIDE_MODEL: is empty while a URL is set for it; name the model"),
    ({"side_model": "tiny", "side_model_url": "a"}, "EDGEWISE_SIDE_MODEL_URL: 'a' is no plain http:// or https:// URL"),
    ({"side_model_api_key": "two words"}, "EDGEWISE_SIDE_MODEL_API_KEY: holds a key that is empty or not printable"),
    ({"side_model_window": 100}, "EDGEWISE_SIDE_MODEL_WINDOW: Input should be greater than or equal to 1000"),
    ({"idle_timeout": 0}, "EDGEWISE_IDLE_TIMEOUT: Input should be greater than 0"),
]


@pytest.mark.parametrize(("overrides", "says"), WRONG)
def test_a_wrong_setting_is_one_line_with_place_fault_and_remedy(overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load(**overrides)
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)


def test_no_message_quotes_a_key() -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load(api_key="sk-secret with a space", inbound_keys=("sk-other",))
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_needs_no_key(host: str) -> None:
    assert Settings.load(host=host).is_loopback


@pytest.mark.parametrize("way", [{"inbound_keys": ("k",)}, {"allow_open": True}])
def test_beyond_loopback_a_key_or_the_flag_is_needed(way: dict[str, Any]) -> None:
    settings = Settings.load(host="0.0.0.0", upstream="http://a/v1", api_key="k", **way)  # noqa: S104 - the case
    assert settings.injects
    assert not settings.is_loopback


def test_a_misspelt_setting_is_noticed() -> None:
    assert strangers(["PATH", "EDGEWISE_PORT", "EDGEWISE_UPSTRAEM", "EDGEWISE_QQ", "edgewise_x"]) == [
        "EDGEWISE_QQ: is no setting; it has no effect",
        "EDGEWISE_UPSTRAEM: is no setting; did you mean EDGEWISE_UPSTREAM?",
    ]


def test_every_setting_is_documented() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.rstrip().endswith("."), name
