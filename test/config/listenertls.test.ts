import { X509Certificate } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { requireListenerTls } from '../../src/config/listenertls.ts'
import { writePem } from '../../src/crypto/pem.ts'
import { createCertificate } from '../http/wire.ts'
import { runDirectory } from '../support/directory.ts'

const [own, other] = [createCertificate(), createCertificate()]
afterAll(() => {
  own.remove()
  other.remove()
})
const directory = mkdtempSync(join(runDirectory(), 'tls-'))
const file = (text: string | Uint8Array): string => {
  const path = join(directory, String(Math.random()))
  writeFileSync(path, text)
  return path
}

const tls = { certificate: own.certPath, key: own.keyPath, minimumVersion: '1.2' } as const
const listening = (...all: (typeof tls & { readonly clientCa?: string })[]) => ({
  listeners: all.map((one, index) => ({ address: `127.0.0.1:${index}`, maxRequestBytes: 1000, tls: one })),
})

test('a certificate with its key, and authorities of clients, are good', () => {
  requireListenerTls(listening(tls, { ...tls, clientCa: other.certPath }))
  requireListenerTls(listening({ ...tls, clientCa: file(`Our authorities:\n${other.cert}${own.cert}`) }))
})

test.each([
  ['a key of another certificate', { key: other.keyPath }, 'key values mismatch'],
  [
    'a certificate that is not there',
    { certificate: '/nowhere.pem' },
    "no such file or directory, open '/nowhere.pem'",
  ],
  ['authorities of clients that are not there', { clientCa: '/nowhere.pem' }, "open '/nowhere.pem'"],
  ['an empty file for authorities', { clientCa: file('') }, 'has no certificate in PEM'],
  ['no certificate in a file of authorities', { clientCa: file('hello\n') }, 'has no certificate in PEM'],
  ['a key in the place of authorities', { clientCa: own.keyPath }, `${own.keyPath} has no certificate in PEM`],
  ['authorities in DER', { clientCa: file(new X509Certificate(own.cert).raw) }, 'has no certificate in PEM'],
  [
    'a broken one behind a good one',
    { clientCa: file(`${own.cert}${writePem('CERTIFICATE', Buffer.of(48, 3))}\n`) },
    '',
  ],
])('%s names its listener', (_, wrong, text) => {
  const check = () => requireListenerTls(listening(tls, { ...tls, ...wrong }))
  expect(check).toThrow(/^listeners\.1\.tls: /)
  expect(check).toThrow(text)
})
