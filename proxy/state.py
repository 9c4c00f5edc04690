"""What requests share for the life of the process."""

from dataclasses import dataclass, field

from prometheus_client import (
    GC_COLLECTOR,
    CollectorRegistry,
    Counter,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from policies.opener import Opener
from proxy.access import Access
from proxy.planner import Planner
from proxy.readback.metrics import ReadbackMetrics
from proxy.retry import Patience
from proxy.routing import Routes
from proxy.settings import Settings
from proxy.upstream import Transport


@dataclass(frozen=True)
class State:
    """`registry` holds every metric of this app; `planner_failures` counts what failed open, `reads` what was
    read back."""

    settings: Settings
    transport: Transport
    planner: Planner
    registry: CollectorRegistry
    planner_failures: Counter
    reads: ReadbackMetrics
    routes: Routes
    access: Access
    patience: Patience = field(default_factory=Patience)
    opener: Opener = field(default_factory=Opener)

    @classmethod
    def of(cls, settings: Settings, transport: Transport, planner: Planner) -> "State":
        disable_created_metrics()  # type: ignore[no-untyped-call] # unannotated; nothing reads those series
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(GC_COLLECTOR)
        failures = Counter(
            "edgewise_planner_failures",
            "Requests whose planning broke and that were forwarded as received.",
            registry=registry,
        )
        reads = ReadbackMetrics()
        registry.register(reads)
        return cls(settings, transport, planner, registry, failures, reads, settings.routes, settings.access)
