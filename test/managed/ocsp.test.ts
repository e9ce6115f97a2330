import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { readCertificate } from '../../src/x509/certificate.ts'
import { done, fresh } from '../api/node.ts'
import { readAnswer } from '../pki/ocsp/answer.ts'
import { writeOcspRequest } from '../x509/ocspasking.ts'
import { dataOf, useWorld } from './world.ts'

const world = useWorld()

test.each([
  ['ECDSAWithSHA256', '0x1041', 'ec'],
  ['SHA256WithRSA', '0x0001', 'rsa'],
  ['SHA256WithRSAPSS', '0x000d', 'rsa'],
])('a managed key answers OCSP requests by %s, where its mechanism is %s', async (algorithm, mechanism, label) => {
  const { root } = world
  const name = await world.managed(world.settingsOf({ mechanism, key_label: label }))
  const path = fresh('pki')
  await done(root.post(`sys/mounts/${path}`, { type: 'pki' }))
  const wanted = { common_name: 'Managed Root', managed_key_name: name }
  const made = dataOf(await done(root.post(`${path}/root/generate/kms`, wanted)))
  await done(root.post(`${path}/roles/r`, { allow_any_name: true, key_type: 'ec' }))
  const leaf = dataOf(await done(root.post(`${path}/issue/r`, { common_name: 'a.example', ttl: '1h' })))
  const [issuer, certificate] = [made, leaf].map((data) =>
    readCertificate(new X509Certificate(String(data.certificate)).raw),
  )
  if (issuer === undefined || certificate === undefined) throw new Error('two certificates were made')
  const body = writeOcspRequest({ issuer, serial: certificate.serial })
  const response = await fetch(`${world.url}/v1/${path}/ocsp`, { method: 'POST', body })
  const answer = readAnswer(Buffer.from(await response.arrayBuffer()))
  expect(answer).toMatchObject({ status: 'good', algorithm })
  expect(answer.isFrom(issuer)).toBe(true)
})
