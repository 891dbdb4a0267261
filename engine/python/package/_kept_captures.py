"""Captures in the cache: how they speak of the program's objects, for the engine (engine/python/kept_captures.cpp)."""

import json
import sys

from . import _settings_table
from ._config import config
from ._program_names import MISSING, Unnamed, classes_among, difference, facts_of, form_of, label_of, object_of, plain_form  # noqa: F401  the engine asks for plain_form

# What never changes a capture, or is a part of its key already.
_OF_OTHERS = ("background", "break_every", "cache_captures", "cache_captures_from")


# Libraries whose functions of C are called while capturing, or whose operators are in graphs.
_LIBRARIES = ("numpy", "scipy", "torchvision", "torchaudio")


def settings():
    """All settings that are not the default's, and which libraries answer, as text."""
    defaults = config.defaults()
    ours = {name: repr(value) for name in config.names() if name not in _OF_OTHERS and (value := getattr(config, name)) != defaults[name]}
    libraries = {name: str(getattr(sys.modules[name], "__version__", "")) for name in _LIBRARIES if name in sys.modules}
    return json.dumps([ours, _settings_table.recorded_settings(), libraries], sort_keys=True)


def name_of(value):
    """Of a namespace; empty: only this process has it."""
    try:
        return json.dumps(form_of(value))
    except (Unnamed, RecursionError):
        return ""


def _only_class(base, module, qualname):
    """The class that no module holds (it was made in a function), where its base has one such subclass; MISSING: there is none, or another as well."""
    found = [one for one in type.__subclasses__(base) if label_of(one) == [module, qualname]]
    return found[0] if len(found) == 1 else MISSING


class Names:
    """Names of the objects of one capture: those that every process knows, classes that are the only ones of their name, and what the classes hold
    whose attributes it read."""

    def __init__(self, followed):
        self._held, self._keep = {}, []  # attributes of classes, by address
        self._forms = {}  # with the objects themselves, so that no address is another one's
        self._followed = [(value, names) for value, names in followed]
        for owner, names in self._followed:
            for name in names or () if isinstance(owner, type) else ():
                self._hold(owner, name)

    def _hold(self, owner, name):
        for base in type.__dict__["__mro__"].__get__(owner):
            if name in base.__dict__:
                self._keep.append(base.__dict__[name])
                self._held.setdefault(id(self._keep[-1]), ("attribute", base, name))
                return

    def _form(self, value):
        try:
            return form_of(value)
        except Unnamed:
            if isinstance(value, type):
                base, (module, qualname) = type.__dict__["__base__"].__get__(value), label_of(value)
                if isinstance(module, str) and _only_class(base, module, qualname) is value:
                    return ["class", self._form(base), module, qualname]
            if id(value) not in self._held:
                raise
            kind, base, name = self._held[id(value)]
            return [kind, self._form(base), name]

    def knows(self, value):
        try:
            self._forms[id(value)] = value, self._form(value)
        except (Unnamed, RecursionError):
            return False
        return True

    def text(self, objects):
        """By which found() finds these objects, and sees whether what the capture followed is as it was."""
        for value, _ in self._followed:
            if not self.knows(value):
                raise RuntimeError(f"{value!r} has no name outside of this process")
        forms = [self._forms[id(value)][1] if id(value) in self._forms else self._form(value) for value in objects]
        return json.dumps([forms, facts_of([*self._followed, *classes_among(objects)], lines=True, form_of=self._form)])


def _object(form):
    if form[0] not in ("attribute", "class"):
        return object_of(form)
    base = _object(form[1])
    if not isinstance(base, type):
        return MISSING
    return base.__dict__.get(form[2], MISSING) if form[0] == "attribute" else _only_class(base, *form[2:])


def found(text):
    """The objects; a text says why they are not there, or not what they were."""
    forms, facts = json.loads(text)
    if problem := difference(facts, lines=True, object_of=_object):
        return problem
    objects = [_object(form) for form in forms]
    for form, value in zip(forms, objects):
        if value is MISSING:
            return f"{'.'.join(str(part) for part in form[1:3])} is not there"
    return objects
