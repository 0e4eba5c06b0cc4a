"""Hyperparameters of a run."""
from __future__ import annotations

import dataclasses
import difflib
import math
from typing import Any, Optional, Sequence, Union

from . import api
from .errors import InvalidArgument
from .lookup import number_of

OneOrThree = Union[int, Sequence[int]]
Rate = Union[float, Sequence[float]]


@dataclasses.dataclass
class Hyper:
    """What a run is told. None: the policy's default. odtd checks every range and says what is allowed.

    With policy "auto" (default) mu, batch, k and loss are chosen by the held-out accuracy before training; "fixed" takes
    everything as given.
    """

    policy: Optional[str] = None  # "auto", "fixed"
    epochs: Optional[int] = None  # passes over the training samples
    batch: Optional[int] = None  # samples a step, 1..the board's max_batch
    mu_weight: Optional[OneOrThree] = None  # shift of the weight update: one, or three by thirds of the run
    mu_offset: Optional[int] = None  # the same for offsets, -8..7
    k: Optional[int] = None  # bits of the stored weights, 2..16
    layer_k: Optional[Sequence[int]] = None  # per trainable layer; 0: k
    rounding: Optional[str] = None  # of the update: "half-up", "half-away", "psto", "sr"
    loss: Optional[str] = None  # "ce", "mse"
    rule: Optional[str] = None  # "niti", "niti-literal", "dfp16"
    shift_source: Optional[str] = None  # "exact", "stale"
    dead_zone: Optional[int] = None  # updates below are none
    seed: Optional[int] = None  # order of the samples
    sr_seed: Optional[int] = None  # of stochastic rounding
    guard: Optional[bool] = None  # False: keep the last weights, even if they became worse
    telemetry_every: Optional[int] = None  # a record every so many steps
    checkpoint_epochs: Optional[int] = None  # state to the host every so many epochs
    commit_every: Optional[int] = None  # state to the board's own memory every so many steps
    streamed: Optional[bool] = None  # batches from the host; the board keeps no samples
    best_on_host: Optional[bool] = None  # the guard's best weights stay with odtd
    frozen: Optional[bool] = None  # outputs of the frozen part in place of the samples
    apt: Union[bool, str, None] = None  # adaptive precision: True or "quarters", "epochs"
    apt_k_max: Optional[int] = None  # most bits, 2..16
    apt_t_min: Optional[float] = None  # mean update in steps below: one bit more; default 0.3
    apt_t_max: Optional[float] = None  # above: one bit less; at least 4 apt_t_min; default never
    apt_offsets: Optional[bool] = None  # offsets have a precision of their own
    lr: Optional[Rate] = None  # dfp16: rate on a batch's summed gradient, one or three by thirds
    blocked: Optional[bool] = None  # dfp16: an exponent per output

    @classmethod
    def of(cls, hyper: Optional["Hyper"], settings: dict) -> "Hyper":
        """`hyper` with `settings` over it. InvalidArgument: a setting that there is not."""
        known = [f.name for f in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise InvalidArgument(f"no setting '{name}'", field=name, remedy=f"Did you mean {near[0]}?" if near else
                                      "There are: " + ", ".join(known))
        return dataclasses.replace(hyper or cls(), **settings)

    def message(self) -> Any:
        """As the API has it."""
        h = api.HyperParams()
        plain = ("epochs", "batch", "mu_offset", "k", "dead_zone", "sr_seed", "guard", "telemetry_every",
                 "checkpoint_epochs", "commit_every", "streamed", "best_on_host", "frozen", "apt_k_max", "apt_offsets",
                 "blocked")
        for name in plain:
            _put(h, name, getattr(self, name))
        _put(h, "order_seed", self.seed, "seed")
        for name, field in (("policy", "policy"), ("rounding", "rounding"), ("loss", "loss"), ("rule", "rule_set"),
                            ("shift_source", "shift_source")):
            if getattr(self, name) is not None:
                setattr(h, field, number_of(h.DESCRIPTOR.fields_by_name[field].enum_type, getattr(self, name), name))
        if self.mu_weight is not None:
            _extend(h, "mu_weight", [self.mu_weight] if isinstance(self.mu_weight, int) else self.mu_weight)
        if self.layer_k is not None:
            _extend(h, "layer_k", self.layer_k)
        if self.apt:
            h.apt = number_of(h.DESCRIPTOR.fields_by_name["apt"].enum_type,
                              "quarters" if self.apt is True else self.apt, "apt")
        for name in ("apt_t_min", "apt_t_max"):
            if getattr(self, name) is not None:
                _put(h, name + "_q8", round(getattr(self, name) * 256), name)
        if self.lr is not None:
            self._put_rate(h)
        return h

    def _put_rate(self, h: Any) -> None:
        """Rates as lr_m * 2^-lr_s with one exponent, the largest with 15 bits."""
        rates = [self.lr] if isinstance(self.lr, (int, float)) else list(self.lr or ())
        s = 0
        while rates and s < 40 and round(math.ldexp(max(rates), s + 1)) <= 32767:
            s += 1
        for rate in rates:
            m = round(math.ldexp(rate, s))
            if not 1 <= m <= 32767:
                raise InvalidArgument(f"lr: {rate} cannot be written as m * 2^-{s} with m from 1 to 32767", field="lr",
                                      remedy="Rates are 1e-12 to 32767, not over 15 bits apart.")
            h.lr_m.append(m)
        h.lr_s = s


def _put(message: Any, field: str, value: Any, name: str = "") -> None:
    if value is None:
        return
    try:
        setattr(message, field, value)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{name or field}: {value!r} is no value for it ({error})", field=name or field) from None


def _extend(message: Any, field: str, values: Any) -> None:
    try:
        getattr(message, field).extend(values)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{field}: {values!r} is no value for it ({error})", field=field) from None
