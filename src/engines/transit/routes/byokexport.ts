import { constants, publicEncrypt } from 'node:crypto'
import { Type } from 'typebox'
import { nextTurn } from '../../../after.ts'
import type { Hash } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { Material } from '../../../keys/material.ts'
import { type Call, type Data, type MaybePromise, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { exportedVersionField } from '../input/fields.ts'
import { readHashFunction } from '../input/hashfunction.ts'
import { exported } from '../ring/exported.ts'
import { managedType } from '../ring/managedtype.ts'
import { type Inventory, partOf } from '../ring/readring.ts'
import { refuseSoftDeleted } from '../ring/rules.ts'
import { versionsToExport } from '../ring/versions.ts'
import { withRing } from '../ring/withring.ts'

const body = Type.Object({
  version: exportedVersionField,
  hash: text({ about: 'Hash of the RSA-OAEP step: SHA1, SHA224, SHA256, SHA384 or SHA512.' }),
})

type ExportCall = Call<TransitContext, typeof body>

/** The wrapping key of another server, imported here as `dst`. @throws ApiError 400 */
function recipient({ context, mount, params }: ExportCall): MaybePromise<Material> {
  const named = { context, mount, params: { name: params.dst ?? '' } }
  return withRing(named, 'no such destination key to export to', async (ring) => {
    const latest = ring.versions.get(ring.key.latestVersion)
    const material = latest && (await context.material(latest.material))
    if (!material?.algorithm.oaep) throw badRequest('unsupported key type in use; must be a rsa key')
    return material
  })
}

/** Encrypts each version to the key `dst`, in the form that import accepts. */
async function exportTo(call: ExportCall): Promise<Data> {
  const { context, mount, params, body } = call
  const hash = readHashFunction(body.hash)
  const to = await recipient(call)
  const found = await context.rings.inventory(mount, params.src ?? '')
  if (found === undefined) throw badRequest('no such source key for export')
  const { key } = found.ring
  refuseSoftDeleted(key)
  if (key.type === managedType || !key.exportable) throw badRequest('key is not exportable')
  const keys: Record<string, string> = {}
  for (const { version, material } of versionsToExport(found.ring, params.version ?? body.version)) {
    await nextTurn()
    keys[version] = await wrapFor(context, to, hash, privateKeyOf(found, material, version))
  }
  return { name: key.name, type: key.type, keys }
}

/** @throws ApiError 400 for a version that is only a public key */
function privateKeyOf(found: Inventory, id: string, version: number): Material {
  const material = new Material(partOf(found, id))
  if (!material.complete) throw badRequest(`version ${version} does not contain a private part`)
  return material
}

function wrapFor({ keyExport }: TransitContext, to: Material, hash: Hash, key: Material): Promise<string> {
  return keyExport.lendTransport(async (transport) => {
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: hash.node }
    const head = publicEncrypt({ key: to.publicKey, ...padding }, transport)
    return Buffer.concat([head, await keyExport.wrapUnder(key, transport)]).toString('base64')
  })
}

const byokRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'GET',
    path,
    access: 'token',
    about: 'Returns an exportable key encrypted to an RSA key, in the form that import accepts.',
    body,
    answers: exported,
    run: exportTo,
  })

export const exportKeySecurely = byokRoute('byok-export/:dst/:src')
export const exportKeyVersionSecurely = byokRoute('byok-export/:dst/:src/:version')
