import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { hostname } from 'node:os'
import { after } from '../after.ts'
import type { Clock } from '../clock.ts'
import { badRequest } from '../errors.ts'
import type { Job } from '../job.ts'
import type { AuditKeys } from '../keys/cluster/system.ts'
import type { Logger } from '../log.ts'
import type { Counter, Metrics } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import { type AuditedHeader, auditedHeaders } from '../settings/auditedheaders.ts'
import type { SettingSet, Settings } from '../settings/settings.ts'
import type { Database } from '../store/database.ts'
import type { ChainNames } from './chain.ts'
import { DatagramChannel } from './datagrams.ts'
import { type Device, Devices, devicePath, type NewDevice, requireFreePath } from './devices.ts'
import type { AuditedRequest } from './entry.ts'
import { AppendFile } from './file.ts'
import { Formatter } from './formatter.ts'
import { ChainHeads, headRetention, type SealedChain } from './heads.ts'
import type { LineWriter } from './linewriter.ts'
import { checkDevice, type DeviceOptions, readOptions } from './options.ts'
import { Hasher } from './render.ts'
import { SocketChannel } from './socket.ts'
import { type Print, StdoutChannel } from './stdout.ts'
import { StreamWriter } from './streamwriter.ts'
import { type Destination, type OpenDevice, Trail } from './trail.ts'
import { type Durability, Writer } from './writer.ts'

export interface AuditOptions {
  readonly database: Database
  readonly keys: Pick<AuditKeys, 'device'>
  readonly settings: Settings
  /** The cluster's, at start. */
  readonly epoch: number
  readonly clock: Clock
  readonly log: Logger
  readonly durability: Durability
  /** The only directory that may hold audit files. */
  readonly directory: string
  /** Of the server; absent in commands. */
  readonly print?: Print
  /** How long the sealed head of a chain is kept after its end. */
  readonly headRetentionDays: number
  /** Of the server; absent in commands. */
  readonly metrics?: Pick<Metrics, 'counter'>
}

type OpenableDevice = Pick<Device, 'id' | 'type' | 'options'>

/** The audit devices of one worker, and the lines that go to them. */
export class Audit implements Destination, AsyncDisposable {
  /** Removes the sealed heads of chains that ended long ago. */
  readonly retention: Job
  readonly #options: AuditOptions
  readonly #devices: Devices
  readonly #heads: ChainHeads
  #known: readonly Device[] | undefined
  #byId: ReadonlyMap<string, OpenDevice> = new Map()
  #openDevices: readonly OpenDevice[] = []
  /** Writers of devices that are gone, until their last head is sealed. */
  #retired: readonly LineWriter[] = []
  #sealing: Promise<void> = Promise.resolve()
  readonly #missed: Readonly<Record<'request' | 'response', Counter | undefined>>
  #stamp = { at: 0, text: '' }
  /** Of the settings known last. */
  #headers: { readonly set: SettingSet; readonly audited: readonly AuditedHeader[] } = { set: new Map(), audited: [] }

