/** PEM (RFC 7468): the contents of every block with one of these labels, in order. */
export function readPem(text: string, labels: readonly string[]): readonly Buffer[] {
  const blocks = text.matchAll(/-----BEGIN ([A-Z0-9 ]{1,40})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g)
  return [...blocks].flatMap(([, label = '', body = '']) =>
    labels.includes(label) ? [Buffer.from(body, 'base64')] : [],
  )
}

/** A block of a text. */
export interface PemBlock {
  readonly label: string
  /** Whether it has header lines (RFC 1421), as in OpenSSL's encrypted keys. */
  readonly headers: boolean
  /** Undefined if the block does not end or is not base64. */
  readonly der: Buffer | undefined
}

const beginning = /-----BEGIN ([^\r\n-]{1,64})-----/g
const padding = /={1,2}$/
const noDigit = /[^A-Za-z0-9+/]/

/** Every block of a text, with any label; text between blocks is ignored. The last one may be incomplete. */
export function readBlocks(text: string, most: number): readonly PemBlock[] {
  const blocks: PemBlock[] = []
  beginning.lastIndex = 0
  for (let begin = beginning.exec(text); begin !== null && blocks.length < most; begin = beginning.exec(text)) {
    const [, label = ''] = begin
    const line = `-----END ${label}-----`
    const end = text.indexOf(line, beginning.lastIndex)
    if (end < 0) return [...blocks, { label, headers: false, der: undefined }]
    blocks.push(readBlock(label, text.slice(beginning.lastIndex, end)))
    beginning.lastIndex = end + line.length
  }
  return blocks
}

/** Headers end with an empty line; base64 has no colon. */
function readBlock(label: string, text: string): PemBlock {
  const headers = text.includes(':')
  const body = (headers ? text.slice(text.search(/\n[ \t]*\r?\n/) + 1) : text).replaceAll(/\s+/g, '')
  return { label, headers, der: isBase64(body) ? Buffer.from(body, 'base64') : undefined }
}

/**
 * Searches for an invalid character: one expression for the whole text would need a stack as deep as the text is long.
 */
const isBase64 = (text: string): boolean => text.length % 4 === 0 && !noDigit.test(text.replace(padding, ''))

/** Characters of base64 in a line (RFC 7468 section 2). */
const lineLength = 64

/** One block, without a newline at its end. The text is the only copy made of a private key. */
export function writePem(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString('base64')
  let text = `-----BEGIN ${label}-----\n`
  for (let at = 0; at < base64.length; at += lineLength) text += `${base64.slice(at, at + lineLength)}\n`
  return `${text}-----END ${label}-----`
}
