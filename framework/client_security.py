"""How Java's clients sign in, said in librdkafka's words: JAAS texts, key stores and trust stores."""

import re
from collections.abc import Callable, Iterator, Mapping

__all__ = ["SECURITY", "Refuse", "signed_in", "trusted"]

JAAS = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);\s*", re.DOTALL | re.IGNORECASE)
JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""", re.DOTALL)
OIDC_HANDLER = "OAuthBearerLoginCallbackHandler"
TRUST = "ssl.truststore.location"
KEYS = "ssl.keystore.location"
PASSWORD = {"username": "sasl.username", "password": "sasl.password"}
MODULES: Mapping[str, Mapping[str, str]] = {
    "PlainLoginModule": PASSWORD,
    "ScramLoginModule": PASSWORD,
    "Krb5LoginModule": {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "serviceName": "sasl.kerberos.service.name",
    },
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}
NEEDED = {"PlainLoginModule": ("password", "username"), "ScramLoginModule": ("password", "username")}

SECURITY = frozenset(
    {
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "ssl.engine.factory.class",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""The settings that this module translates; no other is touched."""


Refuse = Callable[[str, str], None]
"""Called with the name of a setting that has no counterpart, and why and what to do; no value is in it."""


def signed_in(given: Mapping[str, str], refuse: Refuse) -> dict[str, str]:
    """What Java's `sasl.` settings are in librdkafka."""
    found: dict[str, str] = {}
    for name in ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class"):
        handler = given.get(name, "").rpartition(".")[2]
        if handler == OIDC_HANDLER:
            found["sasl.oauthbearer.method"] = "oidc"
        elif handler:
            refuse(name, "is a Java class, which cannot run here: take it out, or sign in another way")
    if "sasl.jaas.config" in given:
        found |= _jaas(given["sasl.jaas.config"], lambda message: refuse("sasl.jaas.config", message))
    return found


def trusted(given: Mapping[str, str], refuse: Refuse) -> dict[str, str]:
    """What Java's stores are in librdkafka's `ssl.` settings."""
    if given.get("ssl.engine.factory.class"):
        refuse("ssl.engine.factory.class", "is a Java class, which cannot run here: take it out")
    return dict([*_trust_store(given, refuse), *_key_store(given, refuse)])


def _trust_store(given: Mapping[str, str], refuse: Refuse) -> Iterator[tuple[str, str]]:
    if "ssl.truststore.certificates" in given:
        yield "ssl.ca.pem", given["ssl.truststore.certificates"]
    if TRUST not in given:
        return
    if _kind(given, "ssl.truststore.type", TRUST) == "PEM":
        yield "ssl.ca.location", given[TRUST]
    else:
        refuse(
            TRUST,
            "is a Java trust store, which cannot be read here: export its certificates as PEM (keytool -exportcert "
            "-rfc) and name that file with ssl.ca.location",
        )


def _key_store(given: Mapping[str, str], refuse: Refuse) -> Iterator[tuple[str, str]]:
    if "ssl.keystore.key" in given:
        yield "ssl.key.pem", given["ssl.keystore.key"]
    if "ssl.keystore.certificate.chain" in given:
        yield "ssl.certificate.pem", given["ssl.keystore.certificate.chain"]
    if KEYS not in given:
        return
    kind = _kind(given, "ssl.keystore.type", KEYS)
    if kind == "PEM":
        yield "ssl.certificate.location", given[KEYS]
        yield "ssl.key.location", given[KEYS]
    elif kind == "PKCS12":
        yield KEYS, given[KEYS]
    else:
        refuse(
            KEYS,
            "is a Java key store, which cannot be read here: make it PKCS12 (keytool -importkeystore "
            "-deststoretype PKCS12) and say ssl.keystore.type=PKCS12",
        )


def _kind(given: Mapping[str, str], name: str, location: str) -> str:
    if given.get(name):
        return given[name].upper()
    suffix = given[location].rpartition(".")[2].lower()
    return {"pem": "PEM", "crt": "PEM", "p12": "PKCS12", "pfx": "PKCS12"}.get(suffix, "JKS")


def _jaas(config: str, refuse: Callable[[str], None]) -> dict[str, str]:
    found = JAAS.fullmatch(config)
    options = None if found is None else _jaas_options(found[2])
    if found is None or options is None:
        refuse('must be one line of the form: LoginModule required key="value" ... ;')
        return {}
    module = found[1].rpartition(".")[2]
    if module not in MODULES:
        refuse(f"{module} has no counterpart here: sign in with {', '.join(MODULES)}")
        return {}
    names = MODULES[module]
    missing = sorted(name for name in NEEDED.get(module, ()) if name not in options)
    if missing:
        refuse(f"names no {' and no '.join(missing)}")
    return {names[name]: value for name, value in options.items() if name in names}


def _jaas_options(text: str) -> dict[str, str] | None:
    options: dict[str, str] = {}
    place = 0
    while text[place:].strip():
        found = JAAS_OPTION.match(text, place)
        if found is None:
            return None
        quoted = found[2] if found[2] is not None else found[3]
        options[found[1]] = found[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        place = found.end()
    return options
