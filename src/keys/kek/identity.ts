/**
 * CKA_ID of every token object of ours: a reserved prefix, the cluster's uuid, the object's own uuid. Managed keys of
 * users may neither have nor be searched by an id with this prefix.
 */
const prefix = Buffer.from('strongroom\0')

const uuidBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex')

/** @param cluster the cluster's uuid @param object the uuid of the KEK or material */
export const objectId = (cluster: string, object: string): Buffer =>
  Buffer.concat([prefix, uuidBytes(cluster), uuidBytes(object)])

export const reserved = (id: Uint8Array): boolean => Buffer.from(id).subarray(0, prefix.length).equals(prefix)

/** The cluster whose object the id names; undefined for anybody else's object. */
export function clusterOf(id: Uint8Array): string | undefined {
  if (!reserved(id) || id.length !== prefix.length + 32) return undefined
  const hex = Buffer.from(id).toString('hex', prefix.length, prefix.length + 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
