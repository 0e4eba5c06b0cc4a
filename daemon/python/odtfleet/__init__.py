"""odt-fleet from Python: train, compare and roll out weights on fleets of microcontroller boards.

>>> from odtfleet import Fleet
>>> with Fleet("127.0.0.1:7421") as fleet:
...     run = fleet.train("rig-7", "fmnist", "rotated", epochs=5, evaluate=True).wait()
...     print(f"{run.before:.1%} -> {run.after:.1%}")
...     run.weights().export("rig-7.npz")

Fleet (fleet.py) is the way in; errors are in errors.py, settings of a run in hyper.py; `odtfleet.api` has every message of
the API for Fleet.call().
"""
from . import api
from .campaigns import Campaign, Check, Unit
from .captures import Capture, Rule, Window
from .client import Client
from .errors import (Aborted, AlreadyExists, CampaignFailed, Cancelled, DeadlineExceeded, FailedPrecondition, FleetError,
                     InternalError, InvalidArgument, JobFailed, NotFound, OutOfRange, PermissionDenied, ResourceExhausted,
                     RunFailed, Unauthenticated, Unavailable, Unimplemented, WorkFailed)
from .evaluation import Answer, Evaluation, Wrong
from .fleet import Fleet
from .hyper import Hyper
from .operations import Alert, Effective
from .runs import Epoch, Estimate, Run, Series, Telemetry
from .snapshots import Diff, Difference, LayerDifference, Restored, Snapshot
from .things import Board, Dataset, Info, Job, Model
from .watch import Change, Watch
from ._version import __version__

__all__ = ["Aborted", "Alert", "AlreadyExists", "Answer", "Board", "Campaign", "CampaignFailed", "Cancelled", "Capture", "Change", "Check",
           "Client", "Dataset", "DeadlineExceeded", "Diff", "Difference", "Effective", "Epoch", "Estimate", "Evaluation",
           "FailedPrecondition", "Fleet", "FleetError", "Hyper", "Info", "InternalError", "InvalidArgument", "Job",
           "JobFailed", "LayerDifference", "Model", "NotFound", "OutOfRange", "PermissionDenied", "ResourceExhausted",
           "Restored", "Rule", "Run", "RunFailed", "Series", "Snapshot", "Telemetry", "Unauthenticated", "Unavailable",
           "Unimplemented", "Unit", "Watch", "Window", "WorkFailed", "Wrong", "__version__", "api"]
