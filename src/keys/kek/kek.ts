import { randomUUIDv7 } from 'node:crypto'
import { CKK, CKM } from '../../hsm/constants.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { makeStrictKek } from '../../hsm/strict/strict.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { KekPurpose } from '../tables.ts'
import { type Component, checkValueOf, combine, kekBytes } from './components.ts'
import { clusterOf, objectId } from './identity.ts'

/**
 * One key-encryption key as a token object: it wraps and unwraps, nothing else. An object that could decrypt what it
 * wraps, or be changed or copied into one that can, is the classic way to steal keys through PKCS#11.
 */
const labelOf = (purpose: KekPurpose): string => `strongroom ${purpose}`

const template = (purpose: KekPurpose, id: Buffer): KeyTemplate => ({
  class: 'secret',
  keyType: CKK.AES,
  token: true,
  label: labelOf(purpose),
  id,
  usages: ['wrap', 'unwrap'],
})

export interface NewKek {
  readonly id: string
  readonly purpose: KekPurpose
  readonly ckaId: Buffer
  readonly checkValue: Buffer
  readonly mechanism: number
}

export interface KekPlan {
  readonly id: string
  readonly purpose: KekPurpose
  readonly ckaId: Buffer
}

export const planKek = (cluster: string, purpose: KekPurpose): KekPlan => {
  const id = randomUUIDv7()
  return { id, purpose, ckaId: objectId(cluster, id) }
}

export interface KekMaking {
  readonly components?: readonly Component[] | undefined
  /** Strict mode: the *use* KEK has a CKA_UNWRAP_TEMPLATE, by which the token itself keeps unwrapped keys inside. */
  readonly strict: boolean
}

/**
 * Makes a KEK in the token: generated there, or the XOR of custodians' components created directly as the token object.
 * @throws Error before anything is made when a component does not match its check value
 */
export async function makeKek(hsm: Hsm, plan: KekPlan, { components, strict }: KekMaking): Promise<NewKek> {
  const value = components && combine(components)
  const spelt = template(plan.purpose, plan.ckaId)
  try {
    if (strict && plan.purpose === 'use')
      await makeStrictKek(hsm, { label: labelOf(plan.purpose), id: plan.ckaId, value })
    else if (value) await hsm.create({ ...spelt, value })
    else await hsm.generateKey(CKM.AES_KEY_GEN, { ...spelt, valueLength: kekBytes })
  } finally {
    value?.fill(0)
  }
  const made = await presentKek(hsm, plan)
  if (made === undefined) throw new Error(`the token does not show the ${plan.purpose} KEK that was just made in it`)
  return made
}

/** The KEK that the token already holds under the plan's id. @throws Error when it lacks the properties of a KEK */
export async function presentKek(hsm: Hsm, plan: KekPlan): Promise<NewKek | undefined> {
  const handle = await findKek(hsm, plan.ckaId)
  if (handle === undefined) return undefined
  await proveKek(hsm, handle, plan.purpose)
  return { ...plan, mechanism: hsm.capabilities.kwp, checkValue: await kekCheckValue(hsm, handle) }
}

/** @throws Error when the token holds two objects of that id: somebody else made one */
export async function findKek(hsm: Hsm, ckaId: Buffer): Promise<Handle | undefined> {
  const found = await hsm.find({ class: 'secret', id: ckaId, token: true })
  if (found.length > 1) throw new Error('the token holds two objects with the id of one KEK')
  return found[0]
}

/** Destroys every object of that id, to clean up after a crash. */
export async function destroyKek(hsm: Hsm, ckaId: Buffer): Promise<void> {
  for (const handle of await hsm.find({ class: 'secret', id: ckaId, token: true })) await hsm.destroy(handle)
}

const mayHide = ['copyable', 'derive'] as const

