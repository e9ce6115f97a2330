import { isIPv6, SocketAddress } from 'node:net'

const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
const groupsOfNetwork = 4

/**
 * The network that one client counts as: its address or, for IPv6, the /64 in which it may take any address (RFC 6177).
 * @param address empty on a unix socket
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [, ipv4] = mappedIpv4.exec(address) ?? []
  if (ipv4 !== undefined) return ipv4
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return address
  const [head = '', tail] = new SocketAddress({ address: bare, family: 'ipv6' }).address.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  const groups = tail === undefined ? front : [...front, ...zeros, ...back]
  return `${groups.slice(0, groupsOfNetwork).join(':')}::/64`
}
