import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { integer } from '../../../../field.ts'
import { algorithmOf } from '../../../../keys/algorithms.ts'
import type { Draft } from '../../../../keys/materials/materials.ts'
import { type Call, route } from '../../../../route.ts'
import { makerOf, type TransitContext } from '../../context.ts'
import { importer, importSourceFields } from '../../input/importsource.ts'
import { mayLeave } from '../../ring/newkey.ts'
import type { Ring } from '../../ring/readring.ts'
import { refuseSoftDeleted } from '../../ring/ring.ts'

const body = Type.Object({
  ...importSourceFields,
  version: integer({ about: 'The version, so far only a public key, whose private half this is.' }),
})

type ImportCall = Call<TransitContext, typeof body>

/** @throws ApiError 400 for a key that takes no material from elsewhere */
function checkTaking({ key }: Ring): void {
  refuseSoftDeleted(key)
  if (!key.imported) throw badRequest('the import_version endpoint can only be used with an imported key')
  if (key.convergent) throw badRequest('import_version cannot be used on keys with convergent encryption enabled')
}

/** @throws ApiError 400 unless the version that is named lacks its private half, which this may be */
async function checkNamed({ context, body: { version, public_key } }: ImportCall, ring: Ring): Promise<void> {
  if (version === undefined || version === 0) return
  const { kind } = algorithmOf(ring.key.type)
  if (kind === 'aead' || kind === 'hmac') throw badRequest('provided type does not support importing key versions')
  const found = ring.versions.get(version)
  if (found === undefined) throw badRequest('no such key version')
  if (public_key) throw badRequest('cannot add a public key to a key version that already has a public key set')
  if ((await context.material(found.material)).complete) {
    throw badRequest('private key imported, key version cannot be updated')
  }
}

/** The version that the draft completes: the one that is named, or the latest; undefined where it is a new one. */
async function completes(
  { context, body: { version } }: ImportCall,
  ring: Ring,
  draft: Draft,
): Promise<number | undefined> {
  const number = version || ring.key.latestVersion
  const found = ring.versions.get(number)
  if (found === undefined || draft.fields.residence === 'public') return undefined
  const { row, complete } = await context.material(found.material)
  const same = row.fingerprint !== null && draft.fields.fingerprint?.equals(row.fingerprint) === true
  if (!complete && same) return number
  if (version) throw badRequest('cannot import key, key pair does not match')
  return undefined
}

async function importVersion(call: ImportCall): Promise<undefined> {
  const { context, mount, params, caller } = call
  const { rings } = context
  const { name = '' } = params
  const missing = `no key found with name ${name}; to import a new key, use the import/ endpoint`
  for (let done = false; !done; ) {
    const before = await rings.get(mount, name)
    if (before === undefined) throw badRequest(missing)
    checkTaking(before)
    const prepareImported = importer(call, before.key.type)
    await checkNamed(call, before)
    const { type: algorithm, derived, latestVersion } = before.key
    const createdBy = makerOf(caller)
    const draft = await prepareImported({
      algorithm,
      part: 'key',
      derived,
      exportable: mayLeave(before.key),
      createdBy,
    })
    try {
      const version = await completes(call, before, draft)
      const drafts = version
        ? undefined
        : await rings.prepare({ ...before.key, keySize: 0 }, createdBy, { key: async () => draft })
      done = await rings.change(mount, name, missing, async (tx, ring) => {
        checkTaking(ring)
        // Another key by now, or with other versions, or one that may leave: the draft was made for what it was.
        const same = ring.key.id === before.key.id && ring.key.latestVersion === latestVersion
        if (!same || mayLeave(ring.key) !== mayLeave(before.key)) return false
        if (version) await rings.complete(tx, ring, version, draft)
        if (drafts === undefined) return true
        const keySize = ring.key.keySize === 0 ? 0 : draft.fields.sizeBytes
        const { key } = await rings.update(tx, ring, { latestVersion: latestVersion + 1, keySize })
        await rings.addVersion(tx, key, key.latestVersion, drafts)
        return true
      })
    } finally {
      await rings.abandon({ key: draft })
    }
  }
}

export const importKeyVersion = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/import_version',
  access: 'token',
  about: 'Adds material that comes encrypted to the wrapping key to an imported key.',
  body,
  danger: 'custody',
  run: importVersion,
})
