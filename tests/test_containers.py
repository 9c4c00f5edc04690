"""What the container files say of the product is so."""

import re
from pathlib import Path

from proxy.app import create_app
from proxy.planning import planner_of
from proxy.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_every_file_means_the_port_that_is_the_default() -> None:
    port = str(Settings.model_fields["port"].default)
    assert re.findall(r"EDGEWISE_PORT=(\d+)", read("Dockerfile")) == [port]
    assert re.findall(r"EXPOSE (\d+)", read("Dockerfile")) == [port]
    assert re.findall(r'EDGEWISE_PORT: "(\d+)"', read("compose.yaml")) == [port]
    assert re.findall(r"http://127.0.0.1:(\d+)/v1", read("compose.yaml")) == [port]
    assert re.findall(r'targets: \["127.0.0.1:(\d+)"\]', read("docker/prometheus.yml")) == [port]


def test_every_variable_in_a_container_file_is_a_setting() -> None:
    known = {f"EDGEWISE_{name.upper()}" for name in Settings.model_fields}
    used = set(re.findall(r"EDGEWISE_[A-Z_]+", read("Dockerfile") + read("compose.yaml")))
    assert used - known == set()


def test_the_grace_of_compose_outlasts_the_draining_of_streams() -> None:
    (grace,) = re.findall(r"stop_grace_period: (\d+)s", read("compose.yaml"))
    assert int(grace) > Settings.model_fields["shutdown_timeout"].default


def test_every_metric_that_an_alert_reads_is_exported() -> None:
    settings = Settings.load(upstream="http://127.0.0.1:1/v1")
    registry = create_app(settings, planner=planner_of(settings)).state.registry
    endings = {"counter": ["_total"], "histogram": ["_sum", "_count"]}
    exported = {family.name + end for family in registry.collect() for end in endings.get(family.type, [""])}
    used = set(re.findall(r"edgewise_[a-z_]+", read("docker/alerts.yml")))
    assert used - exported == set()
    assert used == {
        "edgewise_client_changes_total",
        "edgewise_epochs_total",
        "edgewise_upstream_responses_total",
        "edgewise_fallbacks_total",
        "edgewise_planner_failures_total",
        "edgewise_prefix_reuse_ratio_sum",
        "edgewise_prefix_reuse_ratio_count",
    }


def test_all_that_the_image_copies_is_let_through_to_the_builder() -> None:
    admitted = {line[1:] for line in read(".dockerignore").splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", read("Dockerfile"), re.MULTILINE)
    assert {source for sources in copied for source in sources.split()} == admitted
