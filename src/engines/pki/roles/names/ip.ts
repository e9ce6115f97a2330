import type { Refusal } from '../refusal.ts'
import type { Role } from '../role.ts'
import { contains, readNetwork } from './address.ts'
import { shorten } from './text.ts'

/** The reference's words for the source of a name. */
export type Origin = 'the API' | 'CSR'

/** Whether an address is allowed; undefined when a role allows no addresses at all. */
export type NetworkRule = ((address: Buffer) => boolean) | undefined

/** The rule of a role, with its networks parsed once. */
export function networkRule({ allowIpSans, allowedIpSansCidr }: Role): NetworkRule {
  if (!allowIpSans) return undefined
  if (allowedIpSansCidr.length === 0) return () => true
  const networks = allowedIpSansCidr.map(readNetwork)
  return (address) => networks.some((network) => network !== undefined && contains(network, address))
}

/** @param address undefined when `text` is not an address */
export function refusalOfAddress(
  text: string,
  address: Buffer | undefined,
  isAllowed: NetworkRule,
  origin: Origin,
): Refusal | undefined {
  if (isAllowed === undefined) {
    return {
      text: `IP Subject Alternative Names are not allowed in this role, but was provided via ${origin}`,
      rule: 'IP addresses are not allowed',
      setting: 'allow_ip_sans=true',
    }
  }
  const shown = JSON.stringify(shorten(text))
  if (address === undefined) {
    return { text: `the value ${shown} is not a valid IP address`, rule: 'an address is IPv4 or IPv6, without zone' }
  }
  if (isAllowed(address)) return undefined
  return {
    text: `the IP address ${shown} is not allowed in this role`,
    rule: 'no allowed network contains the address',
    setting: 'allowed_ip_sans_cidr',
  }
}
