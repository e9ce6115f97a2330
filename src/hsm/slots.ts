import graphene from 'graphene-pk11'
import type { PKCS11 } from 'pkcs11js'
import type { Cryptoki } from './binding.ts'
import { CKF } from './constants.ts'

/** Which token: by label, serial number or slot id; all given ones must match. */
export interface TokenSelector {
  readonly label?: string | undefined
  readonly serial?: string | undefined
  readonly slot?: number | undefined
}

export interface TokenInfo {
  readonly slot: Buffer
  readonly label: string
  readonly serial: string
  readonly manufacturer: string
  readonly model: string
  /** CKF_* bits of CK_TOKEN_INFO. */
  readonly flags: number
}

/** All tokens that are present, initialised and can be read. */
function listTokens(lib: Cryptoki): TokenInfo[] {
  const slots = new graphene.Module(lib as PKCS11 & Cryptoki).getSlots(true)
  const tokens: TokenInfo[] = []
  for (let index = 0; index < slots.length; index++) {
    try {
      const slot = slots.items(index)
      const { label, serialNumber, manufacturerID, model, flags } = slot.getToken()
      if ((flags & CKF.TOKEN_INITIALIZED) === 0) continue
      tokens.push({ slot: slot.handle, label, serial: serialNumber, manufacturer: manufacturerID, model, flags })
    } catch {
      // A slot whose token cannot be read now is skipped.
    }
  }
  return tokens
}

/**
 * The one token that matches.
 * @returns undefined when there is none
 * @throws Error when several match: a wrong one must not be tried
 */
export function findToken(lib: Cryptoki, selector: TokenSelector): TokenInfo | undefined {
  const { label, serial, slot } = selector
  const fitting = listTokens(lib).filter(
    (token) =>
      (label === undefined || token.label === label) &&
      (serial === undefined || token.serial === serial) &&
      (slot === undefined || token.slot.readBigUInt64LE() === BigInt(slot)),
  )
  if (fitting.length > 1) {
    const serials = fitting.map((token) => token.serial).join(', ')
    throw new Error(`${describe(selector)} fits several tokens (serials ${serials}); name one by its serial`)
  }
  return fitting[0]
}

/** A selector in words, for logs and refusals. */
export function describe({ label, serial, slot }: TokenSelector): string {
  const parts = [label && `label "${label}"`, serial && `serial ${serial}`, slot !== undefined && `slot ${slot}`]
  return `the token with ${parts.filter(Boolean).join(', ') || 'no name'}`
}
