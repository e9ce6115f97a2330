import { hash, randomUUID } from 'node:crypto'
import { createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import { IssuerRows } from '../../../src/engines/pki/authority/issuerrows.ts'
import { keysTable } from '../../../src/engines/pki/authority/tables.ts'
import { type CrlSettings, defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import type { Certificate } from '../../../src/x509/certificate.ts'
import { type CertificateNode, type CertificateWorld, createCertificateWorld } from '../certificates/world.ts'
import { createCa, type TestCa, type Wanted } from './ca.ts'

export type RevocationWorld = Awaited<ReturnType<typeof createRevocationWorld>>

/** Workers of the site `default`, and more of other sites; mounts with issuers whose keys the test has. */
export async function createRevocationWorld(nodes = 1) {
  const world = await createCertificateWorld(nodes)
  return {
    ...world,
    /** A mount with an issuer of its own, which is its default. */
    mountOf: (settings: Partial<CrlSettings> = {}) => mountOf(world, settings),
    [Symbol.asyncDispose]: world[Symbol.asyncDispose],
  }
}

export interface TestMount {
  readonly uuid: string
  readonly ca: TestCa
  /** Uuid of the row of its issuer. */
  readonly issuer: string
  /** Imports a CA certificate. @returns the uuid of its row */
  add(certificate: Certificate): Promise<string>
  remove(issuer: string): Promise<void>
  configure(settings: Partial<CrlSettings>): Promise<void>
  /** Has the CA sign a certificate, and a node store it. */
  store(wanted?: Wanted, at?: CertificateNode): Promise<Certificate>
}

async function mountOf({ node, clock }: CertificateWorld, settings: Partial<CrlSettings>): Promise<TestMount> {
  const { database, authorities } = node
  const uuid = randomUUID()
  await database.transaction((tx) => createAuthority({ database, clock }, tx, uuid))
  const rows = new IssuerRows({ database, clock })
  const add = async (certificate: Certificate) => {
    const issuer = { certificate, name: '', revocationSignatureAlgorithm: '' }
    const { result } = await authorities.change({ uuid }, async (tx, before) => {
      const fingerprint = hash('sha256', certificate.spki, 'buffer')
      const own = { mount: uuid, type: 'ec', bits: 256, createdAt: clock.wall(), material: 'm', fingerprint }
      const known = [...before.keys.values()].find((one) => one.fingerprint.equals(fingerprint))
      const key = known ?? (await database.table(keysTable).insert(tx, own))
      const { id } = await rows.insert(tx, before, issuer, () => key)
      return { settings: { defaultIssuer: before.settings.defaultIssuer || id }, result: id }
    })
    return result
  }
  const configure = async (changes: Partial<CrlSettings>) => {
    await authorities.change({ uuid }, async (_, { settings: { crl } }) => {
      return { settings: { crl: { ...(crl ?? defaultCrlSettings), ...changes } }, result: undefined }
    })
  }
  const ca = createCa(`Root of ${uuid}`)
  const issuer = await add(ca.certificate)
  await configure(settings)
  return {
    ...{ uuid, ca, issuer, add, configure },
    async remove(id) {
      await authorities.change({ uuid }, async (tx, before) => {
        const row = before.issuers.get(id)?.row
        if (row !== undefined) await rows.remove(tx, row)
        return { settings: { defaultIssuer: '' }, result: undefined }
      })
    },
    async store(wanted, at = node) {
      const certificate = ca.sign(wanted)
      const { der, notAfter } = certificate
      await at.certificates.store({ mount: uuid, serial: hexOf(certificate), issuer, der, notAfter })
      return certificate
    },
  }
}

export const hexOf = ({ serial }: Certificate): string => serial.toString('hex')
