import { Malformed } from './malformed.ts'

/** The certificates of a PKCS#7 bundle (SignedData, RFC 2315 section 9.1 and RFC 5652 section 5.1). */

/** The parts of an asn1js node that are read here. */
interface Node {
  readonly idBlock: { readonly tagClass: number; readonly tagNumber: number }
  readonly valueBlock: { readonly value?: readonly Node[] }
  /** The element exactly as received. */
  readonly valueBeforeDecodeView: Uint8Array
}

const contextClass = 3

/**
 * The DER of each certificate, byte for byte as received; signatures are not verified. The parts outside the
 * certificates may be BER, hence the library; it is loaded at the first bundle.
 * @throws Malformed
 */
export async function readPkcs7(ber: Buffer): Promise<readonly Buffer[]> {
  const { fromBER } = await import('asn1js')
  let signedData: Node | undefined
  try {
    const { offset, result } = fromBER(ber)
    const [, content] = offset === ber.length ? childrenOf(result as Node) : []
    signedData = content && childrenOf(content)[0]
  } catch (cause) {
    throw new Malformed('PKCS#7: it is not BER', { cause })
  }
  const certificates = signedData && childrenOf(signedData).find(isCertificates)
  if (certificates === undefined) throw new Malformed('PKCS#7: it is not SignedData with certificates')
  return childrenOf(certificates).map(({ valueBeforeDecodeView }) => Buffer.from(valueBeforeDecodeView))
}

const childrenOf = ({ valueBlock: { value } }: Node): readonly Node[] => (Array.isArray(value) ? value : [])

const isCertificates = ({ idBlock }: Node): boolean => idBlock.tagClass === contextClass && idBlock.tagNumber === 0
