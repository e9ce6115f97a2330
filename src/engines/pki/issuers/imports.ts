import { Type } from 'typebox'
import { data, mapOf, orNull, strings } from '../../../answers.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import type { Call, Data } from '../../../route.ts'
import type { Transaction } from '../../../store/reader.ts'
import { type Bundle, readBundle } from '../../../x509/bundle.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { lintName } from '../../../x509/lint/names.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { signatureAlgorithmOf } from '../../../x509/signature.ts'
import type { Authority } from '../authority/authority.ts'
import { defaultsAfter } from '../authority/defaults.ts'
import { pemOf } from '../authority/pem.ts'
import type { IssuerRow, KeyRow } from '../authority/tables.ts'
import { makerOf, type PkiContext } from '../context.ts'
import { fingerprintOf, type NewKey } from '../keys/keyrows.ts'
import { revokedBefore } from './revokedbefore.ts'

type ImportCall = Pick<Call<PkiContext>, 'context' | 'mount' | 'caller' | 'warn'>

/** The result of an import: the entries of a bundle that were new, and those that were known. */
export interface Import {
  readonly newIssuers: readonly IssuerRow[]
  readonly newKeys: readonly KeyRow[]
  readonly knownIssuers: readonly IssuerRow[]
  readonly knownKeys: readonly KeyRow[]
}

const shortest = 75

/**
 * Reads a bundle of CA certificates and keys. The caller wipes its keys.
 * @param keysAllowed whether private keys may be among them
 * @throws ApiError 400
 */
export async function readImport(text: string, keysAllowed: boolean): Promise<Bundle> {
  if (text.length < shortest) {
    throw badRequest(
      'provided data for import was too short; perhaps a path was passed to the API rather than the contents of a PEM file',
    )
  }
  const bundle = await readPemBundle(text)
  try {
    if (bundle.keys.length > 0 && !keysAllowed) {
      throw badRequest('private keys found in the PEM bundle but not allowed by the path; use /issuers/import/bundle')
    }
    for (const [index, certificate] of bundle.certificates.entries()) requireAuthority(certificate, index)
    return bundle
  } catch (error) {
    wipeKeys(bundle)
    throw error
  }
}

/** As readBundle. @throws ApiError 400 */
export async function readPemBundle(text: string): Promise<Bundle> {
  try {
    return await readBundle(text)
  } catch (error) {
    throw error instanceof Malformed ? badRequest(error.message, { cause: error }) : error
  }
}

export const wipeKeys = ({ keys }: Bundle): void => {
  for (const { pkcs8 } of keys) pkcs8.fill(0)
}

function requireAuthority(certificate: Certificate, index: number): void {
  if (certificate.isCa) return
  throw badRequest(`Error parsing issuer ${index}: Refusing to import non-CA certificate\n${pemOf(certificate)}`)
}

/** Stores the new entries of a bundle, all of it or nothing. @throws ApiError 400 naming the entry */
export async function importBundle(call: ImportCall, bundle: Bundle): Promise<{ authority: Authority; done: Import }> {
  const { context, mount, caller, warn } = call
  const certificates = unique(bundle.certificates)
  for (const certificate of certificates) {
    warnOfWeakSignature(certificate, warn)
    warnOfName(certificate, warn)
  }
  const keys: NewKey[] = []
  try {
    for (const [index, { pkcs8 }] of bundle.keys.entries()) {
      keys.push(await readKey(() => context.newKeys.imported(pkcs8, makerOf(caller)), index))
    }
    const { authority, result } = await context.authorities.change(mount, async (tx, before) => {
      const done = await store(context, tx, before, { certificates, keys })
      const added = { issuers: done.newIssuers, keys: done.newKeys }
      return { settings: defaultsAfter(before, added, warn), result: done }
    })
    for (const { id, revokedAt } of result.newIssuers) if (revokedAt !== null) warn(staysRevoked(id, revokedAt))
    return { authority, done: result }
  } finally {
    for (const key of keys) await context.newKeys.discard(key)
  }
}

