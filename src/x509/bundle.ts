import { X509Certificate } from 'node:crypto'
import { type PemBlock, readBlocks } from '../crypto/pem.ts'
import { type Certificate, readCertificate } from './certificate.ts'
import { Malformed, reading } from './malformed.ts'
import { readPkcs7 } from './pkcs7.ts'
import { toPkcs8 } from './privatekey.ts'

/** Bundles in PEM as clients send them: certificates and private keys, in any order, with text between them. */
export interface Bundle {
  readonly certificates: readonly Certificate[]
  readonly keys: readonly BundledKey[]
}

export interface BundledKey {
  /** The label of its PEM block. */
  readonly label: string
  /** PKCS#8, DER. The caller wipes it. */
  readonly pkcs8: Buffer
}

const encryptedLabel = 'ENCRYPTED PRIVATE KEY'

const longestText = 4 * 1024 * 1024
const mostBlocks = 1000
const mostCertificates = 1000

const certificateLabels: readonly string[] = ['CERTIFICATE', 'X509 CERTIFICATE']
const pkcs7Labels: readonly string[] = ['PKCS7', 'PKCS #7 SIGNED DATA', 'CMS']
/** CRLs are not imported, and the block of a key names its curve itself. */
const ignoredLabels: readonly string[] = ['CRL', 'X509 CRL', 'EC PARAMETERS', 'EC PARAMS']

/**
 * Reads every block in order; a block with an unknown label is taken for a private key. Duplicate certificates are
 * kept.
 * @throws Malformed naming the block, after wiping the keys
 */
export async function readBundle(text: string): Promise<Bundle> {
  if (text.length > longestText) throw new Malformed(`the bundle is longer than ${longestText} characters`)
  const blocks = readBlocks(text, mostBlocks + 1)
  if (blocks.length === 0) throw new Malformed('error when parsing block 1: invalid PEM data')
  if (blocks.length > mostBlocks) throw new Malformed(`the bundle has more than ${mostBlocks} blocks`)
  const certificates: Certificate[] = []
  const keys: BundledKey[] = []
  try {
    for (const [index, block] of blocks.entries()) await readInto(block, index + 1, { certificates, keys })
  } catch (error) {
    for (const { pkcs8 } of keys) pkcs8.fill(0)
    throw error
  }
  return { certificates, keys }
}

interface Contents {
  readonly certificates: Certificate[]
  readonly keys: BundledKey[]
}

async function readInto({ label, headers, der }: PemBlock, number: number, into: Contents): Promise<void> {
  if (ignoredLabels.includes(label)) return
  if (der === undefined) throw new Malformed(`error when parsing block ${number}: invalid PEM data`)
  const where = `block ${number} (${label})`
  if (certificateLabels.includes(label)) {
    into.certificates.push(readStrictly(der, where))
  } else if (pkcs7Labels.includes(label)) {
    for (const inner of await readPkcs7(der)) into.certificates.push(readStrictly(inner, where))
  } else {
    into.keys.push({ label, pkcs8: readKey({ label, headers }, der, where) })
  }
  if (into.certificates.length > mostCertificates) {
    throw new Malformed(`the bundle has more than ${mostCertificates} certificates`)
  }
}

function readKey({ label, headers }: Pick<PemBlock, 'label' | 'headers'>, der: Buffer, where: string): Buffer {
  try {
    if (headers || label === encryptedLabel) throw new Malformed(`${where}: the key is encrypted; decrypt it first`)
    return reading(where, () => toPkcs8(der))
  } finally {
    der.fill(0)
  }
}

/** OpenSSL must be able to read imported certificates as well: relying parties use it. */
function readStrictly(der: Buffer, where: string): Certificate {
  const certificate = reading(where, () => readCertificate(der))
  reading(where, () => certificate.publicKey())
  try {
    new X509Certificate(der)
  } catch (cause) {
    throw new Malformed(`${where}: OpenSSL cannot read the certificate`, { cause })
  }
  return certificate
}
