"""Asks an OCSP responder as python's cryptography does: by POST and by GET, with and without a nonce.

Arguments: URL, issuer (PEM), certificate (PEM). Prints one line for each hash and way: status, and whether the signature is the issuer's.
"""

import base64
import os
import sys
import urllib.parse
import urllib.request

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

url = sys.argv[1]
with open(sys.argv[2], 'rb') as file:
    issuer = x509.load_pem_x509_certificate(file.read())
with open(sys.argv[3], 'rb') as file:
    certificate = x509.load_pem_x509_certificate(file.read())


def send(der, get):
    """The DER of the answer."""
    if get:
        return urllib.request.urlopen(f'{url}/{urllib.parse.quote(base64.b64encode(der), safe="")}').read()
    headers = {'Content-Type': 'application/ocsp-request'}
    return urllib.request.urlopen(urllib.request.Request(url, der, headers)).read()


def verify(answer):
    """Raises unless the issuer has signed it."""
    key = issuer.public_key()
    data, signature, digest = answer.tbs_response_bytes, answer.signature, answer.signature_hash_algorithm
    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, data, ec.ECDSA(digest))
    else:
        key.verify(signature, data, padding.PKCS1v15(), digest)


for algorithm in (hashes.SHA1(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512()):
    for get in (False, True):
        for nonce in (None, os.urandom(32)):
            builder = ocsp.OCSPRequestBuilder().add_certificate(certificate, issuer, algorithm)
            if nonce is not None:
                builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
            answer = ocsp.load_der_ocsp_response(send(builder.build().public_bytes(Encoding.DER), get))
            verify(answer)
            assert answer.serial_number == certificate.serial_number
            assert answer.responder_name == issuer.subject
            echoed = [extension.value.nonce for extension in answer.extensions]
            assert echoed == ([] if nonce is None else [nonce])
            print(algorithm.name, 'GET' if get else 'POST', answer.certificate_status.name)
