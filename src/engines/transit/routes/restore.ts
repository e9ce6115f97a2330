import { Type } from 'typebox'
import { nextTurn } from '../../../after.ts'
import { done } from '../../../answers.ts'
import { decodeBase64 } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, text, wholeBody } from '../../../field.ts'
import { measureJson } from '../../../request/json/measure.ts'
import { type Call, route } from '../../../route.ts'
import { type Copy, checkCopy, checkName, unreadable, wipeCopy } from '../blob/copy.ts'
import { readStrongroomBlob } from '../blob/strongroomblob.ts'
import { parseWithDigits, readVaultBlob } from '../blob/vaultblob.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { restoredChain } from '../input/chain.ts'
import { rotationDue } from '../ring/rules.ts'
import type { ImportedVersion, VersionDraft, VersionFields } from '../ring/versiondraft.ts'

const body = Type.Object({
  backup: text({ about: 'A backup made here or by Vault or OpenBao.', longest: wholeBody }),
  name: text({ about: 'The name of the restored key; absent means its former name.' }),
  force: boolean({ about: 'Replaces a key with that name, which must allow deletion unless the caller has sudo.' }),
})

type RestoreCall = Call<TransitContext, typeof body>

/**
 * Room for the most versions, in use and archived, as Vault writes them. They are parsed in one turn of the event loop.
 */
const mostValues = 400_000

/** @throws ApiError 400: one text for anything but a whole backup, or the limit of the parser that it exceeds */
async function readBlob(backup: string): Promise<Copy> {
  const parsed = parseBackup(backup)
  if (typeof parsed !== 'object' || parsed === null) throw unreadable()
  if ('strongroom_backup' in parsed) return readStrongroomBlob(parsed as Record<string, unknown>)
  return readVaultBlob(parsed)
}

function parseBackup(backup: string): unknown {
  const bytes = orUnreadable(() => decodeBase64(backup))
  try {
    measureJson(bytes, 0, mostValues)
    return orUnreadable(() => parseWithDigits(bytes.toString('utf8')))
  } finally {
    bytes.fill(0)
  }
}

/** The message of JSON.parse may contain parts of the key. */
function orUnreadable<T>(read: () => T): T {
  try {
    return read()
  } catch {
    throw unreadable()
  }
}

async function restore(call: RestoreCall): Promise<undefined> {
  const { context, mount, params, body, privileged } = call
  if (!body.backup) throw badRequest("'backup' must be supplied")
  const given = params.name ?? body.name
  if (given) checkName(given)
  const copy = await readBlob(body.backup)
  try {
    const name = given || copy.key.name
    checkName(name)
    checkCopy(copy)
    const replace = (existing: { readonly deletionAllowed: boolean }): void => {
      if (!body.force) throw badRequest(`key "${name}" already exists`)
      if (existing.deletionAllowed || privileged()) return
      throw badRequest(
        `key "${name}" already exists and does not allow deletion: replacing it needs deletion_allowed or sudo`,
      )
    }
    const existing = await context.rings.get(mount, name)
    // Refused before the token does useless work; checked again when the key is replaced.
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

/** Imports all versions into the token, each checked; nothing is stored yet. */
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
    about: 'Restores a key from a backup, all of it or nothing.',
    body,
    answers: done,
    run: restore,
  })

export const restoreKey = restoreRoute('restore')
export const restoreKeyAs = restoreRoute('restore/:name*')
