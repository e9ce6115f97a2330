import type { Attribute } from './binding.ts'
import { CKA, CKK, CKO } from './constants.ts'

export type Usage = 'encrypt' | 'decrypt' | 'sign' | 'verify' | 'wrap' | 'unwrap' | 'derive'

/** The attributes of a new object. Omitted guards have the strict value. */
export interface KeyTemplate {
  readonly class: 'secret' | 'private' | 'public' | 'data'
  /** A CKK number; every class but data needs it. */
  readonly keyType?: number
  readonly label?: string
  readonly id?: Uint8Array
  /** A persistent token object; default false. */
  readonly token?: boolean
  /** Default true. */
  readonly sensitive?: boolean
  /** Default false. */
  readonly extractable?: boolean
  /** Default false. */
  readonly modifiable?: boolean
  /** Default false. */
  readonly copyable?: boolean
  /** Every other usage is set to false. */
  readonly usages: readonly Usage[]
  /** Bytes of a secret key to generate. */
  readonly valueLength?: number
  readonly value?: Uint8Array
  /** DER of the curve's OID. */
  readonly ecParameters?: Uint8Array
  /** The public point (04 ‖ X ‖ Y) of an EC key that is unwrapped: some tokens cannot compute it (NSS). */
  readonly ecPoint?: Uint8Array
  readonly modulusBits?: number
  readonly publicExponent?: Uint8Array
  /** CKA_APPLICATION of a data object. */
  readonly application?: string
}

/** A token's dialect of templates, as proven by the self-test; a guard is omitted only if the token refuses it. */
export interface Dialect {
  /** Takes CKA_MODIFIABLE=false in C_UnwrapKey. */
  readonly modifiableOnUnwrap: boolean
  /** Takes CKA_COPYABLE on token objects (NSS: CKR_GENERAL_ERROR). */
  readonly copyableOnToken: boolean
  /** Wants CKA_NSS_DB with the point when an EC key is unwrapped (NSS: CKR_TEMPLATE_INCOMPLETE without). */
  readonly pointOnUnwrap: boolean
}

export type Purpose = 'generate' | 'create' | 'unwrap'

const classes = { secret: CKO.SECRET_KEY, private: CKO.PRIVATE_KEY, public: CKO.PUBLIC_KEY, data: CKO.DATA }

/** The usages that PKCS#11 knows for each class (v3.1 4.7 to 4.10). */
const usages: Record<KeyTemplate['class'], readonly (readonly [number, Usage | undefined])[]> = {
  secret: [
    [CKA.ENCRYPT, 'encrypt'],
    [CKA.DECRYPT, 'decrypt'],
    [CKA.SIGN, 'sign'],
    [CKA.VERIFY, 'verify'],
    [CKA.WRAP, 'wrap'],
    [CKA.UNWRAP, 'unwrap'],
    [CKA.DERIVE, 'derive'],
  ],
  private: [
    [CKA.DECRYPT, 'decrypt'],
    [CKA.SIGN, 'sign'],
    [CKA.SIGN_RECOVER, undefined],
    [CKA.UNWRAP, 'unwrap'],
    [CKA.DERIVE, 'derive'],
  ],
  public: [
    [CKA.ENCRYPT, 'encrypt'],
    [CKA.VERIFY, 'verify'],
    [CKA.VERIFY_RECOVER, undefined],
    [CKA.WRAP, 'wrap'],
    [CKA.DERIVE, 'derive'],
  ],
  data: [],
}

/**
 * The whole attribute list of an object that is to be made: guards and usages are all explicit, because each token
 * chooses its own defaults (SoftHSM: every usage is allowed).
 */
export function spell(template: KeyTemplate, purpose: Purpose, dialect: Dialect): Attribute[] {
  const { token = false, modifiable = false, copyable = false } = template
  const hidden = template.class === 'secret' || template.class === 'private'
  const list: Attribute[] = [
    { type: CKA.TOKEN, value: token },
    { type: CKA.PRIVATE, value: template.class !== 'public' },
    ...identity(template),
  ]
  if (!token || dialect.copyableOnToken) list.push({ type: CKA.COPYABLE, value: copyable })
  if (hidden) {
    list.push({ type: CKA.SENSITIVE, value: template.sensitive ?? true })
    list.push({ type: CKA.EXTRACTABLE, value: template.extractable ?? false })
  }
  for (const [type, usage] of usages[template.class]) {
    list.push({ type, value: usage !== undefined && template.usages.includes(usage) })
  }
  list.push(...(purpose === 'unwrap' ? unwrapping(template, dialect) : contents(template)))
  // Last: SoftHSM sets attribute by attribute and refuses any after CKA_MODIFIABLE=false in C_UnwrapKey.
  if (modifiable || purpose !== 'unwrap' || dialect.modifiableOnUnwrap) {
    list.push({ type: CKA.MODIFIABLE, value: modifiable })
  }
  return list
}

const counterparts: Partial<Record<Usage, Usage>> = {
  sign: 'verify',
  decrypt: 'encrypt',
  unwrap: 'wrap',
  derive: 'derive',
}

/**
 * The attribute lists of a pair to generate. The public key gets the counterpart of each usage of the private key: NSS
 * tests a new pair that way and refuses it otherwise (CKR_KEY_TYPE_INCONSISTENT).
 */
export function spellPair(open: KeyTemplate, hidden: KeyTemplate, dialect: Dialect): [Attribute[], Attribute[]] {
  const mirrored = hidden.usages.flatMap((usage) => counterparts[usage] ?? [])
  const wider = { ...open, usages: [...open.usages, ...mirrored] }
  return [spell(wider, 'generate', dialect), spell(hidden, 'generate', dialect)]
}

/** The attribute list of a search: only attributes that the template names. */
export function search(template: Partial<KeyTemplate>): Attribute[] {
  const list = identity(template)
  if (template.token !== undefined) list.push({ type: CKA.TOKEN, value: template.token })
  return list
}

function identity(template: Partial<KeyTemplate>): Attribute[] {
  const list: Attribute[] = []
  if (template.class !== undefined) list.push({ type: CKA.CLASS, value: classes[template.class] })
  if (template.keyType !== undefined) list.push({ type: CKA.KEY_TYPE, value: template.keyType })
  if (template.label !== undefined) list.push({ type: CKA.LABEL, value: template.label })
  if (template.id !== undefined) list.push({ type: CKA.ID, value: template.id })
  if (template.application !== undefined) list.push({ type: CKA.APPLICATION, value: template.application })
  return list
}

function contents(template: KeyTemplate): Attribute[] {
  const list: Attribute[] = []
  if (template.valueLength !== undefined) list.push({ type: CKA.VALUE_LEN, value: template.valueLength })
  if (template.value !== undefined) list.push({ type: CKA.VALUE, value: template.value })
  if (template.ecParameters !== undefined) list.push({ type: CKA.EC_PARAMS, value: template.ecParameters })
  if (template.modulusBits !== undefined) list.push({ type: CKA.MODULUS_BITS, value: template.modulusBits })
  if (template.publicExponent !== undefined) list.push({ type: CKA.PUBLIC_EXPONENT, value: template.publicExponent })
  return list
}

/** The blob brings the contents; only NSS wants the point of an EC key beside it. */
function unwrapping(template: KeyTemplate, dialect: Dialect): Attribute[] {
  const point = template.keyType === CKK.EC ? template.ecPoint : undefined
  return dialect.pointOnUnwrap && point !== undefined ? [{ type: CKA.NSS_DB, value: point }] : []
}
