import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { readCertificate } from '../../../src/x509/certificate.ts'
import { done, fresh, useNode } from '../../api/node.ts'
import { runDirectory } from '../../support/directory.ts'
import { writeOcspRequest } from '../../x509/ocspasking.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { failureOf, readAnswer } from './answer.ts'

/** OCSP over HTTP, by two workers, as clients ask. */

const node = useNode({ workers: 2 })
const run = promisify(execFile)

interface Issued {
  readonly pki: TestAuthority
  readonly url: string
  readonly ca: string
  readonly leaf: string
  readonly serial: Buffer
  revoke(): Promise<void>
}

async function issue(root: Answer = {}): Promise<Issued> {
  const pki = await createAuthority(node)
  const made = await pki.root(root)
  await pki.role('r', { generate_lease: true })
  const reply = await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))
  const { lease_id: lease } = reply.body as { lease_id: string }
  const leaf = String(dataOf(reply).certificate)
  return {
    pki,
    url: `${node.server.url}/v1/${pki.path}/ocsp`,
    ca: String(made.certificate),
    leaf,
    serial: readCertificate(new X509Certificate(leaf).raw).serial,
    async revoke() {
      await done(node.root.post('sys/leases/revoke', { lease_id: lease, sync: true }))
    },
  }
}

const bodyOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer())
const requestFor = ({ ca, serial }: Issued, more = {}): Buffer =>
  writeOcspRequest({ issuer: readCertificate(new X509Certificate(ca).raw), serial, ...more })

/** The files that command-line clients need. */
function filesOf({ ca, leaf }: Issued): { readonly ca: string; readonly leaf: string } {
  const directory = mkdtempSync(join(runDirectory(), 'ocsp-'))
  const put = (name: string, pem: string): string => {
    writeFileSync(join(directory, name), `${pem}\n`)
    return join(directory, name)
  }
  return { ca: put('ca.pem', ca), leaf: put('leaf.pem', leaf) }
}

describe('openssl ocsp', () => {
  test.each([
    ['sha1', { key_type: 'ec' }],
    ['sha256', { key_type: 'rsa' }],
    ['sha384', { key_type: 'ec', key_bits: 384 }],
    ['sha512', { key_type: 'ed25519' }],
  ])('verifies good and revoked by POST, with a nonce and %s', async (hash, root) => {
    const issued = await issue(root)
    const { ca, leaf } = filesOf(issued)
    const ask = async () => {
      const about = ['-issuer', ca, `-${hash}`, '-cert', leaf]
      const { stdout, stderr } = await run('openssl', ['ocsp', ...about, '-CAfile', ca, '-nonce', '-url', issued.url])
      expect(stderr).toContain('Response verify OK')
      expect(stderr).not.toContain('nonce')
      return stdout
    }
    expect(await ask()).toContain('leaf.pem: good')
    await issued.revoke()
    expect(await ask()).toContain('leaf.pem: revoked')
  })
})

test.each(['ec', 'rsa'])(
  'python’s cryptography verifies answers of a root of type %s by POST and GET',
  async (type) => {
    const issued = await issue({ key_type: type })
    const { ca, leaf } = filesOf(issued)
    const ask = async () => {
      const { stdout } = await run('/usr/bin/python3', [
        '-B',
        join(import.meta.dirname, 'clients.py'),
        issued.url,
        ca,
        leaf,
      ])
      return stdout.trim().split('\n')
    }
    const good = await ask()
    expect(good).toHaveLength(16)
    for (const line of good) expect(line).toMatch(/ GOOD$/)
    await issued.revoke()
    for (const line of await ask()) expect(line).toMatch(/ REVOKED$/)
  },
)

/** The statuses of several requests: each worker has an answer of its own. */
const statusesOf = (url: string, headers: Record<string, string>): Promise<number[]> =>
  Promise.all(Array.from({ length: 20 }, async () => (await fetch(url, { headers })).status))

