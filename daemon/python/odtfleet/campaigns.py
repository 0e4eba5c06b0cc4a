"""Campaigns: runs over a cohort of boards."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

from . import api
from .errors import CampaignFailed, DeadlineExceeded, InvalidArgument, NotFound
from .hyper import Hyper
from .lookup import number_of, word
from .runs import ENDED, Run
from .things import Named, Thing, fraction
from .watch import Watch, topic

if TYPE_CHECKING:
    from .fleet import Fleet
    from .snapshots import Snapshot

NEVER = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Check:
    """What is known of a board before a campaign starts. refusal: why it cannot take part, or "". estimate_s: of all its
    units, from measured step times; 0: never measured."""

    board: str
    ok: bool
    refusal: str
    units: int
    steps: int
    estimate_s: float
    online: bool
    effective: Any = dataclasses.field(repr=False)  # api.HyperParams


@dataclasses.dataclass(frozen=True)
class Unit:
    """One run of a campaign, or one board of a rollout. Accuracies 0..1, None: not measured."""

    index: int
    round: int
    trial: int
    board: str
    state: str
    heldout_start: Optional[float]
    heldout_best: Optional[float]
    before: Optional[float]
    after: Optional[float]
    run_id: str
    weights: str
    reason: str
    pb: Any = dataclasses.field(repr=False)  # api.CampaignUnit: settings, drift, times

    @property
    def settings(self) -> Dict[str, Any]:
        """The hyperparameters that it was asked to use, by field."""
        return {f.name: list(v) if f.label == f.LABEL_REPEATED else v for f, v in self.pb.hyper.ListFields()}


class Campaign(Thing):
    """A campaign as it was when it was read."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def name(self) -> str:
        return self.pb.spec.name

    @property
    def kind(self) -> str:
        """SAME, SWEEP, TWIN, ROLLOUT, FEDERATED."""
        return word(self.pb.spec, "kind")

    @property
    def state(self) -> str:
        """QUEUED, RUNNING, PAUSED, ROLLING_BACK, SUCCEEDED, FAILED, CANCELLED."""
        return word(self.pb, "state")

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def progress(self) -> float:
        """Share of the units that have ended, 0 to 1."""
        return self.pb.units_done / self.pb.units_total if self.pb.units_total else 0.0

    @property
    def best(self) -> Optional[Unit]:
        """Sweeps: the best trial so far."""
        if not self.pb.HasField("best_unit"):
            return None
        return next((u for u in self.units() if u.index == self.pb.best_unit), None)

    @property
    def twin(self) -> Any:
        """Twins: api.TwinResult, where B's records first differ from A's."""
        return self.pb.twin

    def result(self) -> "Snapshot":
        """The best trial's weights, the last average, or what was rolled out. NotFound: none yet."""
        if not self.pb.result:
            raise NotFound(f"campaign {self.name or self.id[:8]} is {self.state}: it has no result", reason="NO_WEIGHTS")
        return self.fleet.snapshot(self.pb.result)

    def _says(self) -> str:
        return f" {self.kind} {self.state} {self.pb.units_done}/{self.pb.units_total}"

    def refresh(self) -> "Campaign":
        self.pb = self.fleet.call(api.GetCampaignRequest(id=self.pb.id)).campaign
        return self

    def watch(self, timeout: Optional[float] = None) -> Watch:
        """Changes of all campaigns: look at value.id or value.campaign_id."""
        return Watch(self.fleet.client, [topic("campaigns")], None, timeout)

    def wait(self, timeout: Optional[float] = None, check: bool = True) -> "Campaign":
        """Until it has ended. CampaignFailed where it has not SUCCEEDED (check=False: look at `state`); DeadlineExceeded: it
        goes on."""
        try:
            if not self.refresh().ended:
                with self.watch(timeout=timeout) as changes:
                    for change in changes:
                        if change.kind == "campaign" and change.value.id == self.pb.id:
                            self.pb = change.value
                        if change.kind == "resync":
                            self.refresh()
                        if self.ended:
                            break
        except DeadlineExceeded:
            raise DeadlineExceeded(f"campaign {self.name or self.id[:8]} is {self.state} after {timeout} s",
                                   remedy="It goes on; wait again.") from None
        if check and self.state != "SUCCEEDED":
            reason = self.pb.reason
            raise CampaignFailed(f"campaign {self.name or self.id[:8]} is {self.state}: {reason.text or 'no reason told'}",
                                 self, reason=reason.code, remedy=reason.remedy)
        return self

    def units(self) -> List[Unit]:
        found = self.fleet.client.list(api.ListCampaignUnitsRequest(campaign_id=self.pb.id), "units")
        return [Unit(u.index, u.round, u.trial, u.board_uid.hex(), word(u, "state"), fraction(u.heldout_start),
                     fraction(u.heldout_best), fraction(u.before), fraction(u.after), u.run_id.hex(), u.weights.hex(),
                     u.reason.text, u) for u in found]

    def rounds(self) -> List[Any]:
        """Federated: api.CampaignRound, oldest first."""
        return list(self.fleet.call(api.ListCampaignRoundsRequest(campaign_id=self.pb.id)).rounds)

    def runs(self) -> List[Run]:
        """Of the units that have begun, by index."""
        return [self.fleet.run(u.run_id) for u in self.units() if u.run_id]

    def pause(self) -> "Campaign":
        return self._told(api.PauseCampaignRequest)

    def resume(self) -> "Campaign":
        return self._told(api.ResumeCampaignRequest)

    def cancel(self) -> "Campaign":
        return self._told(api.CancelCampaignRequest)

    def retry(self) -> "Campaign":
        """Its failed units once more; those that went well stay."""
        return self._told(api.RetryCampaignRequest)

    def delete(self) -> None:
        """Forgets a campaign that is over; its runs and snapshots stay."""
        self.fleet.call(api.DeleteCampaignRequest(id=self.pb.id))

    def _told(self, request: Any) -> "Campaign":
        self.pb = self.fleet.call(request(id=self.pb.id)).campaign
        return self


