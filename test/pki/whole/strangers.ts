import { setImmediate as nextTurn } from 'node:timers/promises'
import { askStatus, issuerOf, type Told } from './asking.ts'

/** A serial number and the answers that OCSP may give about it. */
export interface Watched {
  /** With colons. */
  readonly serial: string
  /** `living`: good; `revoked`: revoked at all times; `ending`: revoked, but may be forgotten after its end. */
  readonly kind: 'living' | 'revoked' | 'ending'
  /** The end of the certificate, in milliseconds. */
  readonly end: number
}

/** Clients that ask without a pause, and the answers they got. */
export interface Strangers {
  /** Has clients ask about it from now on. */
  watch(one: Watched): void
  /** The number of answers by kind and status (`ending good`), by status, and by verb. */
  readonly told: ReadonlyMap<string, number>
  /** Forbidden answers. */
  readonly wrong: readonly string[]
  /** Resolves when the last answer has come. */
  stop(): Promise<void>
}

const kinds = ['living', 'revoked', 'ending'] as const
const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(Math.random() * from.length)]

/**
 * Clients that ask for serial numbers at random: by GET and by POST, in turn at each responder, every fifth time with a
 * nonce.
 * @param urls of responders @param pem of the CA
 */
export function ask(urls: readonly string[], pem: string, clients: number): Strangers {
  const issuer = issuerOf(pem)
  const watched: Record<Watched['kind'], Watched[]> = { living: [], revoked: [], ending: [] }
  const told = new Map<string, number>()
  const wrong: string[] = []
  let running = true

  async function client(first: number): Promise<void> {
    for (let turn = first; running; turn++) {
      const one = pick(watched[kinds[turn % 3] ?? 'living'])
      // Lets others continue while there is nothing to ask about.
      if (one === undefined) await nextTurn()
      else await once(one, turn).catch((error: unknown) => wrong.push(`${one.kind} ${one.serial}: ${error}`))
    }
  }

  async function once(one: Watched, turn: number): Promise<void> {
    const { kind, serial, end } = one
    const nonce = turn % 5 === 0 ? Buffer.from(`nonce ${turn} ${Math.random()}`) : undefined
    const url = urls[Math.floor(turn / 6) % urls.length] ?? ''
    const verb = turn % 2 === 0 ? 'GET' : 'POST'
    const answer = await askStatus({ url, issuer, serial, verb, nonce })
    const name = `${kind} ${answer.status}`
    for (const counted of [name, answer.status, verb]) told.set(counted, (told.get(counted) ?? 0) + 1)
    if (!mayBe(one, answer))
      wrong.push(`${name} by ${verb} at ${url}: ${serial}, which ends at ${end}, at ${answer.at}`)
  }

  const all = Array.from({ length: clients }, (_, index) => client(index))
  return {
    watch: (one) => void watched[one.kind].push(one),
    told,
    wrong,
    async stop() {
      running = false
      await Promise.all(all)
    },
  }
}

function mayBe({ kind, end }: Watched, { status, at }: Told): boolean {
  if (status === 'tryLater') return true
  if (kind === 'living') return status === 'good'
  return status === 'revoked' || (kind === 'ending' && status === 'good' && at >= end)
}