describe('a request in the path', () => {
  let issued: Issued
  let der: Buffer
  beforeAll(async () => {
    issued = await issue()
    // The request reads differently in both alphabets of base64, and with and without padding.
    do der = requestFor(issued, { nonce: Buffer.from(fresh('nonce')) })
    while (!/\+.*\/|\/.*\+/.test(der.toString('base64')) || !der.toString('base64').endsWith('='))
  })

  test.each<[string, (base64: string) => string]>([
    ['base64', (text) => text],
    ['base64 without padding', (text) => text.replace(/=+$/, '')],
    ['base64url', (text) => text.replaceAll('+', '-').replaceAll('/', '_')],
    ['base64url without padding', (text) => text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')],
    ['base64, percent-encoded', encodeURIComponent],
    ['base64, percent-encoded twice', (text) => encodeURIComponent(encodeURIComponent(text))],
  ])('is read as %s', async (_, write) => {
    const response = await fetch(`${issued.url}/${write(der.toString('base64'))}`)
    expect(response.status).toBe(200)
    expect(readAnswer(await bodyOf(response))).toMatchObject({ status: 'good' })
  })

  test('is read where its base64 has two slashes side by side, or begins with one', async () => {
    let text: string
    do text = requestFor(issued, { nonce: Buffer.from(fresh('nonce//////'), 'base64') }).toString('base64')
    while (!text.includes('//'))
    for (const sent of [text, text.replaceAll('/', '%2F')]) {
      const response = await fetch(`${issued.url}/${sent}`)
      expect(readAnswer(await bodyOf(response))).toMatchObject({ status: 'good' })
    }
  })

  test('may be kept until a newer answer is here, unless it has a nonce', async () => {
    const url = `${issued.url}/${requestFor(issued).toString('base64')}`
    const response = await fetch(url)
    const body = await bodyOf(response)
    expect(response.headers.get('content-type')).toBe('application/ocsp-response')
    const [, age] = /^public, max-age=(\d+)$/.exec(response.headers.get('cache-control') ?? '') ?? []
    const { thisUpdate, nextUpdate = 0 } = readAnswer(body)
    expect(Number(age)).toBeGreaterThan(0)
    expect(Number(age)).toBeLessThan((nextUpdate - thisUpdate) / 1000)
    const etag = response.headers.get('etag') ?? ''
    expect(await statusesOf(url, { 'If-None-Match': etag })).toContain(304)
    expect((await fetch(url, { method: 'HEAD' })).headers.get('etag')).toMatch(/^"[0-9a-f]{32}"$/)
    const once = await fetch(`${issued.url}/${der.toString('base64url')}`)
    expect(once.headers.get('cache-control')).toBe('no-store')
    expect(once.headers.get('etag')).toBeNull()
  })

  test('has its time if the mount allows Last-Modified', async () => {
    const tune = { allowed_response_headers: ['Last-Modified'], passthrough_request_headers: ['If-Modified-Since'] }
    await done(node.root.post(`sys/mounts/${issued.pki.path}/tune`, tune))
    const url = `${issued.url}/${requestFor(issued).toString('base64url')}`
    const response = await fetch(url)
    const { thisUpdate } = readAnswer(await bodyOf(response))
    const modified = response.headers.get('last-modified') ?? ''
    expect(new Date(modified).getTime()).toBe(thisUpdate)
    expect(await statusesOf(url, { 'If-Modified-Since': modified })).toContain(304)
  })
})

describe('statuses and types', () => {
  const post = (url: string, body: Buffer | string, type?: string) =>
    fetch(url, { method: 'POST', body, ...(type ? { headers: { 'Content-Type': type } } : {}) })

  test('a POST is read with any content type, needs no token, and its answer is not kept', async () => {
    const issued = await issue()
    for (const type of ['application/ocsp-request', 'application/json', undefined]) {
      const response = await post(issued.url, requestFor(issued), type)
      expect(response.status).toBe(200)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(readAnswer(await bodyOf(response)).status).toBe('good')
    }
  })

  test('an invalid request is malformed with 400; without a responder the answer is unauthorized with 401', async () => {
    const issued = await issue()
    const bad = [await post(issued.url, 'no request'), await post(issued.url, Buffer.alloc(5000))]
    for (const text of ['not*base64', 'A', 'MAA=', 'x'.repeat(9000), '%25'])
      bad.push(await fetch(`${issued.url}/${text}`))
    for (const response of bad) {
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toBe('application/ocsp-response')
      expect(failureOf(await bodyOf(response))).toBe('malformedRequest')
    }
    await done(issued.pki.post('issuer/default', { usage: 'issuing-certificates' }))
    const response = await post(issued.url, requestFor(issued))
    expect([response.status, failureOf(await bodyOf(response))]).toEqual([401, 'unauthorized'])
    const empty = await createAuthority(node)
    const none = await post(`${node.server.url}/v1/${empty.path}/ocsp`, requestFor(issued))
    expect([none.status, failureOf(await bodyOf(none))]).toEqual([401, 'unauthorized'])
  })

  test('unified-ocsp answers no request while revocations are not unified', async () => {
    const issued = await issue()
    const url = issued.url.replace(/ocsp$/, 'unified-ocsp')
    const der = requestFor(issued)
    for (const response of [await post(url, der), await fetch(`${url}/${der.toString('base64')}`)]) {
      expect([response.status, failureOf(await bodyOf(response))]).toEqual([401, 'unauthorized'])
    }
  })

  test('nothing that is sent is a fault of ours', async () => {
    const issued = await issue()
    const whole = requestFor(issued)
    const text = whole.toString('base64')
    const piece = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.constantFrom('%', '%2', '//', '..', '%00', '%ff', '?', text),
    )
    const paths = fc.array(piece, { maxLength: 4 }).map((parts) => parts.join('').replace(/[\0-\x20#]/g, ''))
    await fc.assert(
      fc.asyncProperty(paths, fc.uint8Array({ maxLength: 300 }), async (path, bytes) => {
        const replies = [await fetch(`${issued.url}/${path}`), await post(issued.url, Buffer.from(bytes))]
        for (const { status } of replies) expect(status).toBeLessThan(500)
        for (const reply of replies) await reply.arrayBuffer()
      }),
      { numRuns: 100 },
    )
  }, 60_000)
})

test('a revocation that was acknowledged is in every answer of every worker', async () => {
  const all = await Promise.all(Array.from({ length: 6 }, () => issue()))
  const late: string[] = []
  const revoked = new Set<Issued>()
  let asking = true
  const ask = async (issued: Issued) => {
    while (asking) {
      const before = revoked.has(issued)
      const response = await fetch(issued.url, {
        method: 'POST',
        body: requestFor(issued),
        headers: { Connection: 'close' },
      })
      const body = await bodyOf(response)
      const said = failureOf(body) ?? readAnswer(body).status
      if (before && said !== 'revoked' && said !== 'tryLater') late.push(said)
    }
  }
  const asked = all.flatMap((issued) => [ask(issued), ask(issued)])
  for (const issued of all) {
    await issued.revoke()
    revoked.add(issued)
  }
  asking = false
  await Promise.all(asked)
  expect(late).toEqual([])
}, 60_000)
