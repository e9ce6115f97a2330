import { randomBytes } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { algorithmOf } from '../algorithms.ts'
import { publicTemplate } from '../making/making.ts'
import { mechanismOf } from './mechanism.ts'
import { generatedType } from './settings.ts'
import type { ManagedRow } from './table.ts'

const idBytes = 16

/**
 * Makes the pair that a managed key names, to stay in its token: sensitive, not extractable, with the usages of its
 * mechanism.
 * @throws ApiError 400 unless the managed key allows it
 */
export async function generate(hsm: Hsm, row: ManagedRow): Promise<void> {
  const { name, keyLabel, keyId, allowGenerateKey } = row
  const mechanism = mechanismOf(row.mechanism)
  const wanted = keyId === '' ? `label "${keyLabel}"` : `id ${keyId}`
  if (!allowGenerateKey || keyId !== '') {
    const why = keyId === '' ? ', and allow_generate_key is not set' : '; keys with a given id are never generated'
    throw badRequest(`managed key "${name}": the token has no key with ${wanted}${why}`)
  }
  const algorithm = algorithmOf(generatedType(row, mechanism))
  if (algorithm.class !== 'private') throw new Error(`managed key ${row.id} names no pair`)
  const common = { keyType: algorithm.keyType, label: keyLabel, id: randomBytes(idBytes), token: true }
  const open = { ...publicTemplate(algorithm), ...common }
  const usage = mechanism.usages[0] === 'sign' ? 'sign' : 'decrypt'
  await hsm.generateKeyPair(algorithm.generation, open, { class: 'private', ...common, usages: [usage] })
}
