import { asn1, write } from '../../../../src/crypto/der.ts'

/** A certification request that asks for rights that no leaf should have, or that is malformed. */
export interface Attack {
  readonly name: string
  readonly csr: string
  /** Bytes that no certificate made from it may hold, whatever the route. */
  readonly smuggled?: Buffer
}

export const sequence = (...parts: readonly Buffer[]): Buffer => write(asn1.sequence, ...parts)
