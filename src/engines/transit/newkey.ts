import { algorithmOf } from '../../keys/algorithms.ts'
import type { Mount } from '../../route.ts'
import type { New } from '../../store/table.ts'
import type { KeyRow, keysTable } from './tables.ts'

/** What a new key is to be; whatever is left out has the wire's default. */
export type Creation = Pick<KeyRow, 'name' | 'type'> &
  Partial<Pick<KeyRow, 'exportable' | 'allowPlaintextBackup' | 'keySize' | 'autoRotateSeconds'>>

/** Of every version's HMAC secret, and of an hmac key that names no size. */
export const hmacSecretBytes = 32

/** Clients read key_size of an hmac key, so that the default is written down. */
const keySizeOf = ({ type, keySize }: Creation): number =>
  algorithmOf(type).kind === 'hmac' ? keySize || hmacSecretBytes : 0

/** The row of a key with one version. @param now milliseconds */
export const newKey = (mount: Mount, wanted: Creation, now: number): New<typeof keysTable> => ({
  mount: mount.uuid,
  name: wanted.name,
  type: wanted.type,
  derived: false,
  convergent: false,
  convergentVersion: 0,
  kdf: '',
  exportable: wanted.exportable ?? false,
  allowPlaintextBackup: wanted.allowPlaintextBackup ?? false,
  keySize: keySizeOf(wanted),
  autoRotateSeconds: wanted.autoRotateSeconds ?? 0,
  minDecryptionVersion: 1,
  minEncryptionVersion: 0,
  minAvailableVersion: 0,
  latestVersion: 1,
  deletionAllowed: false,
  imported: false,
  allowRotation: false,
  softDeleted: false,
  createdAt: now,
})
