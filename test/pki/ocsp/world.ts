import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { TokenCaller } from '../../../src/auth/caller.ts'
import { Tokens } from '../../../src/auth/tokens.ts'
import { type Clock, systemClock } from '../../../src/clock.ts'
import type { Engine } from '../../../src/engine.ts'
import { createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import type { Issuer } from '../../../src/engines/pki/authority/authority.ts'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import {
  cacheKey,
  certificateTable,
  type RevocationRow,
  revocationTable,
} from '../../../src/engines/pki/certificates/tables.ts'
import type { PkiContext } from '../../../src/engines/pki/context.ts'
import { createInitialCrls } from '../../../src/engines/pki/crl/bootstrap.ts'
import { Listed } from '../../../src/engines/pki/crl/listed.ts'
import { Manifests } from '../../../src/engines/pki/crl/manifests.ts'
import { Segments } from '../../../src/engines/pki/crl/segments.ts'
import { type CrlSettings, defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import type { Kind, Scope } from '../../../src/engines/pki/crl/tables.ts'
import { createPki, routes } from '../../../src/engines/pki/index.ts'
import { Allowance } from '../../../src/engines/pki/ocsp/allowance.ts'
import { type OcspReply, Responder, type ResponderOptions } from '../../../src/engines/pki/ocsp/responder.ts'
import { Runner } from '../../../src/jobs/runner.ts'
import { Custody } from '../../../src/keys/custody.ts'
import { Leases } from '../../../src/leases/leases.ts'
import { Metrics } from '../../../src/metrics.ts'
import type { Call, Data, Mount } from '../../../src/route.ts'
import { Database } from '../../../src/store/database.ts'
import { entrySerials } from '../../../src/x509/crlentry.ts'
import { readCrl } from '../../../src/x509/crlreader.ts'
import { MovableClock, service } from '../../auth/world.ts'
import { createShim, type Shim } from '../../hsm/support/fault.ts'
import { type Cluster, log, manage, openCluster, openHsm, options, Place } from '../../keys/support.ts'
import { noLeases } from '../../support/noleases.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { type Asking, writeOcspRequest } from '../../x509/ocspasking.ts'
import { type ReadAnswer, readAnswer } from './answer.ts'

/** PKI mounts as workers have them, without HTTP, so that settings, rows and clock can be anything. */

export const clock = new MovableClock()

export interface Worker extends AsyncDisposable {
  readonly database: Database
  readonly engine: Engine<PkiContext>
  readonly metrics: Metrics
  /** Lines of the audit log that belong to no request: alarms. */
  readonly reports: readonly string[]
  readonly context: PkiContext
  caller(): Promise<TokenCaller>
  /** An OCSP responder of its own, which by default may spend all its time on signatures. */
  responder(more?: Partial<ResponderOptions>): Responder
}

function workerOf(
  { hsm, custody }: Pick<Cluster, 'hsm' | 'custody'>,
  database: Database,
  site: string,
  clock: Clock,
): Worker {
  const { managed } = manage(custody, database, hsm)
  const { operations, materials, transients, authorityKeys, macs, cluster } = custody
  const tokens = new Tokens({ database, keys: macs, clock, log, epoch: cluster.epoch, leases: () => noLeases })
  const revokeInEngine = async () => undefined
  const leases = new Leases({ database, clock, log, tokens, removed: () => false, revokeInEngine })
  const ground = { database, clock, leases, operations, materials, managed, transients, authorityKeys, log, site }
  const metrics = new Metrics()
  const runner = new Runner({ database, clock, log })
  const reports: string[] = []
  const report = (_: string, text: string) => void reports.push(text)
  const start = runner.start.bind(runner)
  const engine = createPki({ ...ground, metrics, epoch: cluster.epoch, report, start })
  const { context } = engine
  const { authorities, signers } = context
  const segments = new Segments({ database, now: () => clock.wall() })
  const listed = new Listed({ database, manifests: new Manifests(database), segments })
  return {
    ...{ database, engine, context, metrics, reports },
    [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose](),
    caller: async () => new TokenCaller((await tokens.create(service(null))).row, 'not looked at', String),
    responder: (more = {}) =>
      new Responder({
        database,
        clock,
        log,
        authorities,
        signers,
        listed,
        mend: context.crls.mend.bind(context.crls),
        allowance: new Allowance({ clock, share: 1 }),
        ...more,
      }),
  }
}

export interface OcspWorld {
  readonly cluster: Cluster
  readonly worker: Worker
  /** In front of the token. */
  readonly shim: Shim
  /** One more worker on the same token and database, with a clock of its own. */
  join(site?: string, clock?: Clock): Promise<Worker>
}

/** Opens it before the tests of a file and ends it after them. */
export function useOcspWorld(executor: 'inline' | 'threads' = 'inline'): OcspWorld {
  const stack = new AsyncDisposableStack()
  let opened: { readonly cluster: Cluster; readonly worker: Worker; readonly shim: Shim } | undefined
  const world = () => {
    if (opened === undefined) throw new Error('the world begins before the first test')
    return opened
  }
  beforeAll(async () => {
    const token = await createTestedToken('ocsp')
    const shim = stack.use(await createShim(token.library))
    const hsm = stack.use(await openHsm({ ...token, library: shim.library }, executor))
    const place = stack.use(await Place.fresh())
    const cluster = { hsm, place, custody: await openCluster(hsm, place) }
    await place.database.transaction((tx) => createInitialCrls(place, tx))
    opened = { cluster, shim, worker: stack.use(workerOf(cluster, place.database, 'default', clock)) }
  }, 120_000)
  afterAll(() => stack.disposeAsync())
  return {
    get cluster() {
      return world().cluster
    },
    get worker() {
      return world().worker
    },
    get shim() {
      return world().shim
    },
    async join(site = 'default', own = clock) {
      const { hsm, place } = world().cluster
      // A jump of the monotonic clock would look like a poll that took as long.
      const steady: Clock = { wall: () => own.wall(), monotonic: systemClock.monotonic, sleep: systemClock.sleep }
      const database = stack.use(await Database.open({ url: place.url, poolSize: 4, log, clock: steady }))
      const custody = await Custody.open(options(hsm, database))
      await database.start()
      return stack.use(workerOf({ hsm, custody }, database, site, own))
    },
  }
}

/** A mount with a root. */
export class TestMount {
  readonly mount: Mount
  readonly #worker: Worker

  private constructor(worker: Worker, mount: Mount) {
    this.#worker = worker
    this.mount = mount
  }

  static async make(worker: Worker, root: Data = {}): Promise<TestMount> {
    const made = new TestMount(worker, { uuid: randomUUID(), path: 'pki/', type: 'pki', config: {} })
    const { database } = worker
    await database.transaction((tx) => createAuthority({ database, clock }, tx, made.mount.uuid))
    await made.run('POST', 'root/generate/:type', { type: 'internal' }, rootOf(root))
    return made
  }

  /** The same mount, as another worker has it. */
  on(worker: Worker): TestMount {
    return new TestMount(worker, this.mount)
  }

  /** The serial numbers of a list of the default issuer. @throws the error that a request for the list gets */
  async listed(kind: Kind = 'complete'): Promise<string[]> {
    const { authorities, crls } = this.#worker.context
    const list = await crls.find(this.mount, await authorities.of(this.mount), await this.issuer(), {
      kind,
      scope: 'local',
    })
    const der = await list?.der()
    if (!Buffer.isBuffer(der)) throw new Error('no short list')
    return [...entrySerials(readCrl(der).entries)].map(({ serial }) => serial.toString('hex'))
  }

  /** Runs a route as the pipeline does, past policies. */
  async run(method: string, path: string, params: Readonly<Record<string, string>>, body: Data = {}): Promise<Data> {
    const found = routes.find((route) => route.method === method && route.path === path)
    if (found === undefined) throw new Error(`no route ${method} ${path}`)
    const { context } = this.#worker
    const call: Call<PkiContext> = {
      ...{ context, mount: this.mount, params, body, bytes: Buffer.alloc(0), path: '', requestId: randomUUID() },
      ...{ caller: await this.#worker.caller(), accept: '', headers: {}, capability: 'update', sentPath: undefined },
      privileged: () => true,
      warn: () => undefined,
    }
    const outcome = (await found.run(call)) as Data & { readonly data?: Data }
    return outcome.data ?? outcome
  }

  /** A further root. */
  async root(body: Data = {}): Promise<Issuer> {
    const { issuer_id: id } = await this.run('POST', 'root/generate/:type', { type: 'internal' }, rootOf(body))
    return this.issuer(String(id))
  }

  async issuer(reference = 'default'): Promise<Issuer> {
    const found = (await this.#worker.context.authorities.of(this.mount)).findIssuer(reference)
    if (found === undefined) throw new Error(`no issuer ${reference}`)
    return found
  }

  /** Issues a certificate. @returns its serial number in hexadecimal */
  async issue(role: Data = {}, issuer = 'default'): Promise<string> {
    const name = { name: 'r', role: 'r', issuer_ref: issuer }
    await this.run('POST', 'roles/:name', name, { allow_any_name: true, key_type: 'ec', ...role })
    const wanted = { common_name: 'a.example', ttl: 3600 }
    const issued = await this.run('POST', 'issuer/:issuer_ref/issue/:role', name, wanted)
    return String(issued.serial_number).replaceAll(':', '')
  }

  async configure(settings: Partial<CrlSettings>): Promise<void> {
    const crl = { ...defaultCrlSettings, ...settings }
    await this.#worker.context.authorities.change(this.mount, async () => ({ settings: { crl }, result: undefined }))
  }

  /** Records a revocation as the engine does. */
  async revoke(serial: string, more: Partial<RevocationRow> = {}): Promise<RevocationRow> {
    const { database } = this.#worker
    const { row, certificate } = await this.issuer()
    const fields = {
      mount: this.mount.uuid,
      serial,
      site: 'default',
      issuer: row.id,
      notAfter: clock.wall() + 3_600_000,
    }
    const record = { ...fields, revokedAt: clock.wall(), crlIssuer: crlIssuerOf(certificate), seq: null, reason: null }
    return database.transaction((tx) => {
      tx.touch(certificateTable.name, cacheKey(fields))
      return database.table(revocationTable).insert(tx, { ...record, ...more })
    })
  }

  /** Asks about a serial number, of the default issuer unless another is given. */
  async ask(
    serial: string,
    { responder = this.#worker.context.ocsp, scope = 'local', ...more }: Asked = {},
  ): Promise<OcspReply> {
    const { certificate: issuer } = await this.issuer()
    const request = writeOcspRequest({ issuer, serial: Buffer.from(serial, 'hex'), ...more })
    return responder.answer(this.mount, request, scope)
  }

  /** As ask; the answer must be a signed one. */
  async answer(serial: string, asked?: Asked): Promise<ReadAnswer> {
    return readAnswer((await this.ask(serial, asked)).body)
  }
}

export interface Asked extends Partial<Omit<Asking, 'serial'>> {
  readonly responder?: Responder
  readonly scope?: Scope
}

const rootOf = (body: Data): Data => ({ common_name: 'OCSP Root', key_type: 'ec', ttl: 360_000, ...body })
