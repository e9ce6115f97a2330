"""What people do with a PKI mount through hvac, in hvac's own shapes. Usage: pki.py

VAULT_ADDR and VAULT_TOKEN say where and as whom. Ends with 0 when everything was as hvac's users expect.
"""

import subprocess
import tempfile
import uuid

import hvac
from hvac import exceptions

client = hvac.Client()
pki = client.secrets.pki
mount = "pki" + uuid.uuid4().hex[:12]
here = {"mount_point": mount}
pem = "-----BEGIN CERTIFICATE-----"


def refused(kind, call, *args, **kwargs):
    """The call must be refused with hvac's exception of that kind; answers its text."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError("the call was not refused")


def csr(name):
    """A certificate signing request that openssl made."""
    with tempfile.TemporaryDirectory() as folder:
        words = "openssl req -new -nodes -newkey rsa:2048 -keyout key -out csr -subj /CN=" + name
        subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)
        with open(folder + "/csr", encoding="ascii") as file:
            return file.read()


def authority():
    client.sys.enable_secrets_engine("pki", path=mount)
    client.sys.tune_mount_configuration(path=mount, default_lease_ttl="768h", max_lease_ttl="87600h")
    refused(exceptions.InvalidPath, pki.list_roles, **here)
    root = pki.generate_root(type="exported", common_name="root.example", extra_params={"ttl": "8760h"}, **here)["data"]
    assert root["private_key"].startswith("-----BEGIN RSA PRIVATE KEY-----") and root["private_key_type"] == "rsa"
    assert root["certificate"] == root["issuing_ca"] and root["serial_number"].count(":") >= 18
    read = pki.read_ca_certificate(**here)
    assert read.startswith(pem) and read.strip() == root["certificate"]
    assert pki.read_ca_certificate_chain(**here).strip() == root["certificate"]
    refused(exceptions.InvalidPath, pki.read_urls, **here)
    urls = {"issuing_certificates": ["http://a.example/ca"], "crl_distribution_points": ["http://a.example/crl"]}
    pki.set_urls(urls, **here)
    assert pki.read_urls(**here)["data"]["issuing_certificates"] == ["http://a.example/ca"]
    return root


def roles():
    settings = {"allowed_domains": ["example.com"], "allow_subdomains": True, "ttl": "72h", "max_ttl": "100h"}
    pki.create_or_update_role("web", settings, **here)
    read = pki.read_role("web", **here)["data"]
    assert read["allowed_domains"] == ["example.com"] and read["allow_subdomains"] is True
    assert read["ttl"] == 259200 and read["max_ttl"] == 360000 and read["key_type"] == "rsa"
    assert pki.list_roles(**here)["data"]["keys"] == ["web"]


def certificates(root):
    made = pki.generate_certificate(name="web", common_name="a.example.com", extra_params={"ttl": "1h"}, **here)["data"]
    assert made["certificate"].startswith(pem) and made["ca_chain"] == [root["certificate"]]
    assert pki.read_certificate(serial=made["serial_number"], **here)["data"]["certificate"] == made["certificate"]
    assert made["serial_number"] in pki.list_certificates(**here)["data"]["keys"]
    text = refused(exceptions.InvalidRequest, pki.generate_certificate, name="web", common_name="evil.test", **here)
    assert "common name evil.test not allowed by this role" in text
    signed = pki.sign_certificate(name="web", csr=csr("b.example.com"), common_name="b.example.com", **here)["data"]
    assert signed["certificate"].startswith(pem) and "private_key" not in signed
    verbatim = pki.sign_verbatim(csr=csr("anything"), name="web", **here)["data"]
    assert verbatim["issuing_ca"] == root["certificate"]
    pki.delete_role("web", **here)
    refused(exceptions.InvalidPath, pki.read_role, "web", **here)


def intermediates(root):
    made = pki.generate_intermediate(type="internal", common_name="sub.example", **here)["data"]
    assert made["csr"].startswith("-----BEGIN CERTIFICATE REQUEST-----")
    signed = pki.sign_intermediate(csr=made["csr"], common_name="sub.example", **here)["data"]
    assert signed["ca_chain"] == [signed["certificate"], root["certificate"]]
    pki.set_signed_intermediate(certificate=signed["certificate"], **here)
    assert pki.sign_self_issued(certificate=root["certificate"], **here)["data"]["certificate"].startswith(pem)
    pki.delete_root(**here)
    text = refused(exceptions.InvalidRequest, pki.generate_certificate, name="web", common_name="a", **here)
    assert "unknown role" in text
    bundle = root["certificate"] + "\n" + root["private_key"]
    pki.submit_ca_information(pem_bundle=bundle, **here)
    assert pki.read_ca_certificate(**here).strip() == root["certificate"]


if __name__ == "__main__":
    made = authority()
    roles()
    certificates(made)
    intermediates(made)
