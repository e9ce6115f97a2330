import type { Refusal } from '../refusal.ts'
import type { Role } from '../role.ts'
import { contains, readNetwork } from './address.ts'
import { shorten } from './text.ts'

/** How the reference says where a name came from. */
export type Origin = 'the API' | 'CSR'

/** Whether an address is allowed: undefined when a role has no addresses at all. */
export type NetworkRule = ((address: Buffer) => boolean) | undefined

/** The rule of a role, its networks read once. */
export function networkRule({ allowIpSans, allowedIpSansCidr }: Role): NetworkRule {
  if (!allowIpSans) return undefined
  if (allowedIpSansCidr.length === 0) return () => true
  const networks = allowedIpSansCidr.map(readNetwork)
  return (address) => networks.some((network) => network !== undefined && contains(network, address))
}

/** @param address undefined when `text` is none */
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
    rule: 'the address lies in no allowed network',
    setting: 'allowed_ip_sans_cidr',
  }
}
