"""The levels, gentlest first (DESIGN 5)."""

from enum import StrEnum


class Level(StrEnum):
    """How hard the prompt is pressed; each licenses more than the one before."""

    UNKNOWN = "unknown"  # the window is not known: counted, forwarded, never cut
    NONE = "none"
    TOOL_RESULTS = "tool_results"
    HISTORY = "history"
    TOPICS = "topics"
    EMERGENCY = "emergency"


ORDER = (Level.TOOL_RESULTS, Level.HISTORY, Level.TOPICS, Level.EMERGENCY)
