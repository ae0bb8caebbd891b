"""A saved model as a web page and a JSON interface: ``gcaps serve``.

The listening process (:mod:`gcaps.serve.app`) handles HTTP only. Bodies of requests are parsed, predicted and explained
by worker processes (:mod:`gcaps.serve.worker`), which share the memory of the model with their parent
(:mod:`gcaps.serve.supervisor`), and which are killed and replaced when a request takes too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.serve.app import make_app as make_app
    from gcaps.serve.limits import Limits as Limits
    from gcaps.serve.limits import ServerSettings as ServerSettings
    from gcaps.serve.supervisor import serve as serve

_HOMES = {
    "Limits": "limits",
    "ServerSettings": "limits",
    "make_app": "app",
    "serve": "supervisor",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.serve", _HOMES)
