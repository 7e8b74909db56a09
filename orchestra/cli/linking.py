"""Where a command meets the other processes: what the options and the environment say, as a `ZenohLink`."""

import os
from pathlib import Path
from typing import Annotated, Final

import attrs
from cyclopts import Parameter

from orchestra.cli.errors import CommandError
from orchestra.link import Tls, User, ZenohLink
from orchestra.link.settings import LEASE, PATIENCE

PASSWORD: Final = "ORCHESTRA_PASSWORD"

Texts = tuple[str, ...]


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class Way:
    """Options of all that connect to others, or let others connect."""

    connect: Annotated[
        Texts,
        Parameter(
            consume_multiple=True,
            negative="",
            env_var="ORCHESTRA_CONNECT",
            help="Where others listen: tcp/HOST:PORT or tls/HOST:PORT, one or more.",
        ),
    ] = ()
    user: Annotated[
        str | None,
        Parameter(
            env_var="ORCHESTRA_USER",
            help=f"The name this process shows. Its password is read from --password-file or {PASSWORD}.",
        ),
    ] = None
    password_file: Annotated[
        Path | None, Parameter(env_var="ORCHESTRA_PASSWORD_FILE", help="A file that holds the password.")
    ] = None
    tls_ca: Annotated[
        Path | None, Parameter(env_var="ORCHESTRA_TLS_CA", help="The authorities that are trusted, as PEM.")
    ] = None
    tls_certificate: Annotated[
        Path | None,
        Parameter(env_var="ORCHESTRA_TLS_CERTIFICATE", help="The certificate of this process, as PEM."),
    ] = None
    tls_key: Annotated[
        Path | None, Parameter(env_var="ORCHESTRA_TLS_KEY", help="The key of that certificate, as PEM.")
    ] = None
    app: Annotated[
        str | None, Parameter(help="The name under which the orchestra meets, where it is not its class's.")
    ] = None
    patience: Annotated[float, Parameter(help="Seconds to wait for those that listen.")] = PATIENCE

    def link(self, **more: object) -> ZenohLink:
        """The settings. CommandError for what is wrong with them, and for files that cannot be read."""
        settings = {
            "connect": self.connect,
            "tls": self._tls(),
            "user": self._user(),
            "app": self.app,
            "patience": self.patience,
            **more,
        }
        try:
            return ZenohLink(**settings)  # type: ignore[arg-type]  # it checks each of them
        except (TypeError, ValueError) as error:
            raise CommandError(str(error)) from None

    def _tls(self) -> Tls | None:
        given = {"ca": self.tls_ca, "certificate": self.tls_certificate, "key": self.tls_key}
        missing = [f"--tls-{name}" for name, path in given.items() if path is None]
        if len(missing) == len(given):
            return None
        if missing:
            raise CommandError(f"TLS needs {' and '.join(missing)} too")
        return Tls(ca=str(self.tls_ca), certificate=str(self.tls_certificate), key=str(self.tls_key))

    def _user(self) -> User | None:
        if self.user is None:
            return None
        password = os.environ.get(PASSWORD) if self.password_file is None else _line_of(self.password_file)
        if not password:
            raise CommandError(
                f"--user {self.user} needs its password, in {PASSWORD} or in --password-file FILE"
            )
        return _user(self.user, password)


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class Door(Way):
    """Options of what may listen, too."""

    listen: Annotated[
        Texts,
        Parameter(
            consume_multiple=True,
            negative="",
            env_var="ORCHESTRA_LISTEN",
            help="Where others may connect to: tcp/HOST:PORT or tls/HOST:PORT, one or more.",
        ),
    ] = ()
    allow: Annotated[
        Texts,
        Parameter(
            consume_multiple=True,
            negative="",
            env_var="ORCHESTRA_ALLOW",
            help="The common names of certificates that may take part; others are denied everything.",
        ),
    ] = ()
    users: Annotated[
        Path | None,
        Parameter(
            env_var="ORCHESTRA_USERS",
            help="A file with a line NAME:PASSWORD for each user that may take part.",
        ),
    ] = None
    lease: Annotated[float, Parameter(help="Seconds until a process that freezes is taken for gone.")] = LEASE

    def link(self, **more: object) -> ZenohLink:
        allow = (*self.allow, *_users_of(self.users))
        return super().link(listen=self.listen, allow=allow, lease=self.lease, **more)


def _users_of(path: Path | None) -> list[User]:
    if path is None:
        return []
    lines = [line.strip() for line in _text_of(path).splitlines()]
    pairs = [line.partition(":") for line in lines if line and not line.startswith("#")]
    if not all(colon for _, colon, _ in pairs):
        raise CommandError(f"{str(path)!r} needs a line NAME:PASSWORD for each user")
    return [_user(name, password) for name, _, password in pairs]


def _user(name: str, password: str) -> User:
    try:
        return User(name, password)
    except TypeError as error:
        raise CommandError(str(error)) from None


def _line_of(path: Path) -> str:
    return _text_of(path).partition("\n")[0].strip()


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{str(path)!r} is no text in UTF-8") from None
