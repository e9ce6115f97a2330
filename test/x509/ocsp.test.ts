import 'reflect-metadata'
import { sign } from 'node:crypto'
import fc from 'fast-check'
import * as pkijs from 'pkijs'
import { describe, expect, test } from 'vitest'
import { asn1, context, contextAround, write } from '../../src/crypto/der.ts'
import { hashOf } from '../../src/crypto/hashes.ts'
import { readCertificate } from '../../src/x509/certificate.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { longestOcspRequest, readOcspRequest } from '../../src/x509/ocsp/request.ts'
import {
  type CertStatus,
  ocspFailures,
  type ResponseData,
  writeOcspResponse,
  writeResponseData,
} from '../../src/x509/ocsp/response.ts'
import { writeGeneralizedTime } from '../../src/x509/time.ts'
import { certify, ecPair, identifierOf, leafExtensions, makeCa, pemOf, useOpenssl } from './authority.ts'
import { serial } from './generators.ts'
import { nonceExtension, ocspHashes, writeCertId, writeOcspRequest } from './ocspasking.ts'

const openssl = useOpenssl()
const ca = makeCa('OCSP CA')
const issuer = ca.certificate
const leafKey = ecPair()
const leaf = readCertificate(
  certify({
    subject: issuer.subject,
    key: leafKey,
    issuer: ca.subject,
    signer: ca.key,
    extensions: leafExtensions(leafKey, ca.key),
  }),
)
const bytes = (minLength: number, maxLength = minLength) =>
  fc.uint8Array({ minLength, maxLength }).map((array) => Buffer.from(array))
const hash = fc.constantFrom(...ocspHashes)
const pkijsHashes = { sha1: 'SHA-1', 'sha2-256': 'SHA-256', 'sha2-384': 'SHA-384', 'sha2-512': 'SHA-512' } as const

