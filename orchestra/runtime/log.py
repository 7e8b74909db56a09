"""The library's logger.

It has no handler, so where the program sets no logging up Python shows warnings and errors on stderr: what
fails, is lost or stands still is seen by whoever has not read about it.
"""

import logging

logger = logging.getLogger("orchestra")
