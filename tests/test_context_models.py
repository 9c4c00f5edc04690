import json

import pytest
from pydantic import ValidationError
from support.plans import long, plan, record

from policies.plan import Level
from proxy.context_models import LevelName, PastRequest
from proxy.objects import record_object


def test_levels_are_those_of_the_core() -> None:
    assert list(LevelName.__args__) == [level.value for level in Level]  # type: ignore[attr-defined] # typing's own


def test_a_member_that_is_not_documented_is_found() -> None:
    told = json.loads(record_object(record(plan(long()), mode="observe")))
    assert PastRequest.model_validate(told).planned == told["planned"]
    with pytest.raises(ValidationError, match="extra"):
        PastRequest.model_validate(told | {"new": 1})
