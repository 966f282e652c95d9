"""Starts the probe in every Python process that has this folder on PYTHONPATH, then does what would be done without it.

`oomwatch-agent run` puts the folder there. The probe is loaded by its place and not by its name, because the agent may
be installed elsewhere than the trainer. Another sitecustomize, which this one hides, is run as if this were not here.
No definitions, so that nothing but `sitecustomize` itself is in the way of one; and no syntax that any Python lacks.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))

try:
    if "oomwatch_probe" not in sys.modules:
        # What importlib.util.spec_from_file_location does, without its import: it takes longer than all the rest.
        from importlib.machinery import ModuleSpec, SourceFileLoader

        _file = os.path.join(os.path.dirname(_here), "__init__.py")
        _loader = SourceFileLoader("oomwatch_probe", _file)
        _probe = type(sys)("oomwatch_probe")
        _probe.__spec__ = ModuleSpec("oomwatch_probe", _loader, origin=_file, is_package=True)
        _probe.__spec__.has_location = True
        _probe.__loader__, _probe.__file__, _probe.__package__ = _loader, _file, "oomwatch_probe"
        _probe.__path__ = _probe.__spec__.submodule_search_locations = [os.path.dirname(_file)]
        sys.modules["oomwatch_probe"] = _probe
        try:
            _loader.exec_module(_probe)
        except BaseException:
            del sys.modules["oomwatch_probe"]
            raise
    sys.modules["oomwatch_probe"].start("sitecustomize")
except Exception:  # a guest keeps its troubles to itself
    pass

try:
    from importlib.machinery import PathFinder
except ImportError:  # a Python so old that nothing of ours runs in it
    pass
else:
    # The next one, as Python would have found it. It may be a wrapper's, which looks for the next one in turn and finds
    # this file: then this is run a second time, and goes on behind the wrapper.
    _ran = sys.__dict__.setdefault("_oomwatch_sitecustomize", [os.path.abspath(__file__)])
    _places = [os.path.abspath(_entry or os.curdir) for _entry in sys.path]
    for _entry in sys.path[_places.index(_here) + 1 :] if _here in _places else []:
        _next = PathFinder.find_spec("sitecustomize", [_entry])
        if _next is not None and _next.loader is not None and _next.origin not in _ran:
            from importlib.util import module_from_spec

            _ran.append(_next.origin)
            _module = module_from_spec(_next)
            sys.modules["sitecustomize"] = _module
            _next.loader.exec_module(_module)
            break
