import { badRequest } from '../../errors.ts'
import { reserved } from '../kek/identity.ts'
import { type ManagedMechanism, type ManagedUsage, managedUsages, mechanismOf, readMechanism } from './mechanism.ts'
import type { ManagedRow } from './table.ts'

/** The settings of a managed key, except its name and PIN. */
export type Settings = Omit<
  ManagedRow,
  'id' | 'namespace' | 'mount' | 'rev' | 'epoch' | 'name' | 'pin' | 'pinRefused' | 'createdAt' | 'updatedAt'
>

/** The fields of a request; omitted ones stay as they are, or have their default in a new key. */
export interface Wanted {
  readonly library?: string | undefined
  readonly key_label?: string | undefined
  readonly key_id?: string | undefined
  readonly mechanism?: string | undefined
  readonly pin?: string | undefined
  readonly slot?: string | undefined
  readonly token_label?: string | undefined
  readonly curve?: string | undefined
  readonly key_bits?: number | undefined
  readonly usages?: readonly string[] | undefined
  readonly any_mount?: boolean | undefined
  readonly allow_generate_key?: boolean | undefined
  readonly allow_replace_key?: boolean | undefined
  readonly allow_store_key?: boolean | undefined
  readonly force_rw_session?: boolean | undefined
  readonly max_parallel?: number | undefined
}

const fresh: Omit<Settings, 'mechanism' | 'usages'> = {
  ...{ library: '', tokenLabel: null, slot: null, keyLabel: '', keyId: '', curve: '', keyBits: 0 },
  ...{ anyMount: false, allowGenerateKey: false, allowReplaceKey: false, allowStoreKey: false },
  ...{ forceRwSession: false, maxParallel: 1 },
}

/** Curves by their name here, with the key type each makes. */
const curveTypes: ReadonlyMap<string, string> = new Map([
  ['P256', 'ecdsa-p256'],
  ['P384', 'ecdsa-p384'],
  ['P521', 'ecdsa-p521'],
])

/**
 * The settings after a request.
 * @throws ApiError 400 that names the field and the rule
 */
export function settle(before: Settings | undefined, wanted: Wanted): Settings {
  const old = before ?? fresh
  if (before === undefined && !wanted.mechanism) throw missing('mechanism')
  const mechanism = wanted.mechanism ? readMechanism(wanted.mechanism) : mechanismOf(before?.mechanism ?? 0)
  const settings: Settings = {
    library: wanted.library?.toLowerCase() ?? old.library,
    tokenLabel: wanted.token_label === undefined ? old.tokenLabel : wanted.token_label || null,
    slot: wanted.slot === undefined ? old.slot : readSlot(wanted.slot),
    keyLabel: wanted.key_label ?? old.keyLabel,
    keyId: wanted.key_id === undefined ? old.keyId : readKeyId(wanted.key_id),
    mechanism: mechanism.number,
    curve: wanted.curve?.toUpperCase().replace('-', '') ?? old.curve,
    keyBits: wanted.key_bits ?? old.keyBits,
    usages: wanted.usages?.length ? readUsages(wanted.usages) : (before?.usages ?? mechanism.usages),
    anyMount: wanted.any_mount ?? old.anyMount,
    allowGenerateKey: wanted.allow_generate_key ?? old.allowGenerateKey,
    allowReplaceKey: wanted.allow_replace_key ?? old.allowReplaceKey,
    allowStoreKey: wanted.allow_store_key ?? old.allowStoreKey,
    forceRwSession: wanted.force_rw_session ?? old.forceRwSession,
    maxParallel: wanted.max_parallel ?? old.maxParallel,
  }
  check(settings, mechanism)
  return settings
}

function check(settings: Settings, mechanism: ManagedMechanism): void {
  const { library, tokenLabel, slot, keyLabel, keyId, curve, keyBits } = settings
  if (library === '') throw missing('library')
  if (tokenLabel === null && slot === null) throw badRequest('one of slot and token_label is required')
  if (keyLabel === '' && keyId === '') throw badRequest('one of key_label and key_id is required')
  if (Buffer.byteLength(keyLabel) > 255) throw badRequest('key_label must be 255 bytes at most')
  if (Buffer.byteLength(tokenLabel ?? '') > 32) throw badRequest('token_label must be 32 bytes at most')
  if (curve !== '' && !curveTypes.has(curve))
    throw badRequest(`curve must be one of ${[...curveTypes.keys()].join(', ')}`)
  if (keyBits !== 0 && !mechanism.keyBits.includes(keyBits))
    throw badRequest(`key_bits must be one of ${mechanism.keyBits.join(', ')}`)
  if (settings.maxParallel < 1) throw badRequest('max_parallel must be 1 or more')
  if (!settings.allowGenerateKey) return
  const { generatedBy } = mechanism
  if (generatedBy === undefined)
    throw badRequest(`keys for ${mechanism.name} are never generated: leave allow_generate_key out`)
  if (keyLabel === '') throw badRequest('allow_generate_key needs key_label: the token gives no key a name by itself')
  if (generatedBy === 'curve' ? curve === '' : keyBits === 0)
    throw badRequest(`allow_generate_key with ${mechanism.name} needs ${generatedBy}`)
}

/** The key type, in the table of algorithms, of a key that is made on demand. */
export function generatedType(
  { curve, keyBits }: Pick<Settings, 'curve' | 'keyBits'>,
  { generatedBy }: ManagedMechanism,
): string {
  return generatedBy === 'key_bits' ? `rsa-${keyBits}` : (curveTypes.get(curve) ?? '')
}

const missing = (field: string) => badRequest(`${field} is required`)

function readSlot(text: string): number | null {
  if (text === '') return null
  if (!/^\d{1,15}$/.test(text)) throw badRequest('slot must be a decimal number')
  return Number(text)
}

/** @throws ApiError 400 for malformed hexadecimal, or the id of a key of our own */
function readKeyId(text: string): string {
  const digits = text.replace(/^0x/i, '').toLowerCase()
  if (!/^([0-9a-f]{2}){0,255}$/.test(digits)) throw badRequest('key_id must be a CKA_ID in hexadecimal')
  if (reserved(Buffer.from(digits, 'hex'))) throw badRequest('key_id begins as the ids of the server’s own keys do')
  return digits
}

function readUsages(names: readonly string[]): readonly ManagedUsage[] {
  const known: readonly string[] = managedUsages
  const strange = names.find((name) => !known.includes(name))
  if (strange !== undefined) throw badRequest(`usages: ${strange} is not one of ${known.join(', ')}`)
  return names as readonly ManagedUsage[]
}
