"""What a board says: evaluations of a whole split, and single samples."""
from __future__ import annotations

import dataclasses
from typing import Any, List, Optional

from . import api
from .arrays import array
from .things import Thing, fraction, mean_loss


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A sample that was said wrongly: its number in the split, its class, and what was said."""

    index: int
    label: int
    said: int


class Evaluation(Thing):
    """Weights measured on a split, on a board."""

    @property
    def id(self) -> str:
        return self.pb.id.hex()

    @property
    def accuracy(self) -> Optional[float]:
        """0 to 1; None where there are no classes: see loss."""
        return fraction(self.pb.accuracy)

    @property
    def correct(self) -> int:
        return self.pb.accuracy.correct

    @property
    def total(self) -> int:
        return self.pb.accuracy.total

    @property
    def loss(self) -> Optional[float]:
        """Mean of a sample, in steps of the model's integer outputs, squared."""
        return mean_loss(self.pb.loss)

    @property
    def confusion(self) -> Any:
        """[classes][classes] counts, row = label, column = what was said."""
        n = int(len(self.pb.confusion) ** 0.5)
        return array([list(self.pb.confusion[i * n:(i + 1) * n]) for i in range(n)], "int64")

    @property
    def class_accuracy(self) -> List[Optional[float]]:
        """Of each class."""
        return [c / t if t else None for c, t in zip(self.pb.class_correct, self.pb.class_totals)]

    def wrong(self, label: Optional[int] = None, said: Optional[int] = None, limit: int = 1000) -> List[Wrong]:
        """Samples that were said wrongly, in the order of the split. NotFound: evaluated without samples=True."""
        answer = self.fleet.call(api.ListWrongSamplesRequest(evaluation_id=self.pb.id, label=label, said=said, count=limit))
        return [Wrong(s.index, s.label, s.said) for s in answer.samples]

    def _says(self) -> str:
        return f" {self.correct}/{self.total}" if self.total else ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a board said of one sample. outputs: int8 [outputs], logits or values. predicted: class. wanted: int8: its label,
    its targets, or what an autoencoder read; empty where it is not known."""

    index: int
    predicted: int
    outputs: Any
    wanted: Any


def answers_of(response: Any) -> List[Answer]:
    def ints(text: bytes) -> Any:
        return array([v - 256 if v > 127 else v for v in text], "int8")
    return [Answer(s.index, s.predicted, ints(s.outputs), ints(s.wanted)) for s in response.samples]
