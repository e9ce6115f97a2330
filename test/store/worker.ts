/**
 * A worker in a process of its own: caches policies by id, answers questions over IPC, and looks into its cache all the
 * time. Run as `node worker.ts URL PLACE`, a place in the shared log or null, as JSON.
 */
import { open, policies } from './support.ts'

/** A cached text, and the wall clock before it was seen. */
export interface Seen {
  readonly text: string
  readonly at: number
}
export type Question =
  | { readonly ask: 'get'; readonly id: string }
  | { readonly ask: 'watch'; readonly id: string }
  | { readonly ask: 'hold'; readonly id: string }
  | { readonly ask: 'seen' | 'stop' }
export type Reply = { readonly text: string | undefined } | { readonly seen: Seen[] } | { readonly incarnation: string }

const [, , url = '', place = 'null'] = process.argv
const sharedLog = JSON.parse(place)
const database = await open(url, sharedLog ? { sharedLog } : {})
const table = database.table(policies)
const cache = database.cache({ table: 'policies', limit: 10, load: (q, id) => table.get(q, id) })
await database.start()

let seen: Seen[] = []
let watched: string | undefined
const watch = setInterval(() => {
  if (watched === undefined) return
  const at = Date.now()
  const row = cache.peek(watched)
  if (row) seen.push({ text: row.text, at })
  else void Promise.resolve(cache.get(watched)).catch(() => undefined)
}, 1)

const reply = (message: Reply): void => void process.send?.(message)

async function answer(question: Question): Promise<void> {
  switch (question.ask) {
    case 'get':
      return reply({ text: (await cache.get(question.id))?.text })
    case 'watch':
      watched = question.id
      return reply({ text: undefined })
    case 'hold':
      return database.transaction(async (tx) => {
        const row = await table.get(tx, question.id)
        if (row) await table.update(tx, row, { text: 'held' })
        reply({ text: undefined })
        await new Promise(() => undefined)
      })
    case 'seen':
      reply({ seen })
      seen = []
      return
    case 'stop':
      clearInterval(watch)
      await database[Symbol.asyncDispose]()
      process.disconnect()
  }
}

process.on('message', (question: Question) => void answer(question))
reply({ incarnation: database.incarnation })
