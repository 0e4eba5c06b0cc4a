"""Alerts, and settings by scope."""
from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import api
from .campaigns import setting_text
from .errors import InvalidArgument
from .lookup import number_of, word
from .things import Named, Thing

if TYPE_CHECKING:
    from .fleet import Fleet


class Alert(Thing):
    """Something that may need a person: one for each rule and subject; it closes by itself when its condition has ended."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def rule(self) -> str:
        """OFFLINE, STUCK, ACCURACY_DROP, DEAD_LAYER, SATURATION, CRC_RATE, DISK, FIRMWARE_SKEW."""
        return word(self.pb, "rule")

    @property
    def firing(self) -> bool:
        return self.pb.state == api.ALERT_STATE_FIRING

    @property
    def severity(self) -> str:
        """WARNING, CRITICAL."""
        return word(self.pb, "severity")

    @property
    def subject(self) -> str:
        """The board's name, "disk"."""
        return self.pb.subject

    @property
    def text(self) -> str:
        return self.pb.reason.text

    @property
    def acknowledged(self) -> bool:
        return self.pb.ack_time_us != 0

    def _says(self) -> str:
        return f" {self.rule} {self.subject} {'firing' if self.firing else 'over'}"

    def acknowledge(self, note: str = "") -> "Alert":
        """Somebody looks after it, until it fires again. FailedPrecondition: it does not fire."""
        self.pb = self.fleet.call(api.AcknowledgeAlertRequest(id=self.pb.id, note=note)).alert
        return self


@dataclasses.dataclass(frozen=True)
class Effective:
    """What a run on a board would take for a key. value: "" where nothing is set (the policy's default). scope: BOARD, COHORT,
    BOARD_TYPE, FLEET, or "". reported: what the board's last run was told; "": none."""

    value: str
    scope: str
    reported: str
    pb: Any = dataclasses.field(repr=False)


class Operations:
    """The part of Fleet for alerts and settings. Settings are defaults of runs: the most specific scope wins (board, cohort,
    board type, fleet). Scope of a call: board=, cohort= (a label query), board_type=, or none of them: the fleet."""

    def alerts(self, filter: str = "") -> List[Alert]:
        """Newest first. filter: "state=firing", "rule=offline"."""
        found = self.client.list(api.ListAlertsRequest(filter=filter), "alerts")  # type: ignore[attr-defined]
        return [Alert(self, a) for a in found]  # type: ignore[arg-type]

    def silence(self, seconds: float, rule: str = "", board: Optional[Named] = None, note: str = "") -> Any:
        """Alerts of a rule, of a board, or of both stay out of the webhook for so long. Returns api.AlertSilence."""
        fleet: "Fleet" = self  # type: ignore[assignment]
        request = api.SilenceAlertsRequest(until_time_us=int((time.time() + seconds) * 1e6), note=note,
                                           board_uid=b"" if board is None else fleet.board(board).key)
        if rule:
            request.rule = number_of(request.DESCRIPTOR.fields_by_name["rule"].enum_type, rule, "rule")
        return fleet.call(request).silence

    def settings(self, filter: str = "") -> List[Any]:
        """api.Setting, by scope, target and key. filter: "scope=cohort", "key=batch"."""
        return self.client.list(api.ListSettingsRequest(filter=filter), "settings")  # type: ignore[attr-defined]

    def set_setting(self, key: str, value: Any, *, board: Optional[Named] = None, cohort: str = "", board_type: str = "") -> int:
        """A default for runs that do not say otherwise: set_setting("mu_weight", (1, -1, -3), cohort="site=lab"). Returns how many
        known boards it applies to. InvalidArgument: no such key, or no value of it."""
        fleet: "Fleet" = self  # type: ignore[assignment]
        return fleet.call(api.SetSettingRequest(setting=self._setting(key, setting_text(value), board, cohort, board_type))).boards

    def unset_setting(self, key: str, *, board: Optional[Named] = None, cohort: str = "", board_type: str = "") -> None:
        fleet: "Fleet" = self  # type: ignore[assignment]
        fleet.call(api.UnsetSettingRequest(setting=self._setting(key, "", board, cohort, board_type)))

    def effective_settings(self, board: Named) -> Dict[str, Effective]:
        """By key: what a run on the board would take, and from where."""
        fleet: "Fleet" = self  # type: ignore[assignment]
        found = fleet.call(api.GetEffectiveSettingsRequest(board_uid=fleet.board(board).key)).settings
        return {s.key: Effective(s.desired, word(s.source, "scope") if s.HasField("source") else "", s.reported, s) for s in found}

    def _setting(self, key: str, value: str, board: Optional[Named], cohort: str, board_type: str) -> Any:
        fleet: "Fleet" = self  # type: ignore[assignment]
        if (board is not None) + bool(cohort) + bool(board_type) > 1:
            raise InvalidArgument("board, cohort, board_type: give one scope", field="setting.scope")
        scope = "board" if board is not None else "cohort" if cohort else "board-type" if board_type else "fleet"
        made = api.Setting(key=key, value=value, target=cohort or board_type,
                           board_uid=b"" if board is None else fleet.board(board).key)
        made.scope = number_of(made.DESCRIPTOR.fields_by_name["scope"].enum_type, scope, "scope")
        return made
