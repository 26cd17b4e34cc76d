"""Planning one resource as a whole, and the answer that the engine gets for it."""

from dataclasses import dataclass

from tests.rig.gcp.catalogue import ResourceType
from tests.rig.gcp.compare import Change, Comparison
from tests.rig.gcp.plan import keep_ignored, plan_object, without_marks
from tests.rig.gcp.rules import Draft, apply_rules, prepare
from tests.rig.gcp.settings import Settings
from tests.rig.gcp.values import DEFAULTS, Object, Path, format_path, plain_list, plain_object


@dataclass(frozen=True)
class Plan:
    """A planned resource and what is different from its state."""

    kind: ResourceType
    old: Object
    planned: Object
    changes: list[Change]

    @property
    def replaces(self) -> bool:
        """Whether the change needs a new resource."""
        return any(change.forces for change in self.changes)


@dataclass(frozen=True)
class Difference:
    """What Diff answers; `kinds` maps a property path to `add`, `delete`, `update`, with `-replace` for a reason."""

    changed: bool
    kinds: dict[str, str]
    properties: list[str]
    replaces: list[str]
    stables: list[str]
    delete_first: bool


def plan_create(kind: ResourceType, inputs: Object, settings: Settings) -> Object:
    """What a new resource will be; what the provider or Google fills in is unknown.

    Raises:
        PlanError: the provider refuses the plan.
    """
    wanted = prepare(kind, without_marks(inputs))
    draft = Draft(kind, wanted, {}, plan_object(kind.properties, wanted, {}, True), settings, creating=True)
    apply_rules(draft)
    return draft.planned


def plan_update(
    kind: ResourceType, inputs: Object, state: Object, settings: Settings, ignored: "list[str] | None" = None
) -> Plan:
    """What a resource will be after an update, and what changes.

    Args:
        kind: its type.
        inputs: the program's, as checked.
        state: its outputs as they were last read.
        settings: the provider's.
        ignored: the paths of `ignoreChanges`.

    Raises:
        PlanError: the provider refuses the plan.
    """
    old = {name: value for name, value in state.items() if name in kind.properties}
    if kind.labels is not None:
        old.setdefault("pulumiLabels", {})
    wanted = prepare(kind, without_marks(inputs))
    draft = Draft(kind, wanted, old, plan_object(kind.properties, wanted, old, False), settings, creating=False)
    apply_rules(draft)
    planned = keep_ignored(draft.planned, old, ignored) if ignored else draft.planned
    changes = Comparison(kind.properties, frozenset(draft.forced)).changes(old, planned)
    return Plan(kind, old, planned, changes)


def describe(plan: Plan, inputs: Object) -> Difference:
    """The plan as the bridge tells the engine."""
    replacing = plan.replaces
    kinds = {
        format_path(change.path): change.kind + ("-replace" if replacing and change.replaces else "")
        for change in plan.changes
    }
    tags = _computed_tags(plan)
    if tags is not None:
        kinds.setdefault(format_path(tags), "update-replace" if replacing else "update")
    replaces = {_top(path) for path, kind in kinds.items() if kind.endswith("-replace")}
    stables = sorted(name for name, prop in plan.kind.properties.items() if prop.force_new and name not in replaces)
    return Difference(
        changed=bool(kinds),
        kinds=kinds,
        properties=sorted({_top(path) for path in kinds}),
        replaces=sorted(replaces),
        stables=stables,
        delete_first=replacing and (plan.kind.always_delete_first or _named_by_program(plan.kind, inputs)),
    )


def _top(path: str) -> str:
    return path.split(".", 1)[0].split("[", 1)[0]


def _named_by_program(kind: ResourceType, inputs: Object) -> bool:
    if kind.autoname is None:
        return False
    name = kind.autoname.property
    return name in inputs and name not in plain_list(inputs.get(DEFAULTS))


def _computed_tags(plan: Plan) -> Path | None:
    """`nodeConfig.resourceManagerTags`, which shows up with any difference there and in every replace of a pool.

    Observed through the engine (`data/edits.json`, notes); the provider fills the map in where nobody set it.
    """
    node = plain_object(plan.planned.get("nodeConfig"))
    if plan.kind.tf_name not in ("google_container_node_pool", "google_container_cluster") or not node:
        return None
    if "resourceManagerTags" in node or not plan.changes:
        return None
    inside = any(change.path[0] == "nodeConfig" for change in plan.changes)
    pool = plan.kind.tf_name == "google_container_node_pool"
    return ("nodeConfig", "resourceManagerTags") if inside or (pool and plan.replaces) else None
