import { Type } from 'typebox'
import { nextTurn } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, text } from '../../../field.ts'
import { type Call, route } from '../../../route.ts'
import { type Copy, checkCopy, checkName, unreadable, wipeCopy } from '../blob/copy.ts'
import { readStrongroomBlob } from '../blob/strongroomblob.ts'
import { parseWithDigits, readVaultBlob } from '../blob/vaultblob.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { decodeBase64 } from '../input/base64.ts'
import { restoredChain } from '../input/chain.ts'
import { rotationDue } from '../ring/rules.ts'
import type { ImportedVersion, VersionDraft, VersionFields } from '../ring/versiondraft.ts'

const body = Type.Object({
  backup: text({ about: 'What backup gave, here or by Vault or OpenBao.' }),
  name: text({ about: 'The name of the restored key; absent is the one it had.' }),
  force: boolean({ about: 'Replaces a key of that name, which must allow deletion unless the caller has sudo.' }),
})

type RestoreCall = Call<TransitContext, typeof body>

/** @throws ApiError 400 with one text for anything but a whole backup */
async function readBlob(backup: string): Promise<Copy> {
  let parsed: unknown
  try {
    parsed = parseWithDigits(decodeBase64(backup).toString('utf8'))
  } catch {
    // The message of JSON.parse may contain parts of the key.
    throw unreadable()
  }
  if (typeof parsed !== 'object' || parsed === null) throw unreadable()
  if ('strongroom_backup' in parsed) return readStrongroomBlob(parsed as Record<string, unknown>)
  return readVaultBlob(parsed)
}

async function restore(call: RestoreCall): Promise<undefined> {
  const { context, mount, params, body, privileged } = call
  if (!body.backup) throw badRequest("'backup' must be supplied")
  const copy = await readBlob(body.backup)
  try {
    const name = params.name ?? (body.name || copy.key.name)
    checkName(name)
    checkCopy(copy)
    const replace = (existing: { readonly deletionAllowed: boolean }): void => {
      if (!body.force) throw badRequest(`key "${name}" already exists`)
      if (existing.deletionAllowed || privileged()) return
      throw badRequest(
        `key "${name}" already exists and does not allow deletion: to replace it takes deletion_allowed, or sudo`,
      )
    }
    const existing = await context.rings.get(mount, name)
    // Refused before the token works for nothing; checked again when the key is replaced.
    if (existing) replace(existing.key)
    const imported = await importVersions(call, copy)
    const { latestVersion } = copy.key
    const restoreInfo = { time: new Date(context.clock.wall()).toISOString(), version: latestVersion }
    const rotateAt = rotationDue(copy.key, copy.versions.at(-1)?.createdAt ?? 0)
    await context.keys.add({ ...copy.key, name, mount: mount.uuid, restoreInfo, rotateAt }, imported, replace)
  } finally {
    wipeCopy(copy)
  }
}

/** Brings all versions into the token, each checked; nothing is stored yet. */
async function importVersions({ context, caller }: RestoreCall, { key, versions }: Copy): Promise<ImportedVersion[]> {
  const drafts: VersionDraft[] = []
  try {
    const imported: ImportedVersion[] = []
    for (const one of versions) {
      await nextTurn()
      const { version, createdAt, convergentVersion, hmac } = one
      const draft = await context.versions.prepare(key, makerOf(caller), {
        key: (specification) => context.keyImport.restore(specification, one.key),
        ...(hmac
          ? { hmac: (specification) => context.keyImport.restore(specification, { kind: 'secret', bytes: hmac }) }
          : {}),
      })
      drafts.push(draft)
      const { publicKey } = draft.key.fields
      const certificateChain = one.certificateChain === null ? null : restoredChain(one.certificateChain, publicKey)
      imported.push({
        version,
        draft,
        fields: { createdAt, convergentVersion, certificateChain } satisfies VersionFields,
      })
    }
    return imported
  } catch (error) {
    for (const draft of drafts) await context.versions.discard(draft)
    throw error
  }
}

const restoreRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a key of a backup, all of it or nothing.',
    body,
    run: restore,
  })

export const restoreKey = restoreRoute('restore')
export const restoreKeyAs = restoreRoute('restore/:name')
