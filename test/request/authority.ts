import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { Type } from 'typebox'
import { anyObject, bytes, data } from '../../src/answers.ts'
import { AppendFile } from '../../src/audit/file.ts'
import { Formatter } from '../../src/audit/formatter.ts'
import { readOptions } from '../../src/audit/options.ts'
import { Hasher } from '../../src/audit/render.ts'
import { Trail } from '../../src/audit/trail.ts'
import { Writer } from '../../src/audit/writer.ts'
import { compile, rootAcl } from '../../src/auth/acl/compile.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import type { Authenticator } from '../../src/auth/authenticate.ts'
import { PemText } from '../../src/crypto/pemstream.ts'
import type { Engine } from '../../src/engine.ts'
import { unavailable } from '../../src/errors.ts'
import { shareMemory } from '../../src/http/budget.ts'
import { builtinRecord, type MountRecord } from '../../src/request/mounts/mount.ts'
import { MountSet } from '../../src/request/mounts/mountset.ts'
import { mountsByPath } from '../../src/request/mounts/overlap.ts'
import { createPipeline } from '../../src/request/pipeline.ts'
import { Answer, type Mount, type Route, route } from '../../src/route.ts'
import { Stream } from '../../src/stream.ts'
import { type Line, linesOf } from '../audit/device.ts'
import { type Listener, openListener } from '../http/listener.ts'
import { ask, caller, type Question, type Reply } from '../http/serving.ts'
import { runDirectory } from '../support/directory.ts'

/** The content that the test engine serves, and counts of its use. */
export interface Authority {
  /** The list that it streams, and how many bytes the stream says it has. */
  list: Buffer
  claimed: number
  /** Bytes of each piece that the source of the stream gives. */
  pieceBytes: number
  opened: number
  /** Bytes that were taken from the stream, and how many of its readers are gone. */
  taken: number
  closed: number
  /** How many streams may still be reserved. */
  free: number
}

const nothing = Type.Object({})
const declare = route<Authority, typeof nothing>
const anyData = data(anyObject)
const plain = { access: 'public', about: 'For the test.', body: nothing, answers: anyData } as const
const modified = new Date('2026-11-22T08:00:00.900Z')
const caching = { lastModified: modified, etag: 'abc', maxAgeSeconds: 3600.5 }

const streamOf = (authority: Authority): Stream =>
  new Stream({
    length: authority.claimed,
    sha256: createHash('sha256').update(authority.list).digest('hex'),
    reserve() {
      if (authority.free === 0) throw unavailable('busy')
      authority.free--
    },
    async *open() {
      authority.opened++
      try {
        for (let at = 0; at < authority.list.length; at += authority.pieceBytes) {
          const piece = authority.list.subarray(at, at + authority.pieceBytes)
          authority.taken += piece.length
          yield piece
        }
      } finally {
        authority.closed++
      }
    },
  })
const pem = (context: Authority, newlineAtEnd = false) => new PemText('X509 CRL', streamOf(context), { newlineAtEnd })

export const routes = [
  declare({
    ...plain,
    method: 'GET',
    path: 'ocsp/:request**',
    answers: bytes('application/json'),
    run: ({ params, path }) =>
      new Answer({ raw: { type: 'application/json', body: JSON.stringify({ request: params.request, path }) } }),
  }),
  declare({
    ...plain,
    method: 'POST',
    path: 'ocsp',
    bytes: { type: 'application/ocsp-request', maxBytes: 2048 },
    answers: bytes('application/ocsp-response'),
    run: ({ bytes }) => new Answer({ raw: { type: 'application/ocsp-response', body: Buffer.from(bytes) } }),
  }),
  declare({
    ...plain,
    access: 'token',
    method: 'POST',
    path: 'import',
    bytes: { type: 'application/pkcs7-mime', maxBytes: 100_000 },
    run: ({ bytes }) => ({ length: bytes.length }),
  }),
  declare({
    ...plain,
    access: 'token',
    method: 'GET',
    path: 'est/:rest**',
    run: ({ params }) => ({ rest: params.rest }),
  }),
  declare({ ...plain, access: 'token', method: 'GET', path: 'secret', run: () => ({ secret: true }) }),
  declare({
    ...plain,
    method: 'GET',
    path: 'crl',
    answers: bytes('application/pkix-crl'),
    run: ({ context }) => new Answer({ raw: { type: 'application/pkix-crl', body: streamOf(context) }, caching }),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'crl/pem',
    answers: bytes('application/x-pem-file'),
    run: ({ context }) => new Answer({ raw: { type: 'application/x-pem-file', body: pem(context).stream() } }),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'cert/crl',
    run: ({ context, warn }) => {
      warn('a "warning"')
      return new Answer({
        data: { revocation_time: 0, a: 'ä' },
        pem: { name: 'certificate', text: pem(context, true) },
      })
    },
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'ca',
    answers: bytes('application/pkix-cert'),
    run: () => new Answer({ raw: { type: 'application/pkix-cert', body: Buffer.from('DER') }, caching }),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'held',
    answers: bytes('application/pkix-crl'),
    run: ({ context }) => new Answer({ raw: { type: 'application/pkix-crl', body: context.list } }),
  }),
  declare({ ...plain, method: 'GET', path: 'cert/ca', run: () => new Answer({ data: { certificate: 'x' }, caching }) }),
  declare({
    ...plain,
    method: 'GET',
    path: 'nothing',
    run: () => new Answer({ status: 204, raw: { type: 'application/pkix-crl', body: '' }, caching }),
  }),
  declare({
    ...plain,
    access: 'token',
    method: 'GET',
    path: 'private',
    run: () => new Answer({ data: { mine: true }, caching }),
  }),
  declare({
    ...plain,
    access: 'token',
    method: 'LIST',
    path: 'certs/revoked',
    run: ({ mount, path }) => ({ keys: [mount.path, path] }),
  }),
] as readonly Route<Authority>[]

