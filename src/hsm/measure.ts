import type { Clock } from '../clock.ts'
import { CKK, CKM } from './constants.ts'
import type { Connection } from './session/connection.ts'
import { type Dialect, spell } from './template.ts'

const rounds = 15
const slowMilliseconds = 0.2

/**
 * Whether calls on this token take so long (more than 0.2 ms for AES-GCM over 64 bytes, the median of 15) that the
 * event loop must not wait for them: a token behind a network or in another process.
 */
export function isSlow(connection: Connection, dialect: Dialect, clock: Clock): boolean {
  const template = { class: 'secret', keyType: CKK.AES, valueLength: 32, usages: ['encrypt'] } as const
  const key = connection.run('generateKey', [CKM.AES_KEY_GEN, spell(template, 'generate', dialect)])
  const mechanism = { type: CKM.AES_GCM, gcm: { iv: Buffer.alloc(12), tagBits: 128 } }
  const times = Array.from({ length: rounds }, (_, round) => {
    mechanism.gcm.iv.writeUInt32BE(round)
    const began = clock.monotonic()
    connection.run('encrypt', [key, mechanism, Buffer.alloc(64)])
    return clock.monotonic() - began
  }).sort((a, b) => a - b)
  connection.run('destroy', [key])
  return (times[rounds >> 1] ?? 0) > slowMilliseconds
}