Axis = Union[str, Sequence[Any]]


class CampaignMaker:
    """The part of Fleet that begins campaigns. Of all of them: `cohort` is a label query ("site=lab,!broken"), `boards` are
    boards by name or key (both: their union); `datasets` {board: data set} says what a board trains on in place of `data`;
    `settings` are those of Hyper. dry_run=True: a Check for each board, nothing is begun.

    Raises InvalidArgument, NotFound, FailedPrecondition (NO_BOARDS, CANNOT_RUN: the first board that cannot)."""

    def same_run(self, cohort: str = "", model: Named = "", data: Named = "", *, boards: Sequence[Named] = (),
                 dry_run: bool = False, **more: Any) -> Any:
        """The same run on each board: Campaign; dry_run: list of Check. `more`: name, start, evaluate, datasets,
        max_parallel, resume_deadline_s, hyper and the settings of Hyper."""
        return self._begin(self._spec("same", cohort, boards, model, data, more), dry_run)

    def sweep(self, axes: Dict[str, Axis], cohort: str = "", model: Named = "", data: Named = "", *,
              strategy: str = "grid", trials: int = 0, sweep_seed: int = 0, eta: int = 0, min_epochs: int = 0,
              budget_board_s: int = 0, boards: Sequence[Named] = (), dry_run: bool = False, **more: Any) -> Any:
        """Trials of settings over a work queue of the boards. axes: {"mu_weight": [2, (1, -1, -3)], "batch": [8, 16],
        "k": "4..8"}; names are those of api.SweepAxis. strategy: "grid" (every combination), "random" (`trials` of them, drawn
        with `sweep_seed`), "halving" (the best 1/eta go on with eta times the epochs). Campaign; dry_run: list of Check."""
        spec = self._spec("sweep", cohort, boards, model, data, more)
        s = spec.sweep
        s.strategy = number_of(s.DESCRIPTOR.fields_by_name["strategy"].enum_type, strategy, "strategy")
        s.trials, s.seed, s.eta, s.min_epochs, s.budget_board_s = trials, sweep_seed, eta, min_epochs, budget_board_s
        for name, values in axes.items():
            s.axes.add(name={"trainable": "trainable_layers", "seed": "order_seed"}.get(name, name),
                       values=[values] if isinstance(values, str) else [setting_text(v) for v in values])
        return self._begin(spec, dry_run)

    def twin(self, a: Named, b: Optional[Named] = None, model: Named = "", data: Named = "", *,
             b_settings: Optional[Dict[str, Any]] = None, dry_run: bool = False, **more: Any) -> Any:
        """Two runs of one start and order that differ in one thing: the board (b), or b_settings. Campaign, whose `twin` says
        where their records first differ; dry_run: list of Check."""
        hyper = Hyper.of(more.pop("hyper", None), {k: more.pop(k) for k in list(more) if k in Hyper.__dataclass_fields__})
        spec = self._spec("twin", "", [a, a if b is None else b], model, data, {**more, "hyper": hyper})
        if b_settings:
            spec.hyper_b.CopyFrom(Hyper.of(hyper, b_settings).message())
        return self._begin(spec, dry_run)

    def rollout(self, snapshot: Named, cohort: str = "", data: Named = "", *, boards: Sequence[Named] = (),
                canary: float = 0.1, phases: Sequence[float] = (), max_drop: float = 0.02, split: str = "",
                commit: bool = False, dry_run: bool = False, **more: Any) -> Any:
        """A snapshot to each board in phases: first a share of `canary` (0..1, one board at least), then up to each cumulative
        share of `phases`. Where the held-out accuracy of a board falls by more than max_drop (0..1) everything is rolled
        back. commit: into non-volatile memory at the end. Campaign; dry_run: list of Check."""
        spec = self._spec("rollout", cohort, boards, "", data, more)
        r = spec.rollout
        r.snapshot = self.snapshot(snapshot).pb.hash  # type: ignore[attr-defined]
        r.canary_ppm, r.max_drop_ppm = _ppm("canary", canary), max(_ppm("max_drop", max_drop), 1)
        r.phases_ppm.extend(_ppm("phases", p) for p in phases)
        r.split, r.commit = split, commit
        return self._begin(spec, dry_run)

    def federated(self, rounds: int, cohort: str = "", model: Named = "", data: Named = "", *,
                  boards: Sequence[Named] = (), min_boards: int = 0, deadline_s: int = 0, outlier: float = 3.0,
                  personalise_epochs: int = 0, dry_run: bool = False, **more: Any) -> Any:
        """Rounds of training on each board and exact integer averages, weighted by samples. outlier: a drift of so many times
        the median is left out, 0: never. personalise_epochs: at the end each board trains on from the average.
        Campaign; dry_run: list of Check."""
        spec = self._spec("federated", cohort, boards, model, data, more)
        f = spec.federated
        f.rounds, f.min_boards, f.deadline_s, f.personalise_epochs = rounds, min_boards, deadline_s, personalise_epochs
        if outlier and not 1 <= outlier <= 1e6:
            raise InvalidArgument(f"outlier: {outlier}; allowed 1 to 1000000, or 0: never", field="outlier")
        f.outlier_q8 = round(outlier * 256) if outlier else NEVER
        return self._begin(spec, dry_run)

    def campaigns(self, filter: str = "", limit: int = 0) -> List[Campaign]:
        """Newest first. filter: "state=RUNNING"."""
        found = self.client.list(api.ListCampaignsRequest(filter=filter), "campaigns", limit)  # type: ignore[attr-defined]
        return [Campaign(self, c) for c in found]  # type: ignore[arg-type]

    def campaign(self, which: Named) -> Campaign:
        """By name, or beginning of the id."""
        return self._one("campaign", which, Campaign, self.campaigns)  # type: ignore[attr-defined]

    def _spec(self, kind: str, cohort: str, boards: Sequence[Named], model: Named, data: Named, more: dict) -> Any:
        fleet: "Fleet" = self  # type: ignore[assignment]
        more = dict(more)
        spec = api.CampaignSpec(name=more.pop("name", ""), query=cohort, evaluate=more.pop("evaluate", False),
                                max_parallel=more.pop("max_parallel", 0),
                                resume_deadline_s=more.pop("resume_deadline_s", 0),
                                boards=[fleet.board(b).pb.uid for b in boards])
        spec.kind = number_of(spec.DESCRIPTOR.fields_by_name["kind"].enum_type, kind, "kind")
        if model:
            spec.model_hash = fleet.model(model).pb.hash
        elif kind != "rollout":
            raise InvalidArgument("model: none is given", field="model")
        if data:
            spec.dataset_id = fleet.dataset(data).pb.id
        for board, own in (more.pop("datasets", None) or {}).items():
            spec.datasets.add(board_uid=fleet.board(board).pb.uid, dataset_id=fleet.dataset(own).pb.id)
        start = more.pop("start", None)
        if start is not None:
            spec.start_snapshot = fleet.snapshot(start).pb.hash
        hyper = Hyper.of(more.pop("hyper", None), more)
        if kind != "rollout":
            spec.hyper.CopyFrom(hyper.message())
        return spec

    def _begin(self, spec: Any, dry_run: bool) -> Any:
        fleet: "Fleet" = self  # type: ignore[assignment]
        answer = fleet.call(api.CreateCampaignRequest(spec=spec, dry_run=dry_run))
        if not dry_run:
            return Campaign(fleet, answer.campaign)
        return [Check(c.board_uid.hex(), not c.refusal.code, c.refusal.text, c.units, c.steps, c.estimate_us / 1e6,
                      c.online, c.effective) for c in answer.checks]


def setting_text(value: Any) -> str:
    """A value of a setting or a sweep's axis as the API has it: 2, (1, -1, -3), "half-up", True."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "/".join(map(str, value))
    return str(value)


def _ppm(name: str, share: float) -> int:
    if not 0 <= share <= 1:
        raise InvalidArgument(f"{name}: {share}; a share is 0 to 1", field=name)
    return round(share * 1_000_000)
