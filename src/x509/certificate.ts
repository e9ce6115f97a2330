import type { KeyObject } from 'node:crypto'
import { within } from '../crypto/cursor.ts'
import { asn1 } from '../crypto/der.ts'
import { digest, hashOf } from '../crypto/hashes.ts'
import { once } from '../once.ts'
import { type Extension, extensionOids } from './extension.ts'
import { type BasicConstraints, readBasicConstraints } from './extensions/basicconstraints.ts'
import { readExtendedKeyUsage } from './extensions/extendedkeyusage.ts'
import type { GeneralName } from './extensions/generalname.ts'
import { readAuthorityKeyIdentifier, readSubjectKeyIdentifier } from './extensions/keyidentifier.ts'
import { type KeyUsage, readKeyUsage } from './extensions/keyusage.ts'
import { type NameConstraints, readNameConstraints } from './extensions/nameconstraints.ts'
import { readSubjectAltName } from './extensions/subjectaltname.ts'
import { Malformed, reading } from './malformed.ts'
import { readName } from './name.ts'
import { importSubjectKey, readSubjectKey } from './publickey.ts'
import { readTbs, type Tbs } from './tbs.ts'

const sha1 = hashOf('sha1')
const sha256 = hashOf('sha2-256')

/** A parsed certificate (RFC 5280 section 4.1). Its buffers are views of `der`. */
export interface Certificate extends Tbs {
  readonly der: Buffer
  /** The bytes that are signed. */
  readonly tbs: Buffer
  readonly signature: Buffer
  readonly basicConstraints: BasicConstraints | undefined
  /** Undefined where the extension is absent: then every usage is allowed. */
  readonly keyUsage: readonly KeyUsage[] | undefined
  readonly extendedKeyUsage: readonly string[] | undefined
  readonly subjectKeyId: Buffer | undefined
  /** Only its key identifier. */
  readonly authorityKeyId: Buffer | undefined
  readonly subjectAltName: readonly GeneralName[]
  readonly nameConstraints: NameConstraints | undefined
  /** From its basic constraints; always false for a v1 certificate. */
  readonly isCa: boolean
  /** Whether subject and issuer are the same name, byte for byte. */
  readonly isSelfIssued: boolean
  /** SHA-256 of the certificate. */
  fingerprint(): Buffer
  /** @throws Malformed for a key that is not supported */
  publicKey(): KeyObject
}

/** Reads strictly: DER, and every extension that this project acts on must be valid. @throws Malformed */
export const readCertificate = (der: Buffer): Certificate =>
  reading('certificate', () =>
    within(der, asn1.sequence, (outside) => {
      const tbs = outside.element(asn1.sequence)
      const algorithm = outside.element(asn1.sequence)
      const signature = outside.bytes()
      const parts = readTbs(tbs)
      if (!parts.algorithm.equals(algorithm)) throw new Malformed('its two signature algorithms differ')
      readName(parts.issuer)
      readName(parts.subject)
      const known = understand(parts.extensions)
      return {
        ...parts,
        ...known,
        der,
        tbs,
        signature,
        isCa: known.basicConstraints?.ca === true,
        isSelfIssued: parts.subject.equals(parts.issuer),
        fingerprint: () => digest(sha256, der),
        publicKey: once(() => importSubjectKey(parts.spki)),
      }
    }),
  )

/** The extensions that this project acts on. @throws Malformed */
function understand(extensions: readonly Extension[]) {
  const read = <T>(oid: string, reader: (value: Buffer) => T): T | undefined => {
    const extension = extensions.find((candidate) => candidate.oid === oid)
    return extension && reader(extension.value)
  }
  return {
    basicConstraints: read(extensionOids.basicConstraints, readBasicConstraints),
    keyUsage: read(extensionOids.keyUsage, readKeyUsage),
    extendedKeyUsage: read(extensionOids.extendedKeyUsage, readExtendedKeyUsage),
    subjectKeyId: read(extensionOids.subjectKeyIdentifier, readSubjectKeyIdentifier),
    authorityKeyId: read(extensionOids.authorityKeyIdentifier, readAuthorityKeyIdentifier)?.keyIdentifier,
    subjectAltName: read(extensionOids.subjectAltName, readSubjectAltName) ?? [],
    nameConstraints: read(extensionOids.nameConstraints, readNameConstraints),
  }
}

/** The extension of this OID in a certificate or request. */
export const extensionOf = (
  { extensions }: { readonly extensions: readonly Extension[] },
  oid: string,
): Extension | undefined => extensions.find((extension) => extension.oid === oid)

/** SHA-1 over subjectPublicKey (RFC 5280 section 4.2.1.2, method 1). @param spki DER @throws Malformed */
export const keyIdentifierOf = (spki: Buffer): Buffer => digest(sha1, readSubjectKey(spki).encoded)