export const policyText = `
path "pki/est/simple" { capabilities = ["read"] }
path "pki/est/open/*" { capabilities = ["read"] }
path "pki/est/a%2Fb" { capabilities = ["read"] }
path "pki/certs/revoked" { capabilities = ["list"] }
path "transit/*" { capabilities = ["read"] }
`

const limitedAcl = compile(new Map([['p', parsePolicy(policyText)]]))

export interface ServedAuthority {
  readonly authority: Authority
  readonly listener: Listener
  readonly port: number
  readonly logged: string[]
  /** Credentials that were looked up. */
  readonly lookups: string[]
  /** Lines of the audit device about one request path. */
  linesOf(path: string): Line[]
  ask(method: string, path: string, question?: Question): Promise<Reply>
}

/** Settings of the mount pki/, as the first initialisation tunes it. */
const tuned = { passthrough_request_headers: ['If-Modified-Since'], allowed_response_headers: ['Last-Modified'] }

/** Serves the test engine under pki/ (tuned) and bare/ (not tuned) on loopback, with a real audit file. */
export async function serveAuthority(
  options: { config?: Mount['config']; idleSeconds?: number; withoutPki?: boolean } = {},
): Promise<ServedAuthority> {
  const { config = tuned, idleSeconds = 1, withoutPki = false } = options
  const authority = {
    list: Buffer.alloc(0),
    claimed: 0,
    pieceBytes: 65_536,
    opened: 0,
    taken: 0,
    closed: 0,
    free: Number.POSITIVE_INFINITY,
  }
  const [logged, lookups]: [string[], string[]] = [[], []]
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  const engine: Engine<Authority> = { type: 'pki', context: authority, routes }
  const mount = (path: string, settings: Mount['config']) => ({
    ...{ ...builtinRecord({ path, type: 'pki', description: '' }), uuid: randomUUID(), config: settings },
  })
  const set = new MountSet(
    mountsByPath<MountRecord>([...(withoutPki ? [] : [mount('pki/', config)]), mount('bare/', {})]),
  )
  const authenticator: Authenticator = {
    authenticate(credential) {
      lookups.push(credential)
      if (credential === 'root') return { caller: caller('root'), acl: rootAcl }
      return credential === 'limited' ? { caller: caller('limited'), acl: limitedAcl } : undefined
    },
    recognise: (credential) => authenticator.authenticate(credential),
  }
  const file = join(mkdtempSync(join(runDirectory(), 'authority-')), 'audit.log')
  const device = openDevice(file, log)
  const destination = { openDevices: [device], time: '2026-11-22T08:00:00Z', missed: () => undefined }
  const pipeline = createPipeline({
    mounts: { find: (path) => set.lookUp(path) },
    authenticator,
    engines: new Map([['pki', engine as Engine]]),
    audit: { begin: (_path, describe) => new Trail(destination, describe([])) },
    log,
  })
  const limits = { headersSeconds: 5, requestSeconds: 5, idleSeconds, leastBytesPerSecond: 2048, connections: 100 }
  const listener = await openListener(
    { address: '127.0.0.1:0', maxRequestBytes: 1_000_000 },
    { pipeline, log, limits, budgets: shareMemory(1024) },
  )
  const port = Number(listener.address.split(':').at(-1))
  return {
    ...{ authority, listener, port, logged, lookups },
    linesOf: (path) => linesOf(readFileSync(file, 'utf8')).filter(({ request }) => request.path === path),
    ask: (method, path, question) => ask(port, method, path, question),
  }
}

export const auditKey = Buffer.alloc(32, 7)

function openDevice(file: string, log: pino.Logger) {
  const options = readOptions({ type: 'file', options: { file_path: file } })
  const names = { node: 'test', device: randomUUID(), incarnation: randomUUID(), epoch: 0 }
  return {
    formatter: new Formatter(options, new Hasher(auditKey)),
    writer: new Writer({
      ...{ names, file: new AppendFile(file, 0o600), prefix: '', durability: 'write', log },
      register: () => Promise.resolve(),
    }),
  }
}
