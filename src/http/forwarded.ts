import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { Addresses } from '../config/addresses.ts'
import { badRequest } from '../errors.ts'

/** Whom a request comes from. */
export interface Remote {
  readonly address: string
  readonly port: number
}

/** As Vault's listener settings `x_forwarded_for_…`. */
export interface ForwardedFor {
  /** Of the proxies whose X-Forwarded-For is believed. */
  readonly addresses: readonly string[]
  /** Entries of the header to leave out at its end: proxies between the client and the one that speaks to us. */
  readonly hopSkips: number
  readonly rejectNotPresent: boolean
  readonly rejectNotAuthorized: boolean
}

/** Reads the client of a request; undefined where it is the peer of the connection. */
export type ReadRemote = (request: IncomingMessage) => Remote | undefined

/**
 * Reads X-Forwarded-For where a proxy of ours has sent it: the last entry but for those to skip, because the
 * client of the proxy writes the ones before. The refusals have the reference's texts.
 * @returns throws ApiError 400 for a header that is missing, from elsewhere, or no chain of addresses
 */
export function readForwardedFor(settings: ForwardedFor): ReadRemote {
  const { hopSkips, rejectNotPresent, rejectNotAuthorized } = settings
  const proxies = new Addresses(settings.addresses)
  return ({ headers, socket }) => {
    const sent = headers['x-forwarded-for']
    if (sent === undefined) {
      if (!rejectNotPresent) return undefined
      throw badRequest('missing x-forwarded-for header and configured to reject when not present')
    }
    if (!proxies.has(socket.remoteAddress)) {
      if (!rejectNotAuthorized) return undefined
      throw badRequest('client address not authorized for x-forwarded-for and configured to reject connection')
    }
    const chain = [sent].flat().join(',').split(',')
    const entry = chain.at(-1 - hopSkips)
    if (hopSkips >= chain.length || entry === undefined) {
      throw badRequest(
        `malformed x-forwarded-for configuration or request, hops to skip (${hopSkips}) would skip before earliest chain link (chain length ${chain.length})`,
      )
    }
    return { address: addressIn(entry.trim()), port: socket.remotePort ?? 0 }
  }
}

/** The address of an entry, which some proxies send with its port. */
function addressIn(entry: string): string {
  const bare = entry.replace(/^\[([^\]]+)\](?::\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  if (isIP(bare) === 0) throw badRequest('x-forwarded-for must hold IP addresses')
  return bare
}
