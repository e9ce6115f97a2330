import { Type } from 'typebox'
import { nextTurn } from '../../../after.ts'
import { absent, badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import type { Algorithm } from '../../../keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { Material } from '../../../keys/material.ts'
import { checkFormat, type Format, privateText, publicText } from '../../../keys/transfer/keytext.ts'
import { type Call, type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { exportedVersionField } from '../input/fields.ts'
import { exported } from '../ring/exported.ts'
import { managedType } from '../ring/managedtype.ts'
import { type Inventory, partOf } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'
import { refuseSoftDeleted } from '../ring/rules.ts'
import type { KeyRow } from '../ring/tables.ts'
import { versionsToExport } from '../ring/versions.ts'

const body = Type.Object({
  version: exportedVersionField,
  format: text({ about: 'raw, der or pem; absent means the usual form of the key type.' }),
})

type ExportCall = Call<TransitContext, typeof body>
type KeyType = 'encryption-key' | 'signing-key' | 'hmac-key' | 'public-key' | 'certificate-chain'
const keyTypes: readonly string[] = ['encryption-key', 'signing-key', 'hmac-key', 'public-key', 'certificate-chain']

/** @throws ApiError 400 when keys of the type have no such material, or it may not leave */
function checkKind(kind: KeyType, key: KeyRow, algorithm: Algorithm): void {
  const asymmetric = algorithm.exports['public-key'] !== undefined
  if (kind === 'public-key' || kind === 'certificate-chain') {
    if (!asymmetric) throw badRequest(`unknown key type ${key.type} for export type ${kind}`)
    return
  }
  if (!key.exportable) throw badRequest('private key material is not exportable')
  if (kind === 'encryption-key' && !algorithm.abilities.encrypt) {
    throw badRequest('encryption not supported for the key')
  }
  if (kind === 'signing-key' && !algorithm.abilities.sign) throw badRequest('signing not supported for the key')
}

async function exportVersions(call: ExportCall): Promise<Data> {
  const { context, mount, params, body } = call
  const { key_type: kind = '', name = '' } = params
  if (!isKeyType(kind)) throw badRequest(`invalid export type: ${kind}`)
  const found = await context.rings.inventory(mount, name)
  if (found === undefined) throw absent()
  const { key } = found.ring
  refuseSoftDeleted(key)
  if (key.type === managedType)
    throw badRequest('keys of type managed_key stay in their token: they cannot be exported')
  const algorithm = algorithmOf(key.type)
  checkKind(kind, key, algorithm)
  const format = checkFormat(kind === 'hmac-key' ? algorithmOf('hmac') : algorithm, body.format ?? '')
  const keys: Record<string, string> = {}
  for (const version of versionsToExport(found.ring, params.version ?? body.version)) {
    await nextTurn()
    keys[version.version] = await textOf(context, found, version, kind, format)
  }
  return { name: key.name, type: key.type, keys }
}

async function textOf(
  context: TransitContext,
  found: Inventory,
  version: Version,
  kind: KeyType,
  format: Format,
): Promise<string> {
  if (kind === 'certificate-chain') {
    const { certificateChain } = version
    if (certificateChain === null) {
      throw badRequest('selected key version does not have a certificate chain imported')
    }
    return certificateChain
  }
  const id = kind === 'hmac-key' ? (version.hmacMaterial ?? version.material) : version.material
  const material = new Material(partOf(found, id))
  const { algorithm } = material
  if (kind === 'public-key') return publicText(material.publicKey, algorithm, format)
  // Only the public key was imported.
  if (!material.complete) return ''
  const form = kind === 'hmac-key' ? undefined : algorithm.exports[kind]
  return context.keyExport.open(material, (opened) => privateText(opened, form, format))
}

const isKeyType = (kind: string): kind is KeyType => keyTypes.includes(kind)

const exportRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'GET',
    path,
    access: 'token',
    about: 'Returns an exportable key: encryption-key, signing-key, hmac-key; or public-key, certificate-chain.',
    body,
    answers: exported,
    run: exportVersions,
  })

export const exportKey = exportRoute('export/:key_type/:name')
export const exportKeyVersion = exportRoute('export/:key_type/:name/:version')
