import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { asn1, write } from '../../../src/crypto/der.ts'
import { writeOid } from '../../../src/crypto/oid.ts'
import { createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import type { NewCertificate } from '../../../src/engines/pki/certificates/certificates.ts'
import { revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { defaultOrder, type TidyOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { isActive, type TidyRun } from '../../../src/engines/pki/tidy/tables.ts'
import { readCertificate } from '../../../src/x509/certificate.ts'
import { writeBasicConstraints } from '../../../src/x509/extensions/basicconstraints.ts'
import { writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import { MovableClock } from '../../auth/world.ts'
import { createBench } from '../../store/support.ts'
import { commonName } from '../proof/forge.ts'
import { entriesSchema } from './entries.ts'
import { nodeOn, type TidyNode } from './node.ts'

const day = 86_400_000
export const hours = 3_600_000

const algorithm = write(asn1.sequence, writeOid('1.2.840.10045.4.3.2'))
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const spki = pair.publicKey.export({ format: 'der', type: 'spki' })
const caName = commonName('Tidy CA')

interface Wanted {
  readonly notAfter: number
  readonly serial?: Buffer
  readonly ca?: boolean
  /** Signed by a key of no issuer. */
  readonly forged?: boolean
}

/** A certificate as DER, signed by the key of every issuer here. */
export function makeDer({ notAfter, serial = newSerial(), ca = false, forged = false }: Wanted): Buffer {
  const times = { notBefore: notAfter - 30 * day, notAfter }
  const subject = ca ? caName : commonName(serial.toString('hex'))
  const extensions = ca ? [writeBasicConstraints({ ca: true, pathLength: undefined })] : []
  const tbs = writeTbs({ serial, algorithm, issuer: caName, ...times, subject, spki, extensions })
  return writeCertificate(tbs, algorithm, sign('sha256', tbs, forged ? stranger.privateKey : pair.privateKey))
}

const newSerial = (): Buffer => Buffer.concat([Buffer.from([0x11]), randomBytes(18)])

/** One database with workers of the site `default`. */
export async function createTidyWorld(workers = 1) {
  const bench = await createBench()
  await bench.sql(entriesSchema)
  const clock = new MovableClock()
  const all: TidyNode[] = []
  const join = async (site = 'default') => {
    const database = await bench.another()
    await database.start()
    const node = nodeOn(database, { clock, url: bench.url, site })
    all.push(node)
    return node
  }
  for (let n = 0; n < workers; n++) await join()
  /** The workers that the world begins with. */
  const nodes = [...all]
  const [node] = nodes
  if (node === undefined) throw new Error('a world has at least one worker')

  /** A certificate authority of its own. */
  async function mount() {
    const uuid = randomUUID()
    await bench.database.transaction((tx) => createAuthority({ database: bench.database, clock }, tx, uuid))
    return uuid
  }
  return {
    ...{ bench, clock, node, nodes, join, mount },
    sql: bench.sql,
    async [Symbol.asyncDispose]() {
      for (const one of all) await one.dispose()
      await bench[Symbol.asyncDispose]()
    },
  }
}
export type TidyWorld = Awaited<ReturnType<typeof createTidyWorld>>

/** Adds an issuer to a mount and returns its id. */
export async function addIssuer(
  { authorities, issuerRows }: TidyNode,
  mount: string,
  notAfter: number,
  asDefault = true,
) {
  const certificate = readCertificate(makeDer({ notAfter, ca: true }))
  const { result } = await authorities.change({ uuid: mount }, async (tx, before) => {
    const wanted = { certificate, name: '', revocationSignatureAlgorithm: '' }
    const row = await issuerRows.insert(tx, before, wanted, () => undefined)
    return { settings: asDefault ? { defaultIssuer: row.id } : {}, result: row.id }
  })
  return result
}

/** Every mount has a CRL issuer of its own. */
export const crlIssuerOf = (mount: string): string => createHash('sha256').update(mount).digest('hex')

/** A certificate of an issuer, to store. Times are whole seconds, as in certificates. */
export function fresh(mount: string, issuer: string, notAfter: number, more: Partial<Wanted> = {}): NewCertificate {
  const end = Math.floor(notAfter / 1000) * 1000
  const serial = more.serial ?? newSerial()
  return {
    mount,
    issuer,
    serial: serial.toString('hex'),
    notAfter: end,
    der: makeDer({ ...more, serial, notAfter: end }),
  }
}

/** Records revocations with their numbers under their CRL issuer, and their entries in lists. */
export async function revoke(
  { database, lists, site }: TidyNode,
  certificates: readonly NewCertificate[],
  { first = 1, carried = true, listed = true } = {},
): Promise<void> {
  await database.transaction(async (tx) => {
    const rows = certificates.map(({ mount, serial, issuer, notAfter }, index) => ({
      ...{ mount, serial, issuer, notAfter, site, revokedAt: notAfter - day },
      ...(listed ? { crlIssuer: crlIssuerOf(mount), seq: first + index } : {}),
    }))
    await database.table(revocationTable).insertMany(tx, rows)
    for (const { mount } of rows) tx.tally(`revocations-${mount}-${site}`, 1)
  })
  if (!listed) return
  for (const [index, { mount, notAfter }] of certificates.entries())
    await lists.add({ crlIssuer: crlIssuerOf(mount), site, seq: first + index, mount, notAfter, carried })
}

/** Tidies a mount and waits for the end. */
export async function tidy(node: TidyNode, mount: string, order: Partial<TidyOrder>): Promise<TidyRun> {
  const begun = await node.tidying.begin(mount, { ...defaultOrder, safetyBuffer: 1, ...order })
  if (begun === undefined) throw new Error('another run goes on')
  return ended(node, mount)
}

/** The run of a mount once it has ended. */
export async function ended({ tidying }: TidyNode, mount: string): Promise<TidyRun> {
  for (;;) {
    const run = await tidying.runs.find(mount)
    if (run !== undefined && !isActive(run)) return run
    await delay(20)
  }
}
