"""What can go wrong: one exception class for each gRPC status, all of them `FleetError`.

`str(error)` is one sentence for people: what, which field, what to do. The parts are attributes, so that a script never
parses text: `error.reason` ("NO_BOARDS", "CANNOT_RUN", ...) is stable.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Type

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory

DOMAIN = "odt-fleet"


class FleetError(Exception):
    """Something that odtd, or the way to it, refused.

    code: gRPC status, e.g. "FAILED_PRECONDITION". reason: UPPER_SNAKE, stable. field: of the request, "" where none is
    at fault. remedy: what to do, "" where there is nothing to say. method: the call, "" where it was none.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, *, code: str = "", reason: str = "", field: str = "", remedy: str = "",
                 method: str = "", metadata: Optional[Dict[str, str]] = None, from_server: bool = False):
        self.message, self.reason, self.field, self.remedy, self.method = message, reason, field, remedy, method
        self.code = code or type(self).code
        self.metadata = dict(metadata or {})
        self.from_server = from_server  # odtd said it itself: asking again says the same
        parts = [message]
        if field and field not in message:
            parts.append(f"(field {field})")
        if reason and reason not in _CLASSES and reason != "INVALID_FIELD":
            parts.append(f"[{reason}]")
        text = " ".join(parts)
        if remedy:
            text += ("" if text.endswith((".", "]", ")")) else ".") + " " + remedy
        super().__init__(text)


class InvalidArgument(FleetError, ValueError):
    """A value that no state of things makes right. INVALID_ARGUMENT."""
    code = "INVALID_ARGUMENT"


class OutOfRange(FleetError, ValueError):
    """Past the end of something. OUT_OF_RANGE."""
    code = "OUT_OF_RANGE"


class NotFound(FleetError, LookupError):
    """No board, model, data set, snapshot, run, ... of that name. NOT_FOUND."""
    code = "NOT_FOUND"


class AlreadyExists(FleetError):
    """ALREADY_EXISTS."""
    code = "ALREADY_EXISTS"


class FailedPrecondition(FleetError):
    """The state of things does not allow it now. FAILED_PRECONDITION."""
    code = "FAILED_PRECONDITION"


class Aborted(FleetError):
    """Somebody changed the thing meanwhile (etag): read it again. ABORTED."""
    code = "ABORTED"


class ResourceExhausted(FleetError):
    """It does not fit: memory of a board, disk, a limit. RESOURCE_EXHAUSTED."""
    code = "RESOURCE_EXHAUSTED"


class PermissionDenied(FleetError):
    """PERMISSION_DENIED."""
    code = "PERMISSION_DENIED"


class Unauthenticated(FleetError):
    """UNAUTHENTICATED."""
    code = "UNAUTHENTICATED"


class Unavailable(FleetError):
    """odtd, or a board that the call needs, does not answer. UNAVAILABLE."""
    code = "UNAVAILABLE"


class DeadlineExceeded(FleetError, TimeoutError):
    """Not done within `timeout` seconds; it may still happen. DEADLINE_EXCEEDED."""
    code = "DEADLINE_EXCEEDED"


class Cancelled(FleetError):
    """CANCELLED."""
    code = "CANCELLED"


class Unimplemented(FleetError):
    """This odtd, or this board's firmware, cannot do it. UNIMPLEMENTED."""
    code = "UNIMPLEMENTED"


class InternalError(FleetError):
    """A fault of odtd: INTERNAL, UNKNOWN, DATA_LOSS."""
    code = "INTERNAL"


class WorkFailed(FleetError):
    """A run, campaign or job that was begun has not succeeded. `thing`: it, as it ended."""
    code = "WORK_FAILED"

    def __init__(self, message: str, thing: object = None, **parts: Any):
        self.thing = thing
        super().__init__(message, **parts)


class RunFailed(WorkFailed):
    """A run ended FAILED or CANCELLED."""


class CampaignFailed(WorkFailed):
    """A campaign ended FAILED or CANCELLED."""


