"""torchvitals: see what your training is doing, while it does it.

    import monitor
    session = monitor.attach(model)

Importing this package imports neither torch nor the web server.
"""

from monitor._version import __version__
from monitor.session import Session, attach

__all__ = ["Session", "__version__", "attach"]
