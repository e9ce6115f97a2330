import { Type } from 'typebox'
import { nextTurn } from '../../../after.ts'
import { data } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { writePkcs8 } from '../../../keys/making/pair.ts'
import { describe, Material } from '../../../keys/material.ts'
import type { KeyBytes } from '../../../keys/transfer/keyimport.ts'
import { type Call, type Data, route } from '../../../route.ts'
import { type CopiedVersion, wipeCopy } from '../blob/copy.ts'
import { writeStrongroomBlob } from '../blob/strongroomblob.ts'
import type { TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'
import { type Inventory, partOf } from '../ring/readring.ts'
import { refuseSoftDeleted } from '../ring/rules.ts'

async function backUp({ context, mount, params }: Call<TransitContext, typeof noFields>): Promise<Data> {
  const { name = '' } = params
  const missing = `key "${name}" not found`
  const found = await context.rings.inventory(mount, name)
  if (found === undefined) throw badRequest(missing)
  const { key } = found.ring
  refuseSoftDeleted(key)
  if (!key.allowPlaintextBackup) throw badRequest('plaintext backup is disallowed on the policy')
  const backup = await blobOf(context, found)
  const backupInfo = { time: new Date(context.clock.wall()).toISOString(), version: key.latestVersion }
  await context.changes.change(mount, name, missing, async (tx, ring) => {
    if (ring.key.id === key.id) await context.changes.update(tx, ring, { backupInfo })
  })
  return { backup }
}

/** @throws ApiError 400 for managed keys, which stay in their HSM */
async function blobOf(context: TransitContext, found: Inventory): Promise<string> {
  const { ring } = found
  const histories = new Map<number, Record<string, unknown>>()
  const versions: CopiedVersion[] = []
  const copy = { key: ring.key, versions }
  try {
    for (const one of ring.versions.values()) {
      const { version, createdAt, convergentVersion, certificateChain, hmacMaterial } = one
      if (one.managedKey !== null) {
        throw badRequest(`version ${version} is a managed key, which stays in its HSM: it cannot be backed up`)
      }
      await nextTurn()
      const material = new Material(partOf(found, one.material))
      const key = await bytesOf(context, material)
      const secret =
        hmacMaterial === null ? undefined : await bytesOf(context, new Material(partOf(found, hmacMaterial)))
      histories.set(version, describe(material.row))
      versions.push({ version, createdAt, convergentVersion, certificateChain, key, hmac: secret?.bytes })
    }
    return writeStrongroomBlob(copy, histories)
  } finally {
    wipeCopy(copy)
  }
}

async function bytesOf(context: TransitContext, material: Material): Promise<KeyBytes> {
  if (!material.complete) {
    return { kind: 'public', bytes: material.publicKey.export({ format: 'der', type: 'spki' }) }
  }
  return context.keyExport.open(material, (opened): KeyBytes => {
    if (opened.kind === 'secret') return { kind: 'secret', bytes: Buffer.from(opened.secret) }
    return { kind: 'pair', bytes: writePkcs8(opened.pair) }
  })
}

export const backUpKey = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'backup/:name',
  access: 'token',
  about: 'Returns a whole key in clear: its settings, every version, and their HMAC secrets.',
  body: noFields,
  answers: data(Type.Object({ backup: Type.String() })),
  run: backUp,
})