describe('requests', () => {
  test('are read as they were written: the first serial number, hash and nonce', () => {
    fc.assert(
      fc.property(
        serial,
        hash,
        fc.boolean(),
        fc.option(bytes(1, 128), { nil: undefined }),
        fc.array(serial, { maxLength: 3 }),
        (number, name, withNull, nonce, others) => {
          const more = others.map((other) => writeCertId({ issuer, serial: other }))
          const asking = { issuer, serial: number, hash: name, withNull, nonce, more }
          const read = readOcspRequest(writeOcspRequest(asking))
          expect(read.nonce).toEqual(nonce)
          expect(read.certId.serial).toEqual(number)
          expect(read.certId.algorithm.hash).toBe(hashOf(name))
          expect(read.certId.der).toEqual(writeCertId(asking))
        },
      ),
      { numRuns: 300 },
    )
  })

  test.each(ocspHashes)('that pkijs writes by %s are read, and digest the same', async (name) => {
    const theirs = new pkijs.OCSPRequest()
    const issuerCertificate = pkijs.Certificate.fromBER(issuer.der)
    await theirs.createForCertificate(pkijs.Certificate.fromBER(leaf.der), {
      hashAlgorithm: pkijsHashes[name],
      issuerCertificate,
    })
    const read = readOcspRequest(Buffer.from(theirs.toSchema(true).toBER()))
    expect(read.certId.der).toEqual(writeCertId({ issuer, serial: leaf.serial, hash: name }))
    expect(read.nonce).toBeUndefined()
  })

  test.each(ocspHashes)('that openssl writes by %s are read, and digest the same', (name) => {
    const file = openssl.put('ca.pem', pemOf(issuer.der))
    const digest = `-${hashOf(name).node}`
    const certificate = ['-issuer', file, digest, '-serial', `0x${leaf.serial.toString('hex')}`]
    openssl.run(['ocsp', ...certificate, '-no_nonce', '-reqout', 'plain.der'])
    expect(openssl.read('plain.der')).toEqual(writeOcspRequest({ issuer, serial: leaf.serial, hash: name }))
    openssl.run(['ocsp', ...certificate, '-nonce', '-reqout', 'nonce.der'])
    expect(readOcspRequest(openssl.read('nonce.der')).nonce?.length).toBeGreaterThan(0)
  })

  test('that are signed are read: everybody is answered', () => {
    const pem = leafKey.privateKey.export({ format: 'pem', type: 'pkcs8' })
    const [signer, key] = [openssl.put('signer.pem', pemOf(leaf.der)), openssl.put('signer.key', pem)]
    const number = ['-serial', `0x${leaf.serial.toString('hex')}`]
    const file = openssl.put('ca.pem', pemOf(issuer.der))
    openssl.run(['ocsp', '-issuer', file, ...number, '-signer', signer, '-signkey', key, '-reqout', 'signed.der'])
    expect(readOcspRequest(openssl.read('signed.der')).certId.serial).toEqual(leaf.serial)
  })

  const certId = writeCertId({ issuer, serial: leaf.serial })
  const around = (requests: Buffer, before: Buffer[] = [], behind: Buffer[] = []) =>
    write(asn1.sequence, write(asn1.sequence, ...before, write(asn1.sequence, requests), ...behind))
  const one = write(asn1.sequence, certId)
  const version = (number: number) => write(contextAround(0), write(asn1.integer, Buffer.from([number])))
  const demand = { oid: '1.2.3', critical: true, value: Buffer.from([5, 0]) }
  const asked = (more: Partial<Parameters<typeof writeOcspRequest>[0]>) =>
    writeOcspRequest({ issuer, serial: leaf.serial, ...more })
  const withNegativeSerial = (): Buffer => {
    const der = asked({ serial: Buffer.from([1]) })
    der[der.length - 1] = 0xff
    return der
  }
  test.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['no certificate', around(Buffer.alloc(0))],
    ['another version', around(one, [version(1)])],
    ['SHA-224', asked({ hash: 'sha2-224' })],
    ['an empty nonce', asked({ nonce: Buffer.alloc(0) })],
    ['a nonce of 129 bytes', asked({ nonce: Buffer.alloc(129) })],
    ['a nonce that is not wrapped', asked({ extensions: [{ ...nonceExtension(leaf.serial), value: leaf.serial }] })],
    ['two nonces', asked({ nonce: leaf.serial, extensions: [nonceExtension(leaf.serial)] })],
    ['a critical extension', asked({ extensions: [demand] })],
    ['a serial number of 21 bytes', asked({ serial: Buffer.alloc(21, 1) })],
    ['a negative serial number', withNegativeSerial()],
    ['more than it may be long', asked({ extensions: [{ ...demand, critical: false, value: Buffer.alloc(2000) }] })],
    ['a byte behind it', Buffer.concat([asked({}), Buffer.alloc(1)])],
    ['a byte behind it inside', around(one, [], [Buffer.from([5, 0])])],
    ['a requestor that is none', around(one, [write(contextAround(1), write(context(9)))])],
    ['text', Buffer.from('{"serial":"1"}')],
  ])('with %s are malformed', (_, der) => {
    expect(() => readOcspRequest(der)).toThrow(Malformed)
  })

  test('with an extension that demands nothing, a requestor and a version are read', () => {
    const mild = { ...demand, critical: false }
    expect(readOcspRequest(asked({ extensions: [mild] })).nonce).toBeUndefined()
    const requestor = write(contextAround(1), write(contextAround(4), issuer.subject))
    expect(readOcspRequest(around(one, [version(0), requestor])).certId.serial).toEqual(leaf.serial)
    expect(longestOcspRequest).toBe(2047)
  })

  test('that were changed in any way are read or malformed, and nothing else', () => {
    const whole = asked({ nonce: Buffer.alloc(16, 7), extensions: [{ ...demand, critical: false }], more: [certId] })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(whole.length),
        fc.boolean(),
        (changes, length, cut) => {
          const der = Buffer.from(cut ? whole.subarray(0, length) : whole)
          for (const [at, value] of changes) if (at < der.length) der[at] = value
          try {
            readOcspRequest(der)
          } catch (error) {
            expect(error).toBeInstanceOf(Malformed)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

const algorithm = identifierOf('ECDSAWithSHA256')
const now = Math.floor(Date.now() / 1000) * 1000
const hour = 3_600_000

function respond(status: CertStatus, more: Partial<ResponseData> = {}): Buffer {
  const data = writeResponseData({
    responder: issuer.subject,
    certId: writeCertId({ issuer, serial: leaf.serial }),
    ...{ status, producedAt: now, thisUpdate: now, nextUpdate: now + hour, nonce: undefined },
    ...more,
  })
  return writeOcspResponse(data, algorithm, sign('sha256', data, ca.key.privateKey))
}

const basicOf = (der: Buffer): pkijs.BasicOCSPResponse => {
  const outside = pkijs.OCSPResponse.fromBER(der)
  expect(outside.responseStatus.valueBlock.valueDec).toBe(0)
  return pkijs.BasicOCSPResponse.fromBER(outside.responseBytes?.response.valueBlock.valueHexView ?? Buffer.alloc(0))
}

describe('answers', () => {
  const times = { min: Date.UTC(1960, 0, 1) / 1000, max: Date.UTC(2120, 0, 1) / 1000 }
  const time = fc.integer(times).map((seconds) => seconds * 1000)
  const reason = fc.constantFrom(undefined, 0, 1, 2, 3, 4, 5, 9, 10)
  const status: fc.Arbitrary<CertStatus> = fc.oneof(
    fc.constant('good' as const),
    fc.constant('unknown' as const),
    fc.record({ revokedAt: time, reason }),
  )

  test('have the same fields for pkijs', async () => {
    const [theirs, above] = [pkijs.Certificate.fromBER(leaf.der), pkijs.Certificate.fromBER(issuer.der)]
    await fc.assert(
      fc.asyncProperty(
        status,
        hash,
        time,
        time,
        fc.option(time, { nil: undefined }),
        fc.option(bytes(1, 128), { nil: undefined }),
        async (wanted, name, producedAt, thisUpdate, nextUpdate, nonce) => {
          const certId = writeCertId({ issuer, serial: leaf.serial, hash: name })
          const basic = basicOf(respond(wanted, { certId, producedAt, thisUpdate, nextUpdate, nonce }))
          const kind = wanted === 'good' ? 0 : wanted === 'unknown' ? 2 : 1
          expect(await basic.getCertificateStatus(theirs, above)).toEqual({ isForCertificate: true, status: kind })
          const { tbsResponseData: data } = basic
          const [single] = data.responses
          expect(data.producedAt.getTime()).toBe(producedAt)
          expect(single?.thisUpdate.getTime()).toBe(thisUpdate)
          expect(single?.nextUpdate?.getTime()).toBe(nextUpdate)
          const extension = data.responseExtensions?.[0]?.extnValue.valueBlock.valueHexView
          expect(extension && Buffer.from(extension)).toEqual(nonce && write(asn1.octetString, nonce))
          if (typeof wanted === 'string') return
          const revoked = Buffer.from(single?.certStatus.toBER() ?? [])
          const at = writeGeneralizedTime(wanted.revokedAt)
          expect(revoked.subarray(2, 2 + at.length)).toEqual(at)
          const rest = wanted.reason ? Buffer.from([0xa0, 3, 0x0a, 1, wanted.reason]) : Buffer.alloc(0)
          expect(revoked.subarray(2 + at.length)).toEqual(rest)
        },
      ),
      { numRuns: 100 },
    )
  })

  test.each<[string, CertStatus, string]>([
    ['good', 'good', 'good'],
    ['unknown', 'unknown', 'unknown'],
    ['revoked', { revokedAt: now - hour }, 'revoked'],
    ['revoked with a reason', { revokedAt: now - hour, reason: 1 }, 'Reason: keyCompromise'],
  ])('that say %s are verified by openssl', (_, wanted, text) => {
    const nonce = Buffer.alloc(16, 5)
    const file = openssl.put('ca.pem', pemOf(issuer.der))
    const response = openssl.put('response.der', respond(wanted, { nonce }))
    const request = openssl.put('request.der', writeOcspRequest({ issuer, serial: leaf.serial, nonce }))
    const number = ['-serial', `0x${leaf.serial.toString('hex')}`]
    const files = ['-issuer', file, ...number, '-CAfile', file, '-no_nonce', '-reqin', request, '-respin', response]
    expect(openssl.run(['ocsp', ...files])).toContain(text)
  })

  test('without a signature are those of RFC 6960', () => {
    expect(Object.values(ocspFailures).map((der) => der.toString('hex'))).toEqual(
      ['01', '02', '03', '06'].map((status) => `30030a01${status}`),
    )
  })
})