class JobFailed(WorkFailed):
    """A job (compile, import, evaluate, export, replay) ended FAILED or CANCELLED."""


_CLASSES: Dict[str, Type[FleetError]] = {
    c.code: c for c in (InvalidArgument, OutOfRange, NotFound, AlreadyExists, FailedPrecondition, Aborted,
                        ResourceExhausted, PermissionDenied, Unauthenticated, Unavailable, DeadlineExceeded, Cancelled,
                        Unimplemented, InternalError)}


def _details():
    """Classes of google.rpc's Status, ErrorInfo and BadRequest, by their public field numbers. In a pool of their own:
    a program may hold the full googleapis package, whose files have the same names and other contents."""
    pool = descriptor_pool.DescriptorPool()
    for known in (any_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="odtfleet/errors.proto", package="odtfleet.rpc", syntax="proto3",
                                              dependency=["google/protobuf/any.proto"])
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(where, name, *fields):
        made = where.add(name=name)
        for number, (field, kind, repeated, type_name) in enumerate(fields, 1):
            made.field.add(name=field, number=number, type=kind, type_name=type_name,
                           label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL)
        return made

    text, part = kinds.TYPE_STRING, kinds.TYPE_MESSAGE
    message(file.message_type, "Status", ("code", kinds.TYPE_INT32, False, None), ("message", text, False, None),
            ("details", part, True, ".google.protobuf.Any"))
    message(file.message_type, "Pair", ("key", text, False, None), ("value", text, False, None))
    message(file.message_type, "ErrorInfo", ("reason", text, False, None), ("domain", text, False, None),
            ("metadata", part, True, ".odtfleet.rpc.Pair"))
    message(file.message_type, "Violation", ("field", text, False, None), ("description", text, False, None))
    message(file.message_type, "BadRequest", ("field_violations", part, True, ".odtfleet.rpc.Violation"))
    pool.Add(file)
    get = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: get(pool.FindMessageTypeByName(f"odtfleet.rpc.{name}")) for name in ("Status", "ErrorInfo", "BadRequest")}


_DETAILS = _details()


def from_rpc(error: grpc.RpcError, method: str = "") -> FleetError:
    """The exception for what a gRPC call raised."""
    status = error.code()
    message = error.details() or status.name.lower().replace("_", " ")
    parts: Dict[str, str] = {}
    metadata: Dict[str, str] = {}
    packed = next((v for k, v in (error.trailing_metadata() or ()) if k == "grpc-status-details-bin"), None)
    for detail in _DETAILS["Status"].FromString(packed).details if packed else ():
        kind = detail.type_url.rsplit(".", 1)[-1]
        if kind == "ErrorInfo":
            info = _DETAILS["ErrorInfo"].FromString(detail.value)
            metadata = {pair.key: pair.value for pair in info.metadata}
            parts["reason"], parts["remedy"] = info.reason, metadata.get("remedy", "")
        elif kind == "BadRequest":
            bad = _DETAILS["BadRequest"].FromString(detail.value)
            parts["field"] = bad.field_violations[0].field if bad.field_violations else ""
    if not packed and status == grpc.StatusCode.UNAVAILABLE:
        message = f"no odtd answers ({message})"
        parts["remedy"] = "Is odtd running, and is the address that of its gRPC port (odtd --grpc)?"
    elif not packed and status == grpc.StatusCode.UNIMPLEMENTED:
        parts["remedy"] = "This odtd is older than the package; install the one that it serves."
    elif status == grpc.StatusCode.DEADLINE_EXCEEDED and not packed:
        message = "no answer within the time given"
    return of_code(status.name, f"{method.rsplit('/', 1)[-1]}: {message}" if method else message, method=method,
                   metadata=metadata, from_server=packed is not None, **parts)


def of_code(code: str, message: str, **parts) -> FleetError:
    """The exception of a status by its name."""
    return _CLASSES.get(code, InternalError)(message, code=code, **parts)
