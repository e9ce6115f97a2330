import { connect, createServer, type Socket } from 'node:net'
import { parseTargets } from '../../src/store/pool/target.ts'
import { wholeAnswers } from '../store/answers.ts'
import { isCommit } from '../store/line.ts'
import { preparedStatements } from './prepared.ts'

/** A line to the database on which answers can be held back. */
export interface Hold extends AsyncDisposable {
  /** The database's URL through this line. */
  readonly url: string
  /** Connections that wait in a trap; a client gives one up after a while. */
  readonly trapped: number
  /** From now on, connections that ever asked something with this text in it get no answer; resolves when one waits. */
  hold(text: string): Promise<void>
  /**
   * The next COMMIT (or the nth) of a transaction that may write gets no answer, nor does anything after it on its
   * connection; resolves when it has come. `before`: the server never hears of it; `after`: the server has done it.
   * @param counts of which transactions, by their statements; all, unless it is said
   */
  trap(when: 'before' | 'after', nth?: number, counts?: (transaction: string) => boolean): Promise<void>
  /** Gives all answers that were held back. */
  release(): void
}

/** The statements of one connection, and whether its answers wait. */
interface Talk {
  asked: string
  /** Of that, from the beginning of the last transaction. */
  transaction: string
  frozen: boolean
}

const begin = 'START TRANSACTION'

const mayWrite = (transaction: string): boolean => transaction.startsWith(`${begin} READ WRITE`)

export async function openHold(url: string): Promise<Hold> {
  const [target] = parseTargets(url)
  if (target === undefined) throw new Error('no target')
  const sockets = new Set<Socket>()
  const talks = new Set<Talk>()
  let held: { matches(talk: Talk): boolean; answers: (() => void)[]; waiting: () => void } | undefined
  let trap:
    | { when: 'before' | 'after'; nth: number; counts: (transaction: string) => boolean; sprung: () => void }
    | undefined

  const server = createServer((client) => {
    const upstream = target.socketPath ? connect(target.socketPath) : connect(target.port, target.host)
    const talk: Talk = { asked: '', transaction: '', frozen: false }
    talks.add(talk)
    const prepared = preparedStatements()
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      const text = bytes.toString('latin1') + prepared.run(bytes)
      talk.asked += text
      const begun = text.lastIndexOf(begin)
      talk.transaction = begun < 0 ? talk.transaction + text : text.slice(begun)
      if (
        trap !== undefined &&
        isCommit(bytes) &&
        mayWrite(talk.transaction) &&
        trap.counts(talk.transaction) &&
        --trap.nth === 0
      ) {
        const { when, sprung } = trap
        trap = undefined
        talk.frozen = true
        if (when === 'before') return sprung()
        const whole = wholeAnswers()
        upstream.on('data', (answer) => {
          if (whole(answer)) sprung()
        })
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (talk.frozen) return
      prepared.answer(bytes)
      if (!held?.matches(talk)) return void client.write(bytes)
      held.answers.push(() => client.write(bytes))
      held.waiting()
    })
    client.on('close', () => {
      talks.delete(talk)
      upstream.destroy()
    })
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  const through = new URL(url)
  through.searchParams.delete('socketPath')
  through.hostname = '127.0.0.1'
  through.port = String(address.port)

  return {
    url: through.href,
    get trapped() {
      return [...talks].filter(({ frozen }) => frozen).length
    },
    hold(text) {
      return new Promise((resolve) => {
        held = { matches: ({ asked }) => asked.includes(text), answers: [], waiting: resolve }
      })
    },
    trap(when, nth = 1, counts = () => true) {
      return new Promise((resolve) => {
        trap = { when, nth, counts, sprung: resolve }
      })
    },
    release() {
      const answers = held?.answers ?? []
      held = undefined
      for (const answer of answers) answer()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
