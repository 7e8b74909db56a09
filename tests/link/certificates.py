"""Certificates for tests: an authority, and what it signs."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from orchestra.link import Tls


class Authority:
    """Signs certificates for 127.0.0.1 and writes them into a folder, as PEM files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _begun(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = self._write(f"{name}-ca.pem", certificate.public_bytes(serialization.Encoding.PEM))

    def tls(self, name: str, *, ca: str | None = None, host: str = "127.0.0.1") -> Tls:
        """A certificate of this authority for `name`, for both directions."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            _begun(_named(name), self._name, key)
            .add_extension(address, critical=False)
            .add_extension(uses, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Tls(
            ca=ca or self.ca,
            certificate=self._write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            key=self._write(f"{name}.key", private),
        )

    def _write(self, name: str, text: bytes) -> str:
        path = self.folder / name
        path.write_bytes(text)
        return str(path)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
