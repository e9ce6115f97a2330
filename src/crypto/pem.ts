/** PEM (RFC 7468): the contents of every block of one of these labels, in their order. */
export function readPem(text: string, labels: readonly string[]): readonly Buffer[] {
  const blocks = text.matchAll(/-----BEGIN ([A-Z0-9 ]{1,40})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g)
  return [...blocks].flatMap(([, label = '', body = '']) =>
    labels.includes(label) ? [Buffer.from(body, 'base64')] : [],
  )
}

/** One block, without a newline at its end. */
export const writePem = (label: string, der: Uint8Array): string =>
  [
    `-----BEGIN ${label}-----`,
    ...(Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []),
    `-----END ${label}-----`,
  ].join('\n')
