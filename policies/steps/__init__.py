"""The steps a policy file can name, one file each. A new step is one file plus one line here."""

from policies.step import Step
from policies.steps.cap_buckets import CapBuckets
from policies.steps.cap_tools import CapTools
from policies.steps.chunk import Chunk
from policies.steps.clip import Clip
from policies.steps.dedupe import Dedupe
from policies.steps.elide import ElideResults
from policies.steps.emergency import Emergency
from policies.steps.fit import Fit
from policies.steps.fold_json import FoldJson
from policies.steps.instructions import Instructions
from policies.steps.minify_json import MinifyJson
from policies.steps.project import Project
from policies.steps.reminder import Reminder
from policies.steps.select_tools import SelectTools
from policies.steps.supersede import Supersede
from policies.steps.tabulate import Tabulate
from policies.steps.topics import Topics
from policies.steps.window import Window

STEPS: dict[str, type[Step]] = {
    "reminder": Reminder,
    "project": Project,
    "minify-json": MinifyJson,
    "tabulate": Tabulate,
    "dedupe": Dedupe,
    "supersede": Supersede,
    "fold-json": FoldJson,
    "clip": Clip,
    "elide": ElideResults,
    "select-tools": SelectTools,
    "cap-buckets": CapBuckets,
    "cap-tools": CapTools,
    "window": Window,
    "topics": Topics,
    "emergency": Emergency,
    "fit": Fit,
    "instructions": Instructions,
    "chunk": Chunk,
}
