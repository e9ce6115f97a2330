import { algorithmOf } from '../../../keys/algorithms.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { Convergence } from '../../../keys/use/derived.ts'
import type { Mount } from '../../../route.ts'
import type { New } from '../../../store/table.ts'
import { managedType } from './managedtype.ts'
import type { KeyRow, keysTable } from './tables.ts'

/** The attributes of a new key; missing ones have the defaults of the API. */
export type KeyTemplate = Pick<KeyRow, 'name' | 'type'> &
  Partial<
    Pick<
      KeyRow,
      | 'derived'
      | 'convergent'
      | 'exportable'
      | 'allowPlaintextBackup'
      | 'keySize'
      | 'autoRotateSeconds'
      | 'hmacInHsmOnly'
    >
  >

/** The size of the HMAC secret of a version of any type but hmac: tokens accept it for every SHA-2. */
export const hmacSecretBytes = 64
const defaultKeySize = 32

/** `convergentVersion` of a key whose versions each have their own. */
const perVersion = -1

/** The convergent version of a new key version: 3, except for restored keys of an older one. */
export function convergenceOfNew({ convergent, convergentVersion, kdf }: ConvergentKey): Convergence {
  if (!convergent) return 0
  if (convergentVersion === 1) return 1
  // Convergent version 3 needs more bytes than the old KDF yields.
  return kdf === ('hkdf_sha256' satisfies Kdf) ? 3 : 2
}
type ConvergentKey = Pick<KeyRow, 'convergent' | 'convergentVersion' | 'kdf'>

/** Whether the key material may leave the server, and so is wrapped under the export KEK. */
export const mayLeave = (key: Pick<KeyRow, 'exportable' | 'allowPlaintextBackup'>): boolean =>
  key.exportable || key.allowPlaintextBackup

/** Clients read key_size of an hmac key, so the default is stored too. */
const keySizeOf = ({ type, keySize }: KeyTemplate): number =>
  type !== managedType && algorithmOf(type).mac ? keySize || defaultKeySize : 0

/** The row of a key with one version. @param now milliseconds */
export const newKey = (mount: Mount, template: KeyTemplate, now: number): New<typeof keysTable> => ({
  mount: mount.uuid,
  name: template.name,
  type: template.type,
  derived: template.derived ?? false,
  convergent: template.convergent ?? false,
  convergentVersion: template.convergent ? perVersion : 0,
  kdf: template.derived ? ('hkdf_sha256' satisfies Kdf) : '',
  exportable: template.exportable ?? false,
  allowPlaintextBackup: template.allowPlaintextBackup ?? false,
  keySize: keySizeOf(template),
  autoRotateSeconds: template.autoRotateSeconds ?? 0,
  minDecryptionVersion: 1,
  minEncryptionVersion: 0,
  minAvailableVersion: 0,
  latestVersion: 1,
  deletionAllowed: false,
  imported: false,
  allowRotation: false,
  softDeleted: false,
  // Left out while false: a program older than the column then reads the row as sealed.
  hmacInHsmOnly: template.hmacInHsmOnly || null,
  createdAt: now,
})
