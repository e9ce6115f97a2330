import { isOid, writeOid } from '../../../../crypto/oid.ts'
import { isObject } from '../../../../field/object.ts'
import { convert, type Refuse } from '../../../../request/convert.ts'
import { crlExtensionOids, type Extension, extensionOids } from '../../../../x509/extension.ts'

/** Limits on the number of extensions and the length of their identifiers. */
const mostExtensions = 100
const mostOidBytes = 128

/** Extensions of a list that other fields of the request determine, with their names in messages. */
export const reservedExtensions: ReadonlyMap<string, string> = new Map([
  [extensionOids.authorityKeyIdentifier, 'authority key'],
  [crlExtensionOids.crlNumber, 'crl number'],
  [crlExtensionOids.deltaCrlIndicator, 'delta crl'],
])
const none: ReadonlyMap<string, string> = new Map()

/**
 * Extensions as a request has them: `{id, critical, value}` each, the value in base64 and used as it is.
 * @param refuse rejects the request with a reason
 */
export function readGivenExtensions(given: unknown, refuse: Refuse, reserved = none): readonly Extension[] {
  if (isAbsent(given)) return []
  if (!Array.isArray(given)) return refuse("'extensions' field did not contain a list")
  if (given.length > mostExtensions) return refuse(`more than ${mostExtensions} extensions`)
  const ids = new Set<string>()
  return given.map((entry: unknown, index) => {
    const refuseEntry: Refuse = (reason) => refuse(`failed parsing extension entry ${index}: ${reason}`)
    const extension = readGivenExtension(entry, refuseEntry)
    const { oid } = extension
    const name = reserved.get(oid)
    if (name !== undefined) refuseEntry(`${name} object identifier (${oid}) is reserved`)
    if (ids.has(oid)) refuseEntry(`duplicate extension id: ${oid}`)
    ids.add(oid)
    return extension
  })
}

function readGivenExtension(entry: unknown, refuse: Refuse): Extension {
  if (!isObject(entry)) return refuse('expected a map')
  const { id, critical = false, value } = entry
  if (isAbsent(id)) return refuse('missing id field')
  if (typeof id !== 'string' || !isOid(id) || writeOid(id).length > mostOidBytes) {
    return refuse("'id' field is not an object identifier in dotted form")
  }
  if (isAbsent(value)) return refuse("missing 'value' field")
  if (typeof value !== 'string') return refuse("'value' field is not a string")
  const bytes = Buffer.from(value, 'base64')
  if (bytes.toString('base64') !== value.replaceAll(/[\r\n]/g, '')) return refuse("'value' field is not base64")
  const isCritical = convert('boolean', critical ?? false, (reason) => refuse(`'critical' field: ${reason}`))
  return { oid: id, critical: isCritical === true, value: bytes }
}

/** Whether a member of a map is missing or empty. */
export const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === ''
