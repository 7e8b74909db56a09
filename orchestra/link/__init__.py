"""One orchestra in several processes, over Eclipse Zenoh (the extra `zenoh`)."""

from orchestra.link.settings import ZenohLink
from orchestra.link.strangers import Tls, User

__all__ = ["Tls", "User", "ZenohLink"]
