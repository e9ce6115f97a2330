import { algorithmOf } from '../../../keys/algorithms.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { Convergence } from '../../../keys/use/derived.ts'
import type { Mount } from '../../../route.ts'
import type { New } from '../../../store/table.ts'
import { managedType } from './managedtype.ts'
import type { KeyRow, keysTable } from './tables.ts'

/** The attributes of a new key; those left out have the wire's default. */
export type KeyTemplate = Pick<KeyRow, 'name' | 'type'> &
  Partial<
    Pick<KeyRow, 'derived' | 'convergent' | 'exportable' | 'allowPlaintextBackup' | 'keySize' | 'autoRotateSeconds'>
  >

/** Of every version's HMAC secret, and of an hmac key that names no size. */
export const hmacSecretBytes = 32

/** `convergentVersion` of keys whose versions each have their own. */
const perVersion = -1

/** The way of convergent encryption of a version that is added: 3, but for keys that came with an old one. */
export function convergenceOfNew({ convergent, convergentVersion, kdf }: ConvergentKey): Convergence {
  if (!convergent) return 0
  if (convergentVersion === 1) return 1
  // The third way needs more bytes than the old KDF gives.
  return kdf === ('hkdf_sha256' satisfies Kdf) ? 3 : 2
}
type ConvergentKey = Pick<KeyRow, 'convergent' | 'convergentVersion' | 'kdf'>

/** Whether what the key is made of may be handed out, and so lies under the KEK for that. */
export const mayLeave = (key: Pick<KeyRow, 'exportable' | 'allowPlaintextBackup'>): boolean =>
  key.exportable || key.allowPlaintextBackup

/** Clients read key_size of an hmac key, so that the default is written down. */
const keySizeOf = ({ type, keySize }: KeyTemplate): number =>
  type !== managedType && algorithmOf(type).kind === 'hmac' ? keySize || hmacSecretBytes : 0

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
  createdAt: now,
})
