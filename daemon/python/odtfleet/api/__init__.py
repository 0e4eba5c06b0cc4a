"""Messages and enums of odt.api.v1, generated from proto/ when the package is built.

`api.RunSpec`, `api.ListBoardsRequest`, `api.RUN_STATE_RUNNING`, ... Every request goes through `Fleet.call(request)`; the
stubs (`odtfleet.api.services_pb2_grpc`) work on `Fleet.client.channel` too.
"""
import importlib
import pkgutil

_MODULES = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
            if m.name.endswith("_pb2")]
for _module in _MODULES:
    globals().update({name: value for name, value in vars(_module).items() if not name.startswith("_")
                      and name != "DESCRIPTOR" and not name.endswith("_pb2")})


def modules() -> list:
    """The generated modules, one for each file of proto/odt/api/v1."""
    return list(_MODULES)
