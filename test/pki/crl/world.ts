import { randomBytes, randomUUID } from 'node:crypto'
import { signatureAlgorithmOf } from '../../../src/crypto/signaturealgorithm.ts'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { type RevocationRow, revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import type { Alarm } from '../../../src/engines/pki/crl/alarm.ts'
import { createInitialCrls } from '../../../src/engines/pki/crl/bootstrap.ts'
import { CrlBuilder } from '../../../src/engines/pki/crl/builder.ts'
import type { CrlRow } from '../../../src/engines/pki/crl/tables.ts'
import type { BuildTarget } from '../../../src/engines/pki/crl/target.ts'
import { ledgersTable } from '../../../src/engines/pki/revocation/tables.ts'
import type { CertificationSigner } from '../../../src/keys/use/certification.ts'
import type { Database } from '../../../src/store/database.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { keyIdentifierOf, readCertificate } from '../../../src/x509/certificate.ts'
import { entrySerials } from '../../../src/x509/crlentry.ts'
import { readCrl, verifyCrl } from '../../../src/x509/crlreader.ts'
import { crlExtensionOids } from '../../../src/x509/extension.ts'
import { writeBasicConstraints } from '../../../src/x509/extensions/basicconstraints.ts'
import { readIssuingDistributionPoint } from '../../../src/x509/extensions/issuingdistributionpoint.ts'
import { writeSubjectKeyIdentifier } from '../../../src/x509/extensions/keyidentifier.ts'
import { newSerial } from '../../../src/x509/serial.ts'
import { writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import { MovableClock } from '../../auth/world.ts'
import { type Cluster, makeKey } from '../../keys/support.ts'
import { named } from '../../x509/authority.ts'
import { readCrlNumber } from '../../x509/crlnumber.ts'

export const hour = 3_600_000

/** The usual end of certificates: one that is revoked twice has one end. */
const lastEnd = Date.now() + 1000 * hour

/** A certificate authority's key in the token, and its certificate. */
export interface Ca {
  readonly signer: CertificationSigner
  readonly certificate: ReturnType<typeof readCertificate>
  readonly crlIssuer: string
  /** Uuid of the key's row. */
  readonly material: string
}

/** An authority of its own, so that tests do not meet. */
export async function createCa({ custody, place }: Cluster, type = 'ecdsa-p256'): Promise<Ca> {
  const material = await makeKey(custody, place.database, type)
  const signer = custody.operations.certification.of(material)
  const [algorithm] = signer.algorithms
  if (algorithm === undefined) throw new Error('a key that signs nothing')
  const name = named(randomUUID())
  const tbs = writeTbs({
    ...{ serial: newSerial(), algorithm: signatureAlgorithmOf(algorithm).identifier, issuer: name, subject: name },
    ...{ notBefore: Date.now() - hour, notAfter: Date.now() + 10_000 * hour, spki: signer.spki },
    extensions: [writeSubjectKeyIdentifier(keyIdentifierOf(signer.spki)), writeBasicConstraints({ ca: true })],
  })
  const { signature } = await signer.sign(algorithm, tbs)
  const certificate = readCertificate(writeCertificate(tbs, signatureAlgorithmOf(algorithm).identifier, signature))
  return { signer, certificate, crlIssuer: crlIssuerOf(certificate), material: material.id }
}

export type BuilderNode = ReturnType<typeof nodeAt>

/** One worker: the builder of its lists, the reader of their entries, and the alarms that it raised. */
export function nodeAt(database: Database, { site = 'default', epoch = 1, clock = new MovableClock() } = {}) {
  const alarms: Alarm[] = []
  const builder = new CrlBuilder({ database, clock, site, epoch, onAlarm: (alarm) => void alarms.push(alarm) })
  const { listed } = builder

  /** A published list, whole. */
  async function whole({ head, tail, parts }: CrlRow): Promise<Buffer> {
    const entries: Buffer[] = []
    for await (const some of builder.segments.entries(parts)) entries.push(some)
    return Buffer.concat([head, ...entries, tail])
  }
  return { database, clock, site, alarms, builder, listed, whole }
}

export const createSet = (database: Database): Promise<void> =>
  database.transaction((tx) => createInitialCrls({ database }, tx))

export const targetOf = (ca: Ca, mount: string, more: Partial<BuildTarget> = {}): BuildTarget => ({
  ...{
    mount,
    crlIssuer: ca.crlIssuer,
    scope: 'local',
    kinds: 'complete',
    signer: ca.signer,
    disabled: false,
    shards: [],
  },
  ...{ algorithm: ca.signer.algorithms[0] ?? 'Ed25519', certificate: ca.certificate, expiryMilliseconds: 72 * hour },
  ...more,
})

interface Revoked {
  readonly site?: string
  readonly notAfter?: number
  readonly reason?: number | null
  readonly revokedAt?: number
  /** The mount that records them. */
  readonly mount?: string
  /** In place of random ones. */
  readonly serials?: readonly string[]
}

/** Records revocations as the engine does: the ledger and the rows in one transaction. */
export async function revoke(
  database: Database,
  crlIssuer: string,
  count: number,
  {
    site = 'default',
    notAfter = lastEnd,
    reason = null,
    revokedAt = Date.now(),
    mount = 'm',
    serials = [],
  }: Revoked = {},
): Promise<RevocationRow[]> {
  const ledgers = database.table(ledgersTable)
  const rows = database.table(revocationTable)
  return database.transaction(async (tx: Transaction) => {
    const ledger = await ledgers.lock(tx, { crlIssuer, site })
    const last = ledger?.last ?? 0
    if (ledger === undefined) await ledgers.insert(tx, { crlIssuer, site, last: count })
    else await ledgers.update(tx, ledger, { last: last + count })
    return rows.insertMany(
      tx,
      Array.from({ length: count }, (_, index) => ({
        ...{ mount, site, serial: serials[index] ?? serial(), issuer: 'i', notAfter, revokedAt },
        ...{ crlIssuer, reason },
        seq: last + index + 1,
      })),
    )
  })
}

/** Twenty bytes, positive and without a leading zero. */
function serial(): string {
  const bytes = randomBytes(20)
  bytes.writeUInt8(0x40 | ((bytes[0] ?? 0) & 0x3f), 0)
  return bytes.toString('hex')
}

/** A list as a relying party reads it, with its signature verified. */
export function read(der: Buffer, { signer }: Ca) {
  const crl = readCrl(der)
  if (!verifyCrl(crl, signer.publicKey)) throw new Error('the list is not signed by its issuer')
  const number = (oid: string): number | undefined => {
    const found = crl.extensions.find((extension) => extension.oid === oid)
    return found && Number(readCrlNumber(found.value))
  }
  const entries = [...entrySerials(crl.entries)]
  const scope = crl.extensions.find(({ oid }) => oid === crlExtensionOids.issuingDistributionPoint)
  return {
    ...{ crl, thisUpdate: crl.thisUpdate, nextUpdate: crl.nextUpdate },
    serials: entries.map((entry) => entry.serial.toString('hex')),
    reasons: entries.map((entry) => entry.reason),
    times: entries.map((entry) => entry.revokedAt),
    number: number(crlExtensionOids.crlNumber),
    base: number(crlExtensionOids.deltaCrlIndicator),
    /** Of a shard: the URLs at which its certificates look for it. */
    points: scope && readIssuingDistributionPoint(scope.value).uris,
    isScopeCritical: scope?.critical,
  }
}

export const serialsOf = (rows: readonly RevocationRow[]): string[] => rows.map((row) => row.serial)
