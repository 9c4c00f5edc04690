"""The steps a policy file can name, one file each. A new step is one file plus one line here."""

from importlib import import_module

from policies.step import Step


def _by_name(*places: str) -> dict[str, type[Step]]:
    """Classes by the name that a policy says; a place is file and class."""
    found = (place.split(".") for place in places)
    kinds = [getattr(import_module(f"policies.steps.{file}"), kind) for file, kind in found]
    return {kind.name: kind for kind in kinds}


STEPS = _by_name(
    "reminder.Reminder",
    "project.Project",
    "strip_base64.StripBase64",
    "minify_json.MinifyJson",
    "tabulate.Tabulate",
    "dedupe.Dedupe",
    "supersede.Supersede",
    "fold_json.FoldJson",
    "clip.Clip",
    "elide.ElideResults",
    "select_tools.SelectTools",
    "cap_buckets.CapBuckets",
    "cap_tools.CapTools",
    "window.Window",
    "topics.Topics",
    "emergency.Emergency",
    "fit.Fit",
    "instructions.Instructions",
    "chunk.Chunk",
)
