import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround, write } from '../crypto/der.ts'
import { writeOid } from '../crypto/oid.ts'
import { Malformed, reading } from './malformed.ts'

/** Private keys in the three forms found in PEM files. The numbers themselves are checked by the reader of keys. */

const zero = write(asn1.integer, Buffer.alloc(1))
const rsaEncryption = write(asn1.sequence, writeOid('1.2.840.113549.1.1.1'), write(asn1.null))
const ecPublicKey = writeOid('1.2.840.10045.2.1')

/**
 * Converts a key in PKCS#8, PKCS#1 (RFC 8017 appendix A.1.2) or SEC 1 (RFC 5915) to PKCS#8 (RFC 5958). The caller wipes
 * both buffers.
 * @returns a fresh buffer
 * @throws Malformed
 */
export const toPkcs8 = (der: Buffer): Buffer =>
  reading('private key', () =>
    within(der, asn1.sequence, (key) => {
      if (key.tag === asn1.sequence) throw new Malformed('it is not a private key, or an encrypted one')
      const version = key.count()
      const form = key.tag
      if (form === asn1.sequence) checkPkcs8(version, key)
      else if (form === asn1.integer) checkPkcs1(version, key)
      else if (form === asn1.octetString)
        return wrap(write(asn1.sequence, ecPublicKey, readSec1Curve(version, key)), der)
      else throw new Malformed('its form is unknown')
      return form === asn1.sequence ? Buffer.from(der) : wrap(rsaEncryption, der)
    }),
  )

/** Version, algorithm, key, attributes and public key. */
function checkPkcs8(version: number, key: Cursor): void {
  if (version > 1) throw new Malformed('its version is unknown')
  key.skip(asn1.sequence)
  key.skip(asn1.octetString)
  while (key.more) key.skip()
}

function checkPkcs1(version: number, key: Cursor): void {
  if (version !== 0) throw new Malformed('it has more than two primes')
  for (let number = 0; number < 8; number++) key.skip(asn1.integer)
}

/** The OID of the curve, which PKCS#8 has outside the key. */
function readSec1Curve(version: number, key: Cursor): Buffer {
  if (version !== 1) throw new Malformed('its version is unknown')
  key.skip(asn1.octetString)
  if (key.tag !== contextAround(0)) throw new Malformed('it does not name its curve')
  const curve = key.enter(contextAround(0))
  if (curve.tag !== asn1.oid) throw new Malformed('the curve must be named by its OID, not by parameters')
  const oid = curve.element()
  curve.end()
  if (key.more) key.skip(contextAround(1))
  return oid
}

function wrap(algorithm: Buffer, der: Buffer): Buffer {
  const inner = write(asn1.octetString, der)
  const pkcs8 = write(asn1.sequence, zero, algorithm, inner)
  inner.fill(0)
  return pkcs8
}
