import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { readAnchor, rememberedChange, writeAnchor } from '../../src/keys/cluster/anchor.ts'
import { createTestedToken } from '../support/template/keys.ts'
import type { TestToken } from '../support/token.ts'
import { openHsm } from './support.ts'

let token: TestToken
let hsm: Hsm
beforeAll(async () => {
  token = await createTestedToken('anchor')
  hsm = await openHsm(token)
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

const processes = [1, 2, 3, 4]
const times = 8

/** Starts a process that is ready to write. @returns lets it write, and gives its standard error unless it ends well */
async function prepare(directory: string, set: string): Promise<() => Promise<string>> {
  const fixture = join(import.meta.dirname, 'fixtures/anchors.ts')
  const child = spawn(process.execPath, [fixture, JSON.stringify(token), directory, set, String(times)])
  const ended = Promise.all([text(child.stderr), once(child, 'close')])
  await Promise.race([once(child.stdout, 'data'), ended])
  return async () => {
    child.stdin.end()
    const [said, [status]] = await ended
    return status === 0 ? '' : said
  }
}

test.each([
  ['of one node', 'and take turns', (_: number) => ''],
  ['of several nodes', '', (index: number) => `node-${index}`],
])(
  'processes %s that write anchors of one token at once lose none %s',
  async (which, turns, directoryOf) => {
    const before = (await readAnchor(hsm, 'c'))?.serial ?? 0
    const ready: Awaited<ReturnType<typeof prepare>>[] = []
    // SoftHSM cannot bear logins to one token at the same moment, and only processes of one node take turns at them.
    for (const index of processes) {
      const directory = join(token.directory, directoryOf(index))
      mkdirSync(directory, { recursive: true })
      ready.push(await prepare(directory, `${which} ${index}`))
    }
    const faults = await Promise.all(ready.map((write) => write()))
    expect(faults.join('')).toBe('')
    const anchor = await readAnchor(hsm, 'c')
    const changes = Array.from({ length: times }, (_, index) => index + 1)
    const tombstones = processes.flatMap((index) => changes.map((change) => `${which} ${index} ${change}`))
    expect(anchor?.tombstones).toEqual(expect.arrayContaining(tombstones))
    expect(anchor?.heads).toMatchObject(Object.fromEntries(processes.map((index) => [`${which} ${index}`, times])))
    // Two that read before either writes give the same serial.
    if (turns !== '') expect(anchor?.serial).toBe(before + processes.length * times)
  },
  120_000,
)

test('work on one token is done by one at a time, and what a dead process left holds nobody up', async () => {
  const dead = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' })
  await once(dead, 'close')
  writeFileSync(join(token.directory, `turns-${Buffer.from(hsm.token.serial).toString('hex')}`), String(dead.pid))
  let running = 0
  const most = await Promise.all(
    processes.map(() =>
      hsm.alone('turns', async () => {
        running += 1
        const seen = running
        await new Promise((resolve) => setTimeout(resolve, 30))
        running -= 1
        return seen
      }),
    ),
  )
  expect(most).toEqual(processes.map(() => 1))
})

const anchorOf = (cluster: string, change: number) => {
  return { cluster, epoch: 1, rowKey: 'aa', heads: { keks: change }, tombstones: [] }
}

test('a later epoch outweighs all changes of earlier ones, in whatever order they come, but not their deaths', async () => {
  const write = (epoch: number, change: number, ...tombstones: string[]) =>
    writeAnchor(hsm, { ...anchorOf('epochs', change), epoch, tombstones })
  await write(1, 7, 'first')
  await write(2, 3, 'second')
  expect(await readAnchor(hsm, 'epochs')).toMatchObject({ epoch: 2, heads: { keks: 3 } })
  await write(1, 9, 'late')
  const anchor = await readAnchor(hsm, 'epochs')
  expect(anchor).toMatchObject({ epoch: 2, heads: { keks: 3 }, serial: 3 })
  expect(anchor?.tombstones.toSorted()).toEqual(['first', 'late', 'second'])
  const changes = [1, 2, 3].map((epoch) => rememberedChange(hsm, 'epochs', 'keks', epoch))
  expect(await Promise.all(changes)).toEqual([3, 3, 0])
})

const objectFiles = (): string[] =>
  readdirSync(token.directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.object'))

/** Adds a copy of an object of SoftHSM whose value the token cannot decrypt any more. */
function addUnreadable(name: string): void {
  const bytes = readFileSync(join(token.directory, name))
  // CKA_VALUE, of the kind of byte strings, and its length.
  const type = Buffer.from('00000000000000110000000000000003', 'hex')
  const start = bytes.indexOf(type) + type.length + 8
  const end = start + Number(bytes.readBigUInt64BE(start - 8))
  // The padding at the end of the last block of CBC.
  bytes.writeUInt8(bytes.readUInt8(end - 17) ^ 0xf0, end - 17)
  writeFileSync(join(token.directory, dirname(name), `${randomUUID()}.object`), bytes)
}

// The test does not know the files of other modules.
test.skipIf(process.env.STRONGROOM_TEST_HSM !== undefined)(
  'an anchor that the token refuses to show hides none that it shows, and is never taken for none',
  async () => {
    const before = objectFiles()
    await writeAnchor(hsm, anchorOf('refused', 1))
    const [file = ''] = objectFiles().filter((name) => !before.includes(name))
    addUnreadable(file)
    // The token looks for new files when another process has written one.
    expect(await (await prepare(token.directory, 'other'))()).toBe('')
    const objects = () => hsm.find({ class: 'data', label: 'refused', token: true })
    expect(await objects()).toHaveLength(2)
    expect((await readAnchor(hsm, 'refused'))?.heads).toEqual({ keks: 1 })
    await writeAnchor(hsm, anchorOf('refused', 2))
    expect(await objects()).toHaveLength(2)
    expect((await readAnchor(hsm, 'refused'))?.heads).toEqual({ keks: 2 })
    for (const object of await objects()) {
      const readable = await (async () => hsm.attributes(object, ['value']))().catch(() => undefined)
      if (readable !== undefined) await hsm.destroy(object)
    }
    expect(await objects()).toHaveLength(1)
    await expect(readAnchor(hsm, 'refused')).rejects.toMatchObject({ status: 503 })
  },
  60_000,
)