/** @throws Error when the token shows that the object could do more than wrap and unwrap, or be changed */
export async function proveKek(hsm: Hsm, handle: Handle, purpose: KekPurpose): Promise<void> {
  const wanted = {
    // The row's purpose is used before the row is verified: the token must confirm it.
    label: labelOf(purpose),
    wrap: true,
    unwrap: true,
    encrypt: false,
    decrypt: false,
    sign: false,
    sensitive: true,
    extractable: false,
    modifiable: false,
  } as const
  const names = Object.keys(wanted) as (keyof typeof wanted)[]
  const seen = await hsm.attributes(handle, [...names, ...mayHide])
  const wrong = names.filter((name) => seen[name] !== wanted[name])
  // Some tokens do not show these; a copy still cannot gain a usage, and ours are made without CKA_DERIVE.
  for (const name of mayHide) if (seen[name] === true) wrong.push(name as never)
  if (wrong.length > 0)
    throw new Error(`the ${purpose} KEK in the token is not what a KEK must be: ${wrong.join(', ')}`)
}

/** The KEK's check value: computed from a key of zeros that it wraps (components.ts). */
export async function kekCheckValue(hsm: Hsm, kek: Handle): Promise<Buffer> {
  return checkValueOf(await wrappedZeros(hsm, kek))
}

/** Templates that the token must refuse under a strict KEK: each lacks one guard of its CKA_UNWRAP_TEMPLATE. */
const forbidden: Readonly<Record<string, Partial<KeyTemplate>>> = {
  CKA_EXTRACTABLE: { extractable: true },
  CKA_SENSITIVE: { sensitive: false },
  CKA_DERIVE: { usages: ['derive'] },
  CKA_UNWRAP: { usages: ['unwrap'] },
  CKA_MODIFIABLE: { modifiable: true },
}

/** Guards that every strict KEK has enforced from the start; the others came later. */
const ever: readonly string[] = ['CKA_EXTRACTABLE', 'CKA_SENSITIVE']

/**
 * In strict mode the token itself must not unwrap keys that can leave it, derive, unwrap or be changed. Tried with a
 * key of zeros, which the token must unwrap with all guards, or else its refusals would prove nothing.
 * @param inUse it may come from a program that knew only the first two guards, and serves until it is rotated
 * @returns the guards that it lacks, as it may
 * @throws Error naming guards that it must enforce and does not
 */
export async function proveStrict(hsm: Hsm, kek: Handle, inUse = false): Promise<readonly string[]> {
  const blob = await wrappedZeros(hsm, kek)
  if (!(await unwraps(hsm, kek, blob, {}))) throw new Error('strict mode: the use KEK unwraps nothing')
  const lacking = await lackingGuards(hsm, kek, blob)
  const refused = inUse ? lacking.filter((guard) => ever.includes(guard)) : lacking
  if (refused.length > 0) {
    throw new Error(
      `strict mode: the use KEK does not enforce ${refused.join(', ')} on what it unwraps; it was made outside strict mode`,
    )
  }
  return lacking
}

/** The guards of strict mode that the token does not enforce on keys that the KEK unwraps. */
export async function lackingGuards(hsm: Hsm, kek: Handle, zerosUnderKek?: Buffer): Promise<readonly string[]> {
  const blob = zerosUnderKek ?? (await wrappedZeros(hsm, kek))
  const lacking: string[] = []
  for (const [guard, lax] of Object.entries(forbidden)) if (await unwraps(hsm, kek, blob, lax)) lacking.push(guard)
  return lacking
}

async function unwraps(hsm: Hsm, kek: Handle, blob: Buffer, lax: Partial<KeyTemplate>): Promise<boolean> {
  try {
    await hsm.destroy(await hsm.unwrap(kek, hsm.capabilities.kwp, blob, { ...zeros, ...lax }))
    return true
  } catch (error) {
    if (error instanceof HsmRefusal) return false
    throw error
  }
}

const zeros: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] }

async function wrappedZeros(hsm: Hsm, kek: Handle): Promise<Buffer> {
  const key = await hsm.create({ ...zeros, value: Buffer.alloc(kekBytes), extractable: true })
  try {
    return await hsm.wrap(kek, hsm.capabilities.kwp, key)
  } finally {
    await hsm.destroy(key)
  }
}

/** Every secret key in the token that is a cluster's, by the cluster's uuid. */
export async function objectsByCluster(hsm: Hsm): Promise<Map<string, Handle[]>> {
  const found = new Map<string, Handle[]>()
  for (const object of await hsm.find({ class: 'secret', token: true })) {
    const { id } = await hsm.attributes(object, ['id'])
    const cluster = id && clusterOf(id)
    if (cluster !== undefined) found.set(cluster, [...(found.get(cluster) ?? []), object])
  }
  return found
}
