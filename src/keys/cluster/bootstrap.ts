import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Mac } from '../../store/sealed/seal.ts'

const seal = (message: Buffer): Buffer => createHmac('sha256', 'strongroom founding').update(message).digest()

/**
 * Seals the one row that is written before there is a key to seal with: the intent to initialise. It protects nothing,
 * and only an initialisation accepts it; it only gives that row the form of all others.
 */
export const bootstrapMac: Mac = {
  keyId: 'founding',
  format: 1,
  compute: seal,
  knows: (keyId) => keyId === 'founding',
  verify: (_keyId, message, mac) => mac.length === 32 && timingSafeEqual(seal(message), mac),
}

/** Seals with the cluster's own key and still reads the intent. */
export const acceptingIntent = (mac: Mac): Mac => ({
  keyId: mac.keyId,
  format: mac.format,
  compute: (message) => mac.compute(message),
  knows: (keyId) => bootstrapMac.knows(keyId) || mac.knows(keyId),
  verify: (keyId, message, tag) => (bootstrapMac.knows(keyId) ? bootstrapMac : mac).verify(keyId, message, tag),
})
