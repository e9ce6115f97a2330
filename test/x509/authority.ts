import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { writePem } from '../../src/crypto/pem.ts'
import { type Certificate, keyIdentifierOf, readCertificate } from '../../src/x509/certificate.ts'
import type { Extension } from '../../src/x509/extension.ts'
import { writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { writeAuthorityKeyIdentifier, writeSubjectKeyIdentifier } from '../../src/x509/extensions/keyidentifier.ts'
import { writeKeyUsage } from '../../src/x509/extensions/keyusage.ts'
import { attributeTypes, writeName } from '../../src/x509/name.ts'
import { newSerial } from '../../src/x509/serial.ts'
import { signatureAlgorithms } from '../../src/x509/signature.ts'
import { writeCertificate, writeTbs } from '../../src/x509/tbs.ts'

/** An authority for tests: the code under test builds, node:crypto signs. */

export interface Pair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export const ecPair = (namedCurve = 'P-256'): Pair => generateKeyPairSync('ec', { namedCurve })
export const spkiOf = ({ publicKey }: Pair): Buffer => publicKey.export({ format: 'der', type: 'spki' })
export const named = (commonName: string): Buffer =>
  writeName([[{ type: attributeTypes.commonName, value: commonName }]])
export const identifierOf = (name: string): Buffer => {
  const row = signatureAlgorithms.get(name)
  if (row === undefined) throw new Error(`no algorithm ${name}`)
  return row.identifier
}

const day = 24 * 3600 * 1000
const ecdsa = identifierOf('ECDSAWithSHA256')

export interface Wanted {
  readonly subject: Buffer
  readonly key: Pair
  readonly issuer?: Buffer
  readonly signer?: Pair
  readonly extensions?: readonly Extension[]
  readonly notBefore?: number
  readonly notAfter?: number
  readonly serial?: Buffer
}

/** A certificate over ECDSA with SHA-256; self-signed without a signer. */
export function certify(wanted: Wanted): Buffer {
  const { subject, key, issuer = subject, signer = key, extensions = [] } = wanted
  const { serial = newSerial(), notBefore = Date.now() - day, notAfter = Date.now() + 30 * day } = wanted
  const tbs = writeTbs({
    serial,
    algorithm: ecdsa,
    issuer,
    notBefore,
    notAfter,
    subject,
    spki: spkiOf(key),
    extensions,
  })
  return writeCertificate(tbs, ecdsa, sign('sha256', tbs, signer.privateKey))
}

/** The extensions of every CA certificate. */
export const caExtensions = (key: Pair, signer: Pair, pathLength?: number): readonly Extension[] => [
  writeKeyUsage(['CertSign', 'CRLSign']),
  writeBasicConstraints({ ca: true, pathLength }),
  writeSubjectKeyIdentifier(keyIdentifierOf(spkiOf(key))),
  writeAuthorityKeyIdentifier(keyIdentifierOf(spkiOf(signer))),
]

/** The extensions of every other certificate. */
export const leafExtensions = (key: Pair, signer: Pair): readonly Extension[] => [
  writeKeyUsage(['DigitalSignature']),
  writeSubjectKeyIdentifier(keyIdentifierOf(spkiOf(key))),
  writeAuthorityKeyIdentifier(keyIdentifierOf(spkiOf(signer))),
]

export interface Ca {
  readonly key: Pair
  readonly subject: Buffer
  readonly certificate: Certificate
}

interface CaWanted {
  readonly key?: Pair
  readonly pathLength?: number
  readonly extensions?: readonly Extension[]
  readonly notAfter?: number
}

/** A CA under another, or a root. */
export function makeCa(commonName: string, above?: Ca, wanted: CaWanted = {}): Ca {
  const { key = ecPair(), pathLength, extensions = [], notAfter } = wanted
  const subject = named(commonName)
  const signer = above?.key ?? key
  const der = certify({
    subject,
    key,
    signer,
    issuer: above?.subject ?? subject,
    extensions: [...caExtensions(key, signer, pathLength), ...extensions],
    ...(notAfter === undefined ? {} : { notAfter }),
  })
  return { key, subject, certificate: readCertificate(der) }
}

export const pemOf = (der: Buffer): string => `${writePem('CERTIFICATE', der)}\n`

/** A folder of its own, removed at the end, and the openssl command in it. */
export function useOpenssl() {
  const directory = mkdtempSync(join(tmpdir(), 'sr-x509-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  return {
    put(file: string, contents: string | Buffer): string {
      writeFileSync(join(directory, file), contents)
      return join(directory, file)
    },
    read: (file: string): Buffer => readFileSync(join(directory, file)),
    run: (args: readonly string[], input: string | Buffer = ''): string =>
      execFileSync('openssl', args, { input, cwd: directory, encoding: 'utf8', stdio: 'pipe' }),
  }
}