async function readKey(read: () => Promise<NewKey>, index: number): Promise<NewKey> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    throw badRequest(`Error parsing key ${index}: ${error.message}`, { cause: error })
  }
}

async function store(
  context: PkiContext,
  tx: Transaction,
  before: Authority,
  { certificates, keys }: { readonly certificates: readonly Certificate[]; readonly keys: readonly NewKey[] },
): Promise<Import> {
  const made = new Map<string, KeyRow>()
  const keyWith = (fingerprint: Buffer) => before.keyWith(fingerprint) ?? made.get(fingerprint.toString('hex'))
  const [newKeys, knownKeys]: [KeyRow[], KeyRow[]] = [[], []]
  for (const key of keys) {
    const fingerprint = fingerprintOf(key)
    const there = keyWith(fingerprint)
    if (there !== undefined) {
      if (!newKeys.includes(there) && !knownKeys.includes(there)) knownKeys.push(there)
      continue
    }
    const row = await context.keyRows.insert(tx, before, key, '')
    await context.issuerRows.link(tx, before, row)
    made.set(fingerprint.toString('hex'), row)
    newKeys.push(row)
  }
  const [newIssuers, knownIssuers]: [IssuerRow[], IssuerRow[]] = [[], []]
  for (const certificate of certificates) {
    const there = context.issuerRows.find(before, certificate)
    if (there !== undefined) knownIssuers.push(there.row)
    else {
      const revokedAt = await revokedBefore(
        tx,
        { database: context.database, before, imported: certificates },
        certificate,
      )
      const issuer = { certificate, name: '', revocationSignatureAlgorithm: '', revokedAt }
      newIssuers.push(await context.issuerRows.insert(tx, before, issuer, keyWith))
    }
  }
  return { newIssuers, newKeys, knownIssuers, knownKeys }
}

/** Each certificate once, in the original order. */
const unique = (certificates: readonly Certificate[]): readonly Certificate[] => [
  ...new Map(certificates.map((certificate) => [certificate.fingerprint().toString('hex'), certificate])).values(),
]

function warnOfWeakSignature({ algorithm, serial }: Certificate, warn: (text: string) => void): void {
  if (!signatureAlgorithmOf(algorithm)?.weak) return
  warn(`certificate ${serial.toString('hex')} is signed with SHA-1: that signature is not used in chains`)
}

/** Certificates by this issuer repeat its name, with every fault that it has. */
function warnOfName({ subject, serial }: Certificate, warn: (text: string) => void): void {
  for (const { text, rule } of lintName(subject, 'subject')) {
    warn(`certificate ${serial.toString('hex')}: ${text} (${rule})`)
  }
}

const staysRevoked = (id: string, revokedAt: number): string =>
  `Issuer ${id} was revoked in this mount at ${new Date(revokedAt).toISOString()}, and stays revoked: it issues no certificates.`

/** The members of describeImport. */
export const importAnswer = data(
  Type.Object({
    imported_issuers: orNull(strings),
    imported_keys: orNull(strings),
    existing_issuers: orNull(strings),
    existing_keys: orNull(strings),
    mapping: mapOf(Type.String()),
  }),
)

/** The answer of an import; empty lists are null, as in the reference. */
export function describeImport(authority: Authority, { newIssuers, newKeys, knownIssuers, knownKeys }: Import): Data {
  const ids = (rows: readonly { readonly id: string }[]) => (rows.length === 0 ? null : rows.map(({ id }) => id))
  const mapping = [...newIssuers, ...knownIssuers].map(({ id }) => [id, authority.issuers.get(id)?.row.keyId ?? ''])
  return {
    imported_issuers: ids(newIssuers),
    imported_keys: ids(newKeys),
    existing_issuers: ids(knownIssuers),
    existing_keys: ids(knownKeys),
    mapping: Object.fromEntries(mapping),
  }
}
