"""What people do with Strongroom through hvac, each story in hvac's own shapes. Usage: stories.py STORY

VAULT_ADDR and VAULT_TOKEN say where and as whom. Ends with 0 when everything was as hvac's users expect.
"""

import base64
import hashlib
import os
import sys
import uuid

import hvac
from hvac import exceptions

client = hvac.Client()
transit = client.secrets.transit


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def fresh(prefix="k"):
    return prefix + uuid.uuid4().hex[:12]


def refused(kind, call, *args, **kwargs):
    """The call must be refused with hvac's exception of that kind; answers its text."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError("the call was not refused")


def status():
    assert client.is_authenticated()
    assert not hvac.Client(token="hvs.nonsense").is_authenticated()
    assert client.sys.is_initialized() and not client.sys.is_sealed()
    assert client.sys.read_health_status().status_code == 200  # sent as HEAD
    assert client.sys.read_health_status(method="GET")["initialized"] is True
    assert client.sys.read_seal_status()["version"].split(".")[0] == "1"
    assert client.sys.read_leader_status()["ha_enabled"] is False


def keys():
    name = fresh()
    transit.create_key(name=name)
    transit.create_key(name=fresh(), key_type="ed25519", exportable=True, allow_plaintext_backup=True)
    assert name in transit.list_keys()["data"]["keys"]  # sent as LIST
    read = transit.read_key(name=name)["data"]
    assert read["type"] == "aes256-gcm96" and read["latest_version"] == 1 and list(read["keys"]) == ["1"]
    transit.rotate_key(name=name)
    transit.rotate_key(name=name)
    assert transit.read_key(name=name)["data"]["latest_version"] == 3
    transit.update_key_configuration(name=name, min_decryption_version=2, min_encryption_version=3)
    assert list(transit.read_key(name=name)["data"]["keys"]) == ["2", "3"]
    assert "deletion is not allowed" in refused(exceptions.InvalidRequest, transit.delete_key, name=name)
    transit.update_key_configuration(name=name, deletion_allowed=True)
    assert transit.delete_key(name=name).status_code == 204
    refused(exceptions.InvalidPath, transit.read_key, name=name)


def cipher():
    name = fresh()
    transit.create_key(name=name, key_type="aes256-gcm96")
    sealed = transit.encrypt_data(name=name, plaintext=encoded("hi"))["data"]["ciphertext"]
    assert transit.decrypt_data(name=name, ciphertext=sealed)["data"]["plaintext"] == encoded("hi")
    transit.rotate_key(name=name)
    rewrapped = transit.rewrap_data(name=name, ciphertext=sealed)["data"]["ciphertext"]
    assert rewrapped.startswith("vault:v2:")
    assert transit.decrypt_data(name=name, ciphertext=rewrapped)["data"]["plaintext"] == encoded("hi")
    batch = [{"plaintext": encoded(text)} for text in "abc"]
    results = transit.encrypt_data(name=name, plaintext=None, batch_input=batch)["data"]["batch_results"]
    items = [{"ciphertext": one["ciphertext"]} for one in results]
    opened = transit.decrypt_data(name=name, ciphertext=None, batch_input=items)
    assert [one["plaintext"] for one in opened["data"]["batch_results"]] == [encoded(text) for text in "abc"]
    text = refused(exceptions.InvalidRequest, transit.decrypt_data, name=name, ciphertext=sealed[:-4])
    assert "message authentication failed" in text or "base64" in text
    upserted = transit.encrypt_data(name=fresh(), plaintext=encoded("hi"), type="aes256-gcm96")
    assert upserted["data"]["ciphertext"].startswith("vault:v1:")


def signatures():
    for key_type, extra in [
        ("ecdsa-p256", {}),
        ("ecdsa-p256", {"marshaling_algorithm": "jws"}),
        ("ed25519", {}),
        ("rsa-2048", {"signature_algorithm": "pss"}),
        ("rsa-2048", {"signature_algorithm": "pkcs1v15", "hash_algorithm": "sha2-512"}),
        ("rsa-2048", {"hash_algorithm": "sha2-384"}),
    ]:
        name = fresh()
        transit.create_key(name=name, key_type=key_type)
        signature = transit.sign_data(name=name, hash_input=encoded("hi"), **extra)["data"]["signature"]
        for message, valid in [("hi", True), ("ho", False)]:
            answer = transit.verify_signed_data(name=name, hash_input=encoded(message), signature=signature, **extra)
            assert answer["data"]["valid"] is valid, (key_type, extra, message)


def macs():
    name = fresh()
    transit.create_key(name=name)
    for algorithm in [None, "sha2-224", "sha2-256", "sha2-384", "sha2-512"]:
        hmac = transit.generate_hmac(name=name, hash_input=encoded("hi"), algorithm=algorithm)["data"]["hmac"]
        answer = transit.verify_signed_data(name=name, hash_input=encoded("hi"), hmac=hmac, hash_algorithm=algorithm)
        assert answer["data"]["valid"] is True, algorithm


def keyless():
    assert len(base64.b64decode(transit.generate_random_bytes(n_bytes=24)["data"]["random_bytes"])) == 24
    assert len(transit.generate_random_bytes(n_bytes=8, output_format="hex")["data"]["random_bytes"]) == 16
    answer = transit.hash_data(hash_input=encoded("hello"), algorithm="sha2-256", output_format="hex")
    assert answer["data"]["sum"] == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def moving():
    name, copy = fresh(), fresh()
    transit.create_key(name=name, exportable=True, allow_plaintext_backup=True)
    transit.rotate_key(name=name)
    every = transit.export_key(name=name, key_type="encryption-key")["data"]["keys"]
    assert sorted(every) == ["1", "2"] and len(base64.b64decode(every["1"])) == 32
    assert transit.export_key(name=name, key_type="encryption-key", version="latest")["data"]["keys"] == {"2": every["2"]}
    assert list(transit.export_key(name=name, key_type="hmac-key", version=1)["data"]["keys"]) == ["1"]
    refused(exceptions.InvalidRequest, transit.export_key, name=name, key_type="signing-key")
    sealed = transit.encrypt_data(name=name, plaintext=encoded("hi"))["data"]["ciphertext"]
    backup = transit.backup_key(name=name)["data"]["backup"]
    assert "already exists" in refused(exceptions.InvalidRequest, transit.restore_key, backup=backup, name=name)
    assert transit.restore_key(backup=backup, name=copy).status_code == 204
    assert transit.restore_key(backup=backup, force=True).status_code == 204
    assert transit.decrypt_data(name=copy, ciphertext=sealed)["data"]["plaintext"] == encoded("hi")
    refused(exceptions.InvalidRequest, transit.trim_key, name=name, min_version=2)
    transit.update_key_configuration(name=name, min_decryption_version=2)
    transit.update_key_configuration(name=name, min_encryption_version=2)
    transit.trim_key(name=name, min_version=2)
    assert transit.read_key(name=name)["data"]["min_available_version"] == 2


def derived():
    name, context = fresh(), encoded("mine")
    transit.create_key(name=name, convergent_encryption=True, derived=True)
    pair = {"name": name, "context": context}
    first, second = (transit.encrypt_data(plaintext=encoded("hi"), **pair)["data"]["ciphertext"] for _ in range(2))
    assert first == second
    assert transit.decrypt_data(ciphertext=first, **pair)["data"]["plaintext"] == encoded("hi")
    refused(exceptions.InvalidRequest, transit.decrypt_data, name=name, ciphertext=first)
    for kind in ["plaintext", "wrapped"]:
        made = transit.generate_data_key(key_type=kind, bits=512, **pair)["data"]
        opened = transit.decrypt_data(ciphertext=made["ciphertext"], **pair)["data"]["plaintext"]
        assert len(base64.b64decode(opened)) == 64 and made.get("plaintext", opened) == opened
        assert ("plaintext" in made) == (kind == "plaintext")
    signer = {"name": fresh(), "hash_input": encoded("hi"), "context": context}
    transit.create_key(name=signer["name"], key_type="ed25519", derived=True)
    signature = transit.sign_data(**signer)["data"]["signature"]
    assert transit.verify_signed_data(signature=signature, **signer)["data"]["valid"] is True


def mounts():
    path = fresh("m")
    client.sys.enable_secrets_engine(backend_type="transit", path=path, description="mine")
    listed = client.sys.list_mounted_secrets_engines()
    assert listed["data"][path + "/"]["description"] == "mine" and listed[path + "/"]["type"] == "transit"
    transit.create_key(name="a", mount_point=path)
    assert transit.list_keys(mount_point=path)["data"]["keys"] == ["a"]
    text = refused(exceptions.InvalidRequest, client.sys.enable_secrets_engine, backend_type="transit", path=path)
    assert "path is already in use" in text
    client.sys.disable_secrets_engine(path=path)
    refused(exceptions.InvalidPath, transit.read_key, name="a", mount_point=path)


def polled():
    """What monitoring asks."""
    made = client.auth.token.create(policies=["default"], ttl="10m", explicit_max_ttl="1000h")
    own = client.auth.token.lookup(made["auth"]["client_token"])["data"]
    assert own["explicit_max_ttl"] == 3_600_000 and own["creation_ttl"] == 600
    path = own["path"]
    listed = client.sys.list_leases(prefix=path)["data"]["keys"]
    leases = [client.sys.read_lease(lease_id=f"{path}/{key}")["data"] for key in listed]
    [mine] = [lease for lease in leases if lease["expire_time"] == own["expire_time"]]
    assert mine["renewable"] and mine["ttl"] <= 600
    client.sys.revoke_lease(lease_id=mine["id"])
    refused(exceptions.Forbidden, client.auth.token.lookup, made["auth"]["client_token"])
    assert client.sys.get_encryption_key_status()["data"]["term"] >= 1
    summed = client.write("sys/tools/hash/sha2-256", input=encoded("hello"))["data"]["sum"]
    assert summed == hashlib.sha256(b"hello").hexdigest()
    drawn = client.write("sys/tools/random/9", format="hex")["data"]["random_bytes"]
    assert len(bytes.fromhex(drawn)) == 9
    counters = client.read("sys/internal/counters/tokens")["data"]["counters"]
    assert counters["service_tokens"]["total"] >= 1
    assert "transit" in client.read("sys/plugins/catalog")["data"]["secret"]
    assert client.read("sys/replication/status")["data"]["dr"]["mode"] == "disabled"


def access():
    name, policy = fresh(), fresh("p")
    transit.create_key(name=name)
    rule = {"path": {"transit/encrypt/" + name: {"capabilities": ["update"]}}}
    client.sys.create_or_update_policy(name=policy, policy=rule)
    assert policy in client.sys.list_policies()["data"]["policies"]
    assert name in client.sys.read_policy(name=policy)["data"]["rules"]
    created = client.auth.token.create(policies=[policy], ttl="1h", meta={"who": "me"}, display_name="mine")["auth"]
    assert created["policies"] == ["default", policy] and created["lease_duration"] == 3600
    limited = hvac.Client(token=created["client_token"])
    assert limited.is_authenticated()
    limited.secrets.transit.encrypt_data(name=name, plaintext=encoded("hi"))
    refused(exceptions.Forbidden, limited.secrets.transit.read_key, name=name)
    refused(exceptions.Forbidden, limited.secrets.transit.encrypt_data, name=fresh(), plaintext=encoded("hi"))
    found = limited.auth.token.lookup_self()["data"]
    assert found["display_name"] == "token-mine" and found["meta"] == {"who": "me"}
    assert client.auth.token.lookup(created["client_token"])["data"]["accessor"] == created["accessor"]
    assert client.auth.token.lookup_accessor(created["accessor"])["data"]["id"] == ""
    assert limited.auth.token.renew_self()["auth"]["renewable"] is True
    limited.auth.token.revoke_self()
    assert not limited.is_authenticated()
    second = client.auth.token.create(policies=[policy])["auth"]
    client.auth.token.revoke_accessor(second["accessor"])
    assert not hvac.Client(token=second["client_token"]).is_authenticated()
    client.sys.delete_policy(name=policy)
    refused(exceptions.InvalidPath, client.sys.read_policy, name=policy)


if __name__ == "__main__":
    assert os.environ.get("VAULT_ADDR") and os.environ.get("VAULT_TOKEN")
    globals()[sys.argv[1]]()