  constructor(options: AuditOptions) {
    this.#options = options
    this.retention = headRetention(options, options.headRetentionDays)
    this.#devices = new Devices(options)
    this.#heads = new ChainHeads(options)
    const counter = (name: string, help: string) => options.metrics?.counter(name, help)
    this.#missed = {
      request: counter('vault.audit.log_request_failure', 'Lines of requests that no audit device took.'),
      response: counter('vault.audit.log_response_failure', 'Lines of responses that no audit device took.'),
    }
  }

  missed(kind: 'request' | 'response'): void {
    const counter = this.#missed[kind]
    if (counter) counter.value++
  }

  /**
   * Begins the trail of a request; undefined without devices. The request that enables the first device has a trail, so
   * that its response is in the file.
   * @param path as policies see it
   * @param describe called only when there is a trail, with the headers to show
   */
  begin(
    path: string,
    describe: (headers: readonly AuditedHeader[]) => AuditedRequest,
  ): MaybePromise<Trail | undefined> {
    return after(this.#devices.list(), (devices) => {
      this.#adopt(devices)
      if (devices.length === 0 && !path.startsWith('sys/audit/')) return undefined
      const set = this.#options.settings.current()
      if (set instanceof Promise) return set.then((loaded) => new Trail(this, describe(this.#headersIn(loaded))))
      return new Trail(this, describe(this.#headersIn(set)))
    })
  }

  #headersIn(set: SettingSet): readonly AuditedHeader[] {
    if (set !== this.#headers.set) {
      this.#headers = { set, audited: auditedHeaders(set.get('audited-header') ?? new Map()) }
    }
    return this.#headers.audited
  }

  /**
   * Writes a line, in clear, about an event that no request caused. If no device takes it, only the log has it.
   * @param path its subject
   */
  async alarm(path: string, text: string): Promise<void> {
    const alarm = { id: randomUUID(), path, text }
    await this.#tryAdopt()
    const written = this.#openDevices.map(({ formatter, writer }) => writer.write(formatter.alarm(this.time, alarm)))
    if (written.length > 0 && !(await Promise.all(written)).includes(true)) {
      this.#options.log.error(alarm, 'no audit device could be written')
    }
  }

  /**
   * While the database does not answer, the last known devices serve. That includes a change that was just stored here:
   * it is not undone by this, and no request begins before it was read.
   */
  async #tryAdopt(): Promise<void> {
    try {
      this.#adopt(await this.list())
    } catch (error) {
      this.#options.log.warn({ err: error }, 'audit devices could not be read')
    }
  }

  /** The open devices; while the database does not answer, the last known ones. */
  get openDevices(): readonly OpenDevice[] {
    const devices = this.#devices.peek()
    if (devices) this.#adopt(devices)
    return this.#openDevices
  }

  /** The current time, as records show it. */
  get time(): string {
    const at = this.#options.clock.wall()
    if (at !== this.#stamp.at) this.#stamp = { at, text: new Date(at).toISOString() }
    return this.#stamp.text
  }

  list(): MaybePromise<readonly Device[]> {
    return this.#devices.list()
  }

  /**
   * Enables a device; every worker of every node writes to it before this resolves.
   * @throws ApiError 400 for a path that is taken, a bad option, or a place that this worker cannot write to
   */
  async enable(request: NewDevice): Promise<void> {
    const device = { ...request, path: devicePath(request.path), id: randomUUIDv7() }
    checkDevice(device, this.#options.directory)
    requireFreePath(await this.list(), device.path)
    await this.#probe(device)
    const { id, ...row } = device
    await this.#devices.insert(id, row)
    await this.#tryAdopt()
  }

  /** Disables a device; an unknown one is ignored. */
  async disable(name: string): Promise<void> {
    await this.#devices.remove(devicePath(name))
    await this.#tryAdopt()
  }

  /**
   * The form of a text in a device's file: `hmac-sha256:…`.
   * @throws ApiError 400 for an unknown device
   */
  async hash(name: string, text: string): Promise<string> {
    const path = devicePath(name)
    const device = (await this.list()).find((device) => device.path === path)
    if (device === undefined) throw badRequest(`unknown audit backend: ${path}`)
    return this.#hasher(device.id).hash(text)
  }

  /** Reopens the paths of files, after one was moved; never rejects. */
  async reopen(): Promise<void> {
    const reopened = await Promise.all(this.#openDevices.map((device) => this.#tryReopen(device)))
    // From now on a file that was moved cannot lose its end unnoticed.
    if (reopened.includes(true)) await this.trySealHeads()
  }

  /** @returns whether there was another file */
  async #tryReopen({ formatter, writer }: OpenDevice): Promise<boolean> {
    const { path: file, names } = writer
    const about = { device: names.device, file }
    try {
      const reopened = await writer.reopen((event) => formatter.boundary(this.time, event, { id: randomUUID(), file }))
      if (reopened) this.#options.log.info(about, 'an audit file was opened anew')
      return reopened
    } catch (error) {
      this.#options.log.error(
        { ...about, err: error },
        'an audit file cannot be opened anew: lines go on into the old one',
      )
      const reason = error instanceof Error ? error.message : 'unknown reason'
      await this.alarm('sys/audit', `the file cannot be opened anew, so lines go on into the old one: ${reason}`)
      return false
    }
  }

  /** Seals the heads of this worker's chains; called periodically. */
  sealHeads(): Promise<void> {
    this.#sealing = this.#sealing.then(
      () => this.#seal(),
      () => this.#seal(),
    )
    return this.#sealing
  }

  /** Seals the heads as far as database and token allow; never rejects. */
  async trySealHeads(): Promise<void> {
    try {
      await this.sealHeads()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'heads of audit chains could not be sealed')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.close()))
  }

  get #writers(): LineWriter[] {
    return [...this.#retired, ...this.#openDevices.map(({ writer }) => writer)]
  }

  /** Opens new devices and retires the writers of removed ones. */
  #adopt(devices: readonly Device[]): void {
    if (devices === this.#known) return
    const before = this.#byId
    this.#byId = new Map(devices.map((device) => [device.id, before.get(device.id) ?? this.#open(device)]))
    this.#openDevices = [...this.#byId.values()]
    this.#known = devices
    for (const [id, { writer }] of before) if (!this.#byId.has(id)) this.#retire(writer)
  }

  #open(device: OpenableDevice): OpenDevice {
    const { epoch } = this.#options
    const options = readOptions(device)
    const names = { node: hostname(), device: device.id, incarnation: randomUUID(), epoch }
    return { formatter: new Formatter(options, this.#hasher(device.id)), writer: this.#writerOf(names, options) }
  }

  #writerOf(names: ChainNames, { place, prefix }: DeviceOptions): LineWriter {
    const { durability, log, clock, print } = this.#options
    const common = { names, prefix, log, register: (chain: SealedChain) => this.#heads.register(chain) }
    if (place.kind === 'file')
      return new Writer({ ...common, durability, file: new AppendFile(place.path, place.mode) })
    if (place.kind === 'stdout') return new StreamWriter({ ...common, channel: new StdoutChannel(print, clock) })
    const Channel = place.socketType === 'udp' ? DatagramChannel : SocketChannel
    return new StreamWriter({ ...common, channel: new Channel(place, clock) })
  }

  /** Writes Vault's test line: a device that this worker cannot write is never enabled. */
  async #probe(device: OpenableDevice): Promise<void> {
    const { formatter, writer } = this.#open(device)
    const written = await writer.write(formatter.test(this.time, randomUUID()))
    this.#retire(writer)
    if (written) return
    const reason = writer.fault instanceof Error ? writer.fault.message : 'the line could not be written'
    throw badRequest(`audit backend failed test message: ${reason}`, { cause: writer.fault })
  }

  #retire(writer: LineWriter): void {
    this.#retired = [...this.#retired, writer]
    void writer.close().then(() => this.trySealHeads())
  }

  async #seal(): Promise<void> {
    const retired = this.#retired
    await this.#heads.seal(this.#writers)
    this.#retired = this.#retired.filter((writer) => !retired.includes(writer) || this.#heads.due(writer))
  }

  #hasher(device: string): Hasher {
    return new Hasher(this.#options.keys.device(device))
  }
}
