"""Settings, read once at start from the environment (`EDGEWISE_...`). README's table is generated from the fields.

Times are seconds, sizes bytes.
"""

import ipaddress
import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from proxy.access import Access
from proxy.ledger.places import LedgerKey, LedgerPlace
from proxy.routing import Routes, upstream_of
from proxy.sidemodel import Lane
from proxy.upstream import Timeouts

PREFIX = "EDGEWISE_"

_BY_MODEL = {"upstreams": "URL", "windows": "tokens", "tokenizers": "directory"}

Seconds = Annotated[float, Field(gt=0)]


class SettingsError(ValueError):
    """A setting cannot be used. The message is one line: the setting, what is wrong with it, what to do."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    upstream: str | None = Field(
        default=None, description="Base URL of the upstream, as a client would be given it, ending in `/v1`."
    )
    upstreams: Annotated[dict[str, Any], NoDecode] = Field(
        default_factory=dict,
        description='Upstreams by model pattern, as JSON: `{"gpt-*": "https://…/v1", "qwen*": '
        '{"url": "http://…/v1", "api_key": "…"}}`. The first match wins, `EDGEWISE_UPSTREAM` takes the rest.',
    )
    api_key: SecretStr | None = Field(
        default=None, description="Key for the upstream. When set, it replaces every credential the client sends."
    )
    inbound_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description="Keys that callers must present, separated by commas. Required beside `EDGEWISE_API_KEY`.",
    )
    allow_open: bool = Field(
        default=False,
        description="Permit an open proxy: a bind beyond loopback, or an injected key, without inbound keys.",
    )
    tenant_from: str = Field(
        default="authorization", description="Whose request it is: `authorization`, or `header:NAME` where keys rotate."
    )
    host: str = Field(
        default="127.0.0.1", description="Address to listen on. Beyond loopback, inbound keys are required."
    )
    port: int = Field(default=8400, ge=0, le=65535, description="Port to listen on; 0 lets the system choose.")
    window: Literal["auto"] | Annotated[int, Field(gt=0)] = Field(
        default="auto", description="Context window in tokens, or `auto`: known models, and what the upstream tells."
    )
    windows: Annotated[dict[str, Annotated[int, Field(gt=0)]], NoDecode] = Field(
        default_factory=dict,
        description='Windows by model pattern, as JSON: `{"qwen*": 32768}`. They go before what is known of a model.',
    )
    tokenizers: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict,
        description='Directories with `tokenizer.json` by model pattern, as JSON: `{"qwen*": "/models/qwen"}`. '
        "Needs `edgewise[tokenizer]`.",
    )
    tool_metrics: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Tools to count by name in metrics, separated by commas, `*` for any characters; all others are "
        "`other`. Empty: no tool is counted.",
    )
    policy: str = Field(default="balanced", description="Name of a preset, or path of a policy file.")
    policies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Presets and policy files that a request may ask for by name in its `Edgewise-Policy` header, "
        "separated by commas.",
    )
    allow_observe: bool = Field(
        default=False, description="Let a request ask to be only observed, by `Edgewise-Mode: observe`."
    )
    mode: Literal["enforce", "observe"] = Field(
        default="enforce", description="`observe` counts, plans and reports beside untouched traffic."
    )
    side_model: str | None = Field(
        default=None,
        description="Model that writes summaries, extracts fields and chooses tools; unset, no model is asked.",
    )
    side_model_url: str | None = Field(
        default=None, description="Base URL of the side model, ending in `/v1`. Required beside `EDGEWISE_SIDE_MODEL`."
    )
    side_model_api_key: SecretStr | None = Field(
        default=None, description="Key for the side model. Credentials of clients are never sent there."
    )
    side_model_timeout: Seconds = Field(default=10.0, description="For one question to the side model.")
    side_model_total_timeout: Seconds = Field(
        default=30.0, description="For all questions of one request; then it goes on without."
    )
    side_model_concurrency: int = Field(default=4, gt=0, description="Questions to the side model at once.")
    side_model_window: int = Field(
        default=8_000, ge=1_000, description="Tokens of one question; longer texts are cut, or not asked about."
    )
    ledger: LedgerPlace | None = Field(
        default=None,
        repr=False,  # it may hold a password
        description="Where decisions and originals are kept: a directory, `valkey://HOST:PORT/DB` (or `redis://`, "
        "`rediss://`; needs `edgewise[valkey]`), `memory`, or `off`. Unset: `edgewise` in the user's state directory.",
    )
    ledger_key: LedgerKey | None = Field(
        default=None,
        description="Key that seals what the ledger keeps: 32 characters or more, as of `openssl rand -hex 32`. "
        "Needs `edgewise[sealed]`.",
    )
    ledger_ttl: Seconds = Field(
        default=7 * 86_400.0, description="How long originals stay readable after the last request of a conversation."
    )
    ledger_max_bytes: int = Field(
        default=2 * 1024**3, gt=0, description="Size of the ledger beyond which it keeps nothing new."
    )
    ledger_timeout: Seconds = Field(
        default=1.0, description="For one operation of the ledger; then the request goes on without."
    )
    prompts: str | None = Field(
        default=None, description="Directory of prompt files that go before the shipped ones of the same name."
    )
    report_headers: bool = Field(default=True, description="Add `Edgewise-Tokens` and `Edgewise-Budget` to responses.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is logged, to stderr."
    )
    max_body_bytes: int = Field(
        default=64 * 1024 * 1024, gt=0, description="Largest chat request, in decoded bytes; beyond it 413."
    )
    max_header_bytes: int = Field(
        default=64 * 1024, gt=0, description="Request line and headers together; beyond it 431."
    )
    max_clients: int = Field(
        default=10_000, gt=0, description="Client connections at once; beyond it 503. Keep it below the limit on files."
    )
    max_connections: int = Field(default=0, ge=0, description="Upstream connections at once; 0 is no limit.")
    connect_timeout: Seconds = Field(default=5.0, description="Until the upstream accepts a connection.")
    first_byte_timeout: Seconds = Field(
        default=600.0, description="Until a response begins; a client's own `x-stainless-timeout` goes before it."
    )
    idle_timeout: Seconds = Field(
        default=300.0, description="Between two reads of a response. A stream has no total limit."
    )
    pool_idle_timeout: Seconds = Field(default=30.0, description="How long an unused upstream connection is kept.")
    keep_alive_timeout: Annotated[int, Field(gt=0)] = Field(
        default=75, description="How long an unused client connection is kept."
    )
    shutdown_timeout: Annotated[int, Field(gt=0)] = Field(
        default=120, description="How long running requests may go on after SIGTERM before they are cut."
    )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """From the environment; `overrides` by field name go before it. Raises SettingsError."""
        try:
            return cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as error:
            raise SettingsError(_one_line(error)) from None

    @field_validator("inbound_keys", "policies", "tool_metrics", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("upstreams", "windows", "tokenizers", mode="before")
    @classmethod
    def _decode(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        by_model = f"write an object of model pattern and {_BY_MODEL[info.field_name or '']}"
        try:
            decoded = json.loads(value or "{}")
        except ValueError as error:
            raise ValueError(f"is not JSON ({error}); {by_model}") from None
        if not isinstance(decoded, dict):
            raise ValueError(f"is JSON, but no object; {by_model}")
        return decoded

    @field_validator("api_key", "inbound_keys", "side_model_api_key")
    @classmethod
    def _printable(cls, value: Any) -> Any:
        keys = value if isinstance(value, tuple) else (value,)
        for key in keys:
            text = key.get_secret_value() if key is not None else "-"
            if not text or not text.isascii() or not text.isprintable() or " " in text:
                raise ValueError("holds a key that is empty or not printable ASCII; copy the key again")
        return value

    @field_validator("tenant_from")
    @classmethod
    def _known_source(cls, value: str) -> str:
        if value != "authorization" and not (value.startswith("header:") and value[7:].strip()):
            raise ValueError(f"'{value}' is neither 'authorization' nor 'header:NAME'; name one of them")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _ = self.routes, self.lane
        if self.inbound_keys or self.allow_open:
            return self
        if self.injects:
            raise ValueError(
                "EDGEWISE_INBOUND_KEYS: is empty while a key is injected, so whoever reaches the port could spend it; "
                "set inbound keys, or EDGEWISE_ALLOW_OPEN=true"
            )
        if not self.is_loopback:
            raise ValueError(
                f"EDGEWISE_HOST: {self.host} is reachable from outside and no inbound key is set; bind 127.0.0.1, "
                "set EDGEWISE_INBOUND_KEYS, or EDGEWISE_ALLOW_OPEN=true"
            )
        return self

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def injects(self) -> bool:
        return any(upstream.api_key is not None for upstream in self.routes.upstreams)

    @property
    def routes(self) -> Routes:
        key = self.api_key.get_secret_value() if self.api_key else None
        default = upstream_of("EDGEWISE_UPSTREAM", self.upstream, key) if self.upstream else None
        by_model = {
            pattern: upstream_of(f"EDGEWISE_UPSTREAMS['{pattern}']", value, key)
            for pattern, value in self.upstreams.items()
        }
        return Routes.of(default, by_model)

    @property
    def lane(self) -> Lane | None:
        """The side model's; None where none is configured."""
        if not self.side_model and not self.side_model_url:
            return None
        if not self.side_model:
            raise ValueError("EDGEWISE_SIDE_MODEL: is empty while a URL is set for it; name the model to ask there")
        if not self.side_model_url:
            raise ValueError("EDGEWISE_SIDE_MODEL_URL: is empty; give the base URL at which the side model answers")
        key = self.side_model_api_key.get_secret_value() if self.side_model_api_key else None
        upstream = upstream_of("EDGEWISE_SIDE_MODEL_URL", self.side_model_url, key)
        return Lane(
            upstream.base,
            self.side_model,
            key,
            timeout=self.side_model_timeout,
            total=self.side_model_total_timeout,
            concurrency=self.side_model_concurrency,
            window=self.side_model_window,
        )

    @property
    def access(self) -> Access:
        header = self.tenant_from.partition(":")[2].strip().lower().encode() or None
        return Access(tuple(key.get_secret_value().encode() for key in self.inbound_keys), header)

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(self.connect_timeout, self.first_byte_timeout, self.idle_timeout, self.pool_idle_timeout)


def strangers(environment: Iterable[str]) -> list[str]:
    """One line for each variable that looks like a setting and is none: a misspelt setting would go unnoticed."""
    known = [name.upper() for name in Settings.model_fields]
    lines: list[str] = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in known:
            close = get_close_matches(name.removeprefix(PREFIX), known, n=1)
            hint = f"did you mean {PREFIX}{close[0]}?" if close else "it has no effect"
            lines.append(f"{name}: is no setting; {hint}")
    return lines


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if message.startswith(PREFIX) or not first["loc"]:
        return message
    return f"{PREFIX}{str(first['loc'][0]).upper()}: {message}"
