import { Type } from 'typebox'
import { done } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { integer } from '../../../../field.ts'
import { algorithmOf } from '../../../../keys/algorithms.ts'
import type { Draft } from '../../../../keys/materials/draft.ts'
import { type Call, route } from '../../../../route.ts'
import type { Transaction } from '../../../../store/reader.ts'
import { makerOf, type TransitContext } from '../../context.ts'
import { importer, importSourceFields } from '../../input/importsource.ts'
import { mayLeave } from '../../ring/newkey.ts'
import type { Ring } from '../../ring/readring.ts'
import { refuseSoftDeleted } from '../../ring/rules.ts'
import { withRing } from '../../ring/withring.ts'

const body = Type.Object({
  ...importSourceFields,
  version: integer({ about: 'The version to complete with its private key, if only its public key was imported.' }),
})

type ImportCall = Call<TransitContext, typeof body>

/** @throws ApiError 400 for a key that does not accept imported versions */
function checkImportable({ key }: Ring): void {
  refuseSoftDeleted(key)
  if (!key.imported) throw badRequest('the import_version endpoint can only be used with an imported key')
  if (key.convergent) throw badRequest('import_version cannot be used on keys with convergent encryption enabled')
}

/** @throws ApiError 400 unless the requested version lacks its private key and the request can supply it */
async function checkRequested({ context, body: { version, public_key } }: ImportCall, ring: Ring): Promise<void> {
  if (version === undefined || version === 0) return
  if (algorithmOf(ring.key.type).class === 'secret') {
    throw badRequest('provided type does not support importing key versions')
  }
  const found = ring.versions.get(version)
  if (found === undefined) throw badRequest('no such key version')
  if (public_key) throw badRequest('cannot add a public key to a key version that already has a public key set')
  if ((await context.material(found.material)).complete) {
    throw badRequest('private key imported, key version cannot be updated')
  }
}

/** The version whose public key the draft completes: the requested one or the latest; undefined for a new version. */
async function completedVersion(
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

const missingKey = (name = ''): string =>
  `no key found with name ${name}; to import a new key, use the import/ endpoint`

/**
 * Stores a draft made for the ring `before`.
 * @returns false when the key has changed so that the draft no longer fits
 */
function changeUnchanged(
  { context, mount, params }: ImportCall,
  before: Ring,
  store: (tx: Transaction, ring: Ring) => Promise<void>,
): Promise<boolean> {
  return context.changes.change(mount, params.name ?? '', missingKey(params.name), async (tx, ring) => {
    checkImportable(ring)
    const same = ring.key.id === before.key.id && ring.key.latestVersion === before.key.latestVersion
    if (!same || mayLeave(ring.key) !== mayLeave(before.key)) return false
    await store(tx, ring)
    return true
  })
}

/** One attempt. @returns false when it must be repeated because the key changed meanwhile */
async function tryImport(call: ImportCall, before: Ring): Promise<boolean> {
  const { context, caller } = call
  const { versions, changes } = context
  checkImportable(before)
  const { type: algorithm, derived, latestVersion } = before.key
  const prepareKey = importer(call, algorithm)
  await checkRequested(call, before)
  const createdBy = makerOf(caller)
  const key = await prepareKey({ algorithm, part: 'key', derived, exportable: mayLeave(before.key), createdBy })
  try {
    const completed = await completedVersion(call, before, key)
    if (completed) return await changeUnchanged(call, before, (tx, ring) => versions.complete(tx, ring, completed, key))
    const draft = await versions.prepare({ ...before.key, keySize: 0 }, createdBy, { key: async () => key })
    return await changeUnchanged(call, before, async (tx, ring) => {
      const keySize = ring.key.keySize === 0 ? 0 : key.fields.sizeBytes
      const { key: row } = await changes.update(tx, ring, { latestVersion: latestVersion + 1, keySize })
      await versions.insert(tx, row, row.latestVersion, draft)
    })
  } finally {
    await versions.discard({ key })
  }
}

export const importKeyVersion = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/import_version',
  access: 'token',
  about: 'Adds a version to an imported key; its material is encrypted to the wrapping key.',
  body,
  answers: done,
  async run(call) {
    const missing = missingKey(call.params.name)
    for (let done = false; !done; ) done = await withRing(call, missing, (ring) => tryImport(call, ring))
    return undefined
  },
})
