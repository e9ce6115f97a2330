import { CKK, CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import { kekBytes } from '../kek/components.ts'
import { paddedBytes } from './padding.ts'

/**
 * SoftHSM 2.6.1 unwraps a secret whose length is no multiple of 8 with the zeros that RFC 5649 filled it up with. Up to 64 bytes
 * that is the same HMAC key; a longer one becomes another key, and nobody is told.
 */
export const needsExactLength = (sizeBytes: number): boolean => sizeBytes > paddedBytes && sizeBytes % 8 !== 0

const verdicts = new WeakMap<Hsm, Promise<boolean>>()

/** Whether the token gives back secrets at their exact length; tried once with a secret of 9 bytes. */
export function unwrapsExactly(hsm: Hsm): Promise<boolean> {
  const verdict = verdicts.get(hsm) ?? tried(hsm)
  verdicts.set(hsm, verdict)
  return verdict
}

async function tried(hsm: Hsm): Promise<boolean> {
  const { kwp } = hsm.capabilities
  const aes: KeyTemplate = { class: 'secret', keyType: CKK.AES, usages: ['wrap', 'unwrap'] }
  const readable: KeyTemplate = {
    ...{ class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] },
    sensitive: false,
    extractable: true,
  }
  const kek = await hsm.generateKey(CKM.AES_KEY_GEN, { ...aes, valueLength: kekBytes })
  const secret = await hsm.create({ ...readable, value: Buffer.alloc(9, 1) })
  const back = await hsm.unwrap(kek, kwp, await hsm.wrap(kek, kwp, secret), readable)
  const { value } = await hsm.attributes(back, ['value'])
  for (const object of [kek, secret, back]) await hsm.destroy(object)
  return value?.length === 9
}
