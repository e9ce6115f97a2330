/**
 * Host and port of an address that the schema has checked: `host:port`, or `[IPv6]:port`, without its brackets then.
 */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}
