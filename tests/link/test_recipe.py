"""The recipe of docs/security.md makes certificates with which processes meet."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestra.errors import LinkError
from orchestra.link import Tls, ZenohLink
from orchestra.link.session import Session
from tests.link.sessions import free_port, opened, until

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_recipe_for_certificates(tmp_path: Path) -> None:
    found = re.search(
        r'^```sh title="certificates.sh"\n(.*?)^```', PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    done = subprocess.run(
        ["sh", "-c", found[1]], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr

    def tls(name: str) -> Tls:
        return Tls(ca=tmp_path / "ca.pem", certificate=tmp_path / f"{name}.pem", key=tmp_path / f"{name}.key")

    at = f"tls/127.0.0.1:{free_port()}"
    heard: list[bytes] = []
    with opened(listen=[at], tls=tls("hub"), allow=["hand"]) as hub:
        hub.subscribe("orchestra/shop/**", lambda key, payload, beside: heard.append(payload))
        with opened(connect=[at], tls=tls("hand")) as hand:
            put = hand.publisher("orchestra/shop/x", priority=5, block=True).put
            until(lambda: put(b"hello", b"") or heard)
    with opened(listen=[at], tls=tls("boss")), pytest.raises(LinkError, match="does not let this process in"):
        Session.open(ZenohLink(connect=[at], tls=tls("hand"), patience=0.5))
