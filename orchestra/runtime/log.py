"""The library's logger. Nothing is printed unless the program sets logging up, as for any library."""

import logging

logger = logging.getLogger("orchestra")
logger.addHandler(logging.NullHandler())
