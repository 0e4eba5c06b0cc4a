"""Calls of odtd: every method by the type of its request, with deadline, retries and request_id."""
from __future__ import annotations

import collections
import os
import pathlib
import random
import time
import uuid
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import grpc
from google.protobuf import symbol_database

from . import api
from .errors import DeadlineExceeded, FleetError, InvalidArgument, from_rpc

TIMEOUT_S = 30.0
_Call = collections.namedtuple("_Call", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"))
_MAX_MESSAGE = 256 << 20
_PAGE = 1000


def default_address() -> str:
    """Where odtctl looks: $ODT_ADDRESS, else the socket in $XDG_RUNTIME_DIR, else /run/odt-fleet/odtd.sock."""
    given = os.environ.get("ODT_ADDRESS")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own = os.path.join(runtime, "odt-fleet.sock") if runtime else ""
    return f"unix:{own}" if own and os.path.exists(own) else "unix:/run/odt-fleet/odtd.sock"


def _login_folder(address: str) -> Optional[pathlib.Path]:
    """Where `odtctl login` keeps token and ca.pem of an address."""
    if address.startswith("unix:"):
        return None
    base = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("HOME", "") and os.path.join(os.environ["HOME"], ".config"))
    name = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "_" for c in address)
    return pathlib.Path(base) / "odt" / name if base else None


def credentials_of(address: str, token: str = "", token_file: str = "", ca: str = "") -> Tuple[str, Optional[bytes]]:
    """(token, certificate of the CA): what is given, else $ODT_TOKEN and $ODT_CA, else what `odtctl login` has kept."""
    folder = _login_folder(address)
    if not token and not token_file:
        token = os.environ.get("ODT_TOKEN", "").strip()
        if not token and folder and (folder / "token").exists():
            token_file = str(folder / "token")
    if token_file:
        if os.stat(token_file).st_mode & 0o077:
            raise InvalidArgument(f"{token_file} holds a secret that others may read", remedy=f"chmod 600 {token_file}")
        token = pathlib.Path(token_file).read_text(encoding="ascii").strip()
    ca = ca or os.environ.get("ODT_CA", "")
    if not ca and folder and (folder / "ca.pem").exists():
        ca = str(folder / "ca.pem")
    host = address.rpartition(":")[0]
    if token and not ca and not (address.startswith("unix:") or host in ("localhost", "[::1]") or host.startswith("127.")):
        raise InvalidArgument(f"the token would go to {address} in clear text", remedy=f"odtctl login {address}, or ca=FILE")
    return token, pathlib.Path(ca).read_bytes() if ca else None


