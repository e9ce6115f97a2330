/** The public key of an issuer: rsa, ec or ed25519, and the bits of its field when it is ec. */
interface IssuerKey {
  readonly type: string
  readonly bits: number
}

/** Of a role or a request; `signatureBits` 0 leaves it to the key. */
interface SignatureWish {
  readonly signatureBits: number
  readonly usePss: boolean
}

/** The hash that goes with the order of a curve (FIPS 186-5). */
const curveHash: Readonly<Record<number, number>> = { 384: 384, 521: 512 }

/** The name of the signature algorithm of a certificate: only RSA issuers have a choice. */
export function signatureAlgorithmOf({ type, bits }: IssuerKey, { signatureBits, usePss }: SignatureWish): string {
  if (type === 'ed25519') return 'Ed25519'
  if (type === 'ec') return `ECDSAWithSHA${curveHash[bits] ?? 256}`
  return `SHA${signatureBits || 256}WithRSA${usePss ? 'PSS' : ''}`
}
