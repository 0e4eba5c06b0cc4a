"""Names for people, label queries, hashes as text."""
from __future__ import annotations

import difflib
from typing import Any, Callable, Dict, Iterable, List, Sequence, Union

from .errors import InvalidArgument, NotFound

LEAST_PREFIX = 6
_MAX_TERM = 128


def word(message: Any, field: str) -> str:
    """The value of an enum field without what all its values begin with: "ONLINE"."""
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    number = getattr(message, field)
    value = kind.values_by_number.get(number)
    return str(number) if value is None else value.name[len(_prefix(kind)):]


def _prefix(kind: Any) -> str:
    names = [value.name for value in kind.values]
    shared = names[0]
    for name in names[1:]:
        while not name.startswith(shared):
            shared = shared[:-1]
    return shared[:shared.rfind("_") + 1]


def number_of(kind: Any, text: str, field: str) -> Any:
    """The number of an enum's value by its word, in any case, with '-' for '_'. InvalidArgument names those there are."""
    prefix = _prefix(kind)
    words = {v.name[len(prefix):]: v.number for v in kind.values if not v.name.endswith("UNSPECIFIED")}
    wanted = str(text).upper().replace("-", "_")
    if wanted in words:
        return words[wanted]
    known = ", ".join(w.lower().replace("_", "-") for w in words)
    raise InvalidArgument(f"{field}: '{text}' is none of {known}", field=field)


def raw(value: Union[str, bytes]) -> bytes:
    """Bytes of an id, hash or uid that is given as bytes or hex."""
    return value if isinstance(value, bytes) else bytes.fromhex(value.replace("-", ""))


def find(what: str, given: str, things: Sequence[Any], key: Callable[[Any], str],
         names: Callable[[Any], Iterable[str]]) -> Any:
    """The one of `things` that `given` means: its name or alias (of several the first: lists give the newest first),
    or the beginning of its hex key, 6 digits at least. NotFound with near names; InvalidArgument: ambiguous."""
    for thing in things:
        if given in names(thing):
            return thing
    digits = given.replace("-", "").lower()
    is_hex = bool(digits) and all(c in "0123456789abcdef" for c in digits)
    found = [t for t in things if is_hex and key(t).startswith(digits)] if len(digits) >= LEAST_PREFIX else []
    exact = [t for t in found if key(t) == digits]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise InvalidArgument(f"{what} '{given}' is the beginning of {len(found)} keys",
                              remedy="Give more digits: " + ", ".join(_shortest(key(t), found, key) for t in found[:5]))
    known = [n for t in things for n in names(t) if n]
    near = difflib.get_close_matches(given, known, 3)
    if near:
        remedy = "Did you mean " + " or ".join(near) + "?"
    elif is_hex and len(digits) < LEAST_PREFIX and digits == given.lower():
        remedy = f"Beginnings of keys have at least {LEAST_PREFIX} digits."
    else:
        remedy = "There are: " + ", ".join(known[:8]) + (" ..." if len(known) > 8 else "") if known else ""
    raise NotFound(f"no {what} '{given}'", reason=f"NO_{what.upper().replace(' ', '_')}", remedy=remedy)


def _shortest(own: str, things: Sequence[Any], key: Callable[[Any], str]) -> str:
    """The beginning of a key that no other one has."""
    others = [key(t) for t in things if key(t) != own]
    return next((own[:n] for n in range(LEAST_PREFIX, len(own)) if not any(o.startswith(own[:n]) for o in others)), own)


def matches(query: str, labels: Dict[str, str], fields: Dict[str, str]) -> bool:
    """Whether a board is in the cohort: terms joined by ',', all of which hold, as in `odtctl --boards`.

    "site=lab", "site!=lab" (holds where there is no such label too), "broken" (has the label), "!broken"; "*" or "":
    all. Fields (name, place, type, core, status) come before labels; "label.x" is always a label. InvalidArgument.
    """
    if not isinstance(query, str):
        raise InvalidArgument(f"boards: {query!r} is no label query", field="boards", remedy='E.g. "site=lab,!broken".')
    if query.strip() in ("", "*"):
        return True
    terms: List[bool] = []
    for term in (t.strip() for t in query.split(",")):
        exclude, value = False, None
        if not term or len(term) > _MAX_TERM:
            _bad(query if not term else term, "has an empty term" if not term else f"is longer than {_MAX_TERM} characters")
        if "=" in term:
            at = term.index("=")
            exclude = at > 0 and term[at - 1] == "!"
            key, value = term[:at - exclude].strip(), term[at + 1:].strip()
            if key.startswith("!"):
                _bad(term, "mixes '!' and '='")
        else:
            exclude = term.startswith("!")
            key = term[exclude:].strip()
        if not key or key == "label.":
            _bad(term, "has no key")
        is_label = key.startswith("label.")
        key = key[6:] if is_label else key
        held = labels.get(key) if is_label or key not in fields else fields[key]
        terms.append((held is not None and (value is None or held == value)) != exclude)
    return all(terms)


def _bad(term: str, why: str) -> None:
    raise InvalidArgument(f"boards: '{term[:_MAX_TERM]}' {why}", reason="BAD_QUERY", field="boards",
                          remedy="Terms joined by ',': site=lab, site!=lab, broken, !broken.")
