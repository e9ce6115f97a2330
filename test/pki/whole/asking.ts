import { X509Certificate } from 'node:crypto'
import { type Certificate, readCertificate } from '../../../src/x509/certificate.ts'
import { writeOcspRequest } from '../../x509/ocspasking.ts'
import { failureOf, readAnswer } from '../ocsp/answer.ts'

/** The CA whose certificates are asked about. */
export const issuerOf = (pem: string): Certificate => readCertificate(new X509Certificate(pem).raw)

export interface Question {
  /** The URL of the responder. */
  readonly url: string
  readonly issuer: Certificate
  /** With colons. */
  readonly serial: string
  readonly verb: 'GET' | 'POST'
  readonly nonce?: Buffer | undefined
}

export interface Told {
  /** The status of the certificate, or the name of a failure without signature: `tryLater`. */
  readonly status: string
  /** The time of that status: whole seconds, in milliseconds; 0 for a failure. */
  readonly at: number
}

/** Asks a responder. @throws Error unless the answer is about this serial number and signed by the CA */
export async function askStatus({ url, issuer, serial, verb, nonce }: Question): Promise<Told> {
  const digits = serial.replaceAll(':', '')
  const asking = writeOcspRequest({ issuer, serial: Buffer.from(digits, 'hex'), nonce })
  const response = await (verb === 'GET'
    ? fetch(`${url}/${encodeURIComponent(asking.toString('base64'))}`)
    : fetch(url, { method: verb, body: asking }))
  const body = Buffer.from(await response.arrayBuffer())
  const failure = failureOf(body)
  if (response.status !== 200) throw new Error(`HTTP ${response.status}, ${failure ?? body.subarray(0, 200)}`)
  if (failure !== undefined) return { status: failure, at: 0 }
  const answer = readAnswer(body)
  if (answer.serial !== digits) throw new Error(`the answer is about ${answer.serial}`)
  if (!answer.isFrom(issuer)) throw new Error('the answer is not signed by the CA')
  return { status: answer.status, at: answer.thisUpdate }
}
