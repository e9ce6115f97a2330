import { parseAddress } from '../../../../x509/extensions/address.ts'

/** The addresses that begin with the first bits of `address`. */
export interface Network {
  readonly address: Buffer
  /** Bits. */
  readonly prefix: number
}

const mapped = Buffer.from('00000000000000000000ffff', 'hex')

/** 4 or 16 bytes of an address in text; an IPv4 address in IPv6 form (RFC 4291, 2.5.5.2) is the IPv4 address. */
export function readAddress(text: string): Buffer | undefined {
  const address = parseAddress(text)
  return address && plainAddress(address)
}

/** Shortens an address of 16 bytes to 4 if it is an IPv4 address in IPv6 form. */
export const plainAddress = (address: Buffer): Buffer => (isMapped(address) ? address.subarray(12) : address)

const isMapped = (address: Buffer): boolean => address.length === 16 && address.subarray(0, 12).equals(mapped)

/** A network in CIDR notation (RFC 4632); bits after the prefix are ignored. */
export function readNetwork(text: string): Network | undefined {
  const [, host = '', length = ''] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? []
  const address = readAddress(host)
  if (address === undefined) return undefined
  const ofMapped = host.includes(':') && address.length === 4
  const prefix = Number(length) - (ofMapped ? 96 : 0)
  return prefix < 0 || prefix > address.length * 8 ? undefined : { address, prefix }
}

/** Whether an address lies in the network. @param other 4 or 16 bytes; of the other family it never does */
export function contains({ address, prefix }: Network, other: Buffer): boolean {
  if (address.length !== other.length) return false
  const whole = prefix >> 3
  if (!address.subarray(0, whole).equals(other.subarray(0, whole))) return false
  const rest = 8 - (prefix & 7)
  return rest === 8 || (address[whole] ?? 0) >> rest === (other[whole] ?? 0) >> rest
}
