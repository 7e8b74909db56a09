"""Who is let in: certificates, users, and what of Zenoh's access control follows from them. Pure."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from orchestra.messages import shown

Where = str | os.PathLike[str]


def _path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _is_path(instance: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{attribute.name} of Tls is {value!r}: give the path of a PEM file")


@attrs.frozen(kw_only=True)
class Tls:
    """Mutual TLS: whoever connects, and whoever is connected to, shows a certificate that `ca` has signed.

    All three are paths of PEM files. `ca` has the certificates of the authorities that are trusted, and
    nobody else is: those of the system are not used. `certificate` and `key` are those of this process; the
    common name of the certificate is who it is, for `allow` of the process that listens. With `verify_name`
    (the default) who connects also checks that the certificate of the other side was made for the host that
    the endpoint names. The files are read when the orchestra starts.

    Raises TypeError for what is no path.
    """

    ca: str = attrs.field(converter=_path, validator=_is_path)
    certificate: str = attrs.field(converter=_path, validator=_is_path)
    key: str = attrs.field(converter=_path, validator=_is_path)
    verify_name: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))

    def config(self) -> dict[str, object]:
        """What Zenoh is told, for both directions."""
        at = "transport/link/tls/"
        return {
            f"{at}enable_mtls": True,
            f"{at}root_ca_certificate": self.ca,
            f"{at}listen_certificate": self.certificate,
            f"{at}listen_private_key": self.key,
            f"{at}connect_certificate": self.certificate,
            f"{at}connect_private_key": self.key,
            f"{at}verify_name_on_connect": self.verify_name,
            f"{at}close_link_on_expiration": True,
        }


def _is_name(instance: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not isinstance(value, str) or not value or ":" in value or not value.isprintable():
        raise TypeError(f"{attribute.name} of User is {value!r}: give a text without colons and line ends")


def _is_password(instance: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    """The value itself never comes into an error."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise TypeError(
            f"{attribute.name} of User is a {shown(type(value))} that cannot be one: give a text of one line"
        )


@attrs.frozen
class User:
    """A name and a password. The password is in no `repr` and in no error.

    Raises TypeError for what cannot be one: a name is text without colons, both are one line.
    """

    name: str = attrs.field(validator=_is_name)
    password: str = attrs.field(repr=False, validator=_is_password)


def dictionary(users: Iterable[User]) -> str:
    """The users as the file that Zenoh reads: a line of `name:password` each."""
    return "".join(f"{user.name}:{user.password}\n" for user in users)


_MESSAGES = (
    "put", "delete", "declare_subscriber", "query", "reply", "declare_queryable",
    "liveliness_token", "liveliness_query", "declare_liveliness_subscriber",
)  # fmt: skip


def access_control(keys: str, allow: Sequence[str | User]) -> dict[str, object]:
    """Everything is denied, except what is about `keys` to and from those in `allow`.

    A text is the common name of a certificate, a `User` one that has shown its password.
    """
    names = [each for each in allow if isinstance(each, str)]
    users = [each.name for each in allow if isinstance(each, User)]
    subjects = [
        *([{"id": "certificates", "cert_common_names": names}] if names else []),
        *([{"id": "users", "usernames": users}] if users else []),
    ]
    rule = {
        "id": "ours",
        "permission": "allow",
        "flows": ["ingress", "egress"],
        "messages": list(_MESSAGES),
        "key_exprs": [keys],
    }
    policy = {"id": "let in", "rules": ["ours"], "subjects": [subject["id"] for subject in subjects]}
    return {
        "access_control": {
            "enabled": True,
            "default_permission": "deny",
            "rules": [rule],
            "subjects": subjects,
            "policies": [policy],
        }
    }