class _Authorized(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Sends the token with every call."""

    def __init__(self, token: str):
        self._header = ("authorization", f"Bearer {token}")

    def _with(self, details: Any) -> Any:
        return _Call(details.method, details.timeout, [*(details.metadata or []), self._header], details.credentials,
                     details.wait_for_ready, details.compression)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with(client_call_details), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with(client_call_details), request)


def _methods() -> Dict[str, Tuple[str, Any]]:
    """Full name of a request -> (path, class of the response), of all services of the API."""
    found = {}
    symbols = symbol_database.Default()
    for module in api.modules():
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                found[method.input_type.full_name] = (f"/{service.full_name}/{method.name}",
                                                      symbols.GetSymbol(method.output_type.full_name))
    return found


class Client:
    """One channel to odtd. Thread-safe."""

    def __init__(self, address: str = "", timeout: float = TIMEOUT_S, owner: str = "", token: str = "", token_file: str = "",
                 ca: str = ""):
        if timeout <= 0:
            raise InvalidArgument(f"timeout is {timeout} s; it must be over 0", field="timeout")
        self.address = address or default_address()
        self.timeout = timeout
        self._metadata = (("x-odt-owner", owner),) if owner else ()
        token, ca_pem = credentials_of(self.address, token, token_file, ca)
        self.ca_pem, self.headers = ca_pem, {"Authorization": f"Bearer {token}"} if token else {}
        options = [("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE),
                   ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2000), ("grpc.enable_http_proxy", 0)]
        self.channel = (grpc.secure_channel(self.address, grpc.ssl_channel_credentials(ca_pem), options=options) if ca_pem
                        else grpc.insecure_channel(self.address, options=options))
        if token:
            self.channel = grpc.intercept_channel(self.channel, _Authorized(token))
        self._methods = _methods()

    def close(self) -> None:
        self.channel.close()

    def method_of(self, request: Any) -> Tuple[str, Any]:
        try:
            return self._methods[request.DESCRIPTOR.full_name]
        except (AttributeError, KeyError):
            raise InvalidArgument(f"{type(request).__name__} is not a request of the API",
                                  remedy="Requests are messages of odtfleet.api, e.g. api.ListBoardsRequest().") from None

    def call(self, request: Any, timeout: Optional[float] = None) -> Any:
        """One unary call; returns its response.

        What mutates gets a request_id where it has none: all tries carry the same one, so that it happens once however
        often the line breaks. Tried again until `timeout` seconds are over: what the transport lost. An answer of odtd
        itself is final. Raises FleetError.
        """
        path, response = self.method_of(request)
        if "request_id" in request.DESCRIPTOR.fields_by_name and not request.request_id:
            request.request_id = uuid.uuid4().hex
        send = self.channel.unary_unary(path, request_serializer=type(request).SerializeToString,
                                        response_deserializer=response.FromString)
        return retry(lambda left: send(request, timeout=left, metadata=self._metadata), self.timeout if timeout is None else timeout, path)

    def stream(self, request: Any, timeout: Optional[float] = None) -> Any:
        """A server-streaming call, as gRPC gives it: iterate it (grpc.RpcError), cancel() it."""
        path, response = self.method_of(request)
        send = self.channel.unary_stream(path, request_serializer=type(request).SerializeToString,
                                         response_deserializer=response.FromString)
        return send(request, timeout=timeout, metadata=self._metadata)

    def chunks(self, request: Any, timeout: Optional[float] = None) -> Iterator[Any]:
        """The responses of a server-streaming call, with FleetError for what goes wrong."""
        call = self.stream(request, timeout)
        try:
            yield from call
        except grpc.RpcError as error:
            raise from_rpc(error, self.method_of(request)[0]) from None
        finally:
            call.cancel()

    def list(self, request: Any, items: str, limit: int = 0) -> list:
        """All pages of a List; `items` is the field of the response. limit 0: all."""
        found: list = []
        while True:
            request.page_size = min(_PAGE, limit - len(found)) if limit else _PAGE
            response = self.call(request)
            found += getattr(response, items)
            request.page_token = response.next_page_token
            if not request.page_token or (limit and len(found) >= limit):
                return found


def lost(error: FleetError) -> bool:
    """Whether the transport lost the call, so that it may be tried again."""
    return error.code in ("UNAVAILABLE", "CANCELLED") and not error.from_server


def retry(send: Callable[[float], Any], timeout: float, method: str = "") -> Any:
    """send(seconds left) until it answers, or for `timeout` seconds."""
    end, pause = time.monotonic() + timeout, 0.05
    while True:
        left = end - time.monotonic()
        try:
            return send(max(left, 0.001))
        except grpc.RpcError as rpc:
            error = from_rpc(rpc, method)
        except ValueError as closed:  # of grpc: "Cannot invoke RPC on closed channel!"
            raise InvalidArgument(str(closed), remedy="Open a Fleet of its own, or keep it open.") from None
        pause = min(pause * 2, 2.0) * random.uniform(0.8, 1.2)
        if not lost(error) or time.monotonic() + pause >= end:
            raise error
        time.sleep(pause)


def until(what: str, probe: Callable[[], Any], timeout: Optional[float], every: float = 0.1) -> Any:
    """Polls until probe() is true; returns its value. DeadlineExceeded after `timeout` seconds (None: never)."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if end is not None and time.monotonic() >= end:
            raise DeadlineExceeded(f"{what}: not within {timeout:g} s", remedy="It goes on in odtd; wait again.")
        time.sleep(every)
        every = min(every * 1.3, 1.0)
