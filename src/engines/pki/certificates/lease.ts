import { Type } from 'typebox'
import { Check } from 'typebox/schema'
import type { LeaseRequest } from '../../../leases/lease.ts'
import type { LeasedCertificate } from './tables.ts'

/**
 * The payload of a certificate's lease. The lease is sealed and a certificate's row is not, so revocation follows the
 * lease.
 */
const payloadSchema = Type.Object({
  serial: Type.String(),
  site: Type.String(),
  issuer: Type.String(),
  notAfter: Type.Integer(),
})

/**
 * The lease of a certificate, for `Leases.prepare`: it lasts until the certificate expires and is never renewed.
 * @param now milliseconds
 */
export function certificateLease(
  { serial, site, issuer, notAfter }: Omit<LeasedCertificate, 'mount'>,
  now: number,
): LeaseRequest {
  const ttlSeconds = Math.max(0, Math.floor((notAfter - now) / 1000))
  return { payload: { serial, site, issuer, notAfter }, ttlSeconds, maxTtlSeconds: ttlSeconds, renewable: false }
}

/**
 * The certificate that a lease was issued for.
 * @throws Error for the payload of another kind of lease
 */
export function leasedCertificate(mount: string, payload: Readonly<Record<string, unknown>>): LeasedCertificate {
  if (!Check(payloadSchema, payload)) throw new Error('the lease does not belong to a certificate')
  const { serial, site, issuer, notAfter } = payload
  return { mount, serial, site, issuer, notAfter }
}
