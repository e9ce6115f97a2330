import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { AppendFile } from '../../src/audit/file.ts'
import { type Durability, Writer } from '../../src/audit/writer.ts'
import { runDirectory } from '../support/directory.ts'
import { linesOf } from './device.ts'

const place = () => join(mkdtempSync(join(runDirectory(), 'audit-')), 'audit.log')
const names = { node: 'n', device: 'd', incarnation: 'i', epoch: 1 }

function writerOn(path: string, durability: Durability = 'write', file = new AppendFile(path, 0o600)) {
  const logged: { msg: string; level: number }[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  let registered = 0
  const heads = { refused: false }
  const register = async () => {
    if (heads.refused) throw new Error('no head')
    registered++
  }
  const writer = new Writer({ names, file, prefix: '', durability, log, register })
  return { writer, logged, registered: () => registered, heads }
}

const record = (text: string) => [JSON.stringify({ time: 't', text }).slice(0, -1)]
const boundary = (event: string) => record(event)
const texts = (path: string) =>
  linesOf(readFileSync(path, 'utf8')).map((line) => (line as unknown as { text: string }).text)

test.each(['write', 'fdatasync'] as const)(
  'lines of one turn are there when they are answered (%s)',
  async (durability) => {
    const path = place()
    const { writer, registered } = writerOn(path, durability)
    const results = await Promise.all(['a', 'b', 'c'].map((text) => writer.write(record(text))))
    expect(results).toEqual([true, true, true])
    expect(texts(path)).toEqual(['a', 'b', 'c'])
    expect(writer.head.sequence).toBe(3)
    // Lines that come while the disk is busy go with the next write.
    const first = writer.write(record('d'))
    setImmediate(() => void writer.write(record('e')))
    await first
    await new Promise((resolve) => setTimeout(resolve, 0))
    await writer.write(record('f'))
    expect(texts(path)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    expect(registered()).toBe(1)
    await writer.close()
  },
)

test('lines are refused while the chain’s head cannot be sealed, and nothing is written; once it is, lines are', async () => {
  const path = place()
  const { writer, logged, registered, heads } = writerOn(path)
  heads.refused = true
  expect(await Promise.all([writer.write(record('a')), writer.write(record('b'))])).toEqual([false, false])
  expect(await writer.write(record('c'))).toBe(false)
  expect(existsSync(path)).toBe(false)
  expect(writer.fault).toMatchObject({ message: 'no head' })
  heads.refused = false
  expect(await Promise.all([writer.write(record('d')), writer.write(record('e'))])).toEqual([true, true])
  expect([texts(path), registered(), writer.fault]).toEqual([['d', 'e'], 1, undefined])
  expect(logged.map(({ level }) => level)).toEqual([50, 40])
  await writer.close()
})

test('lines that come while a sync is under way wait for it, and share the next one', async () => {
  const path = place()
  const syncs: (() => void)[] = []
  const file = new (class extends AppendFile {
    override async sync(): Promise<void> {
      await new Promise<void>((resolve) => syncs.push(resolve))
      await super.sync()
    }
  })(path, 0o600)
  const { writer } = writerOn(path, 'fdatasync', file)
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const first = writer.write(record('a'))
  while (syncs.length < 1) await turn()
  const later = ['b', 'c'].map((text) => writer.write(record(text)))
  for (let n = 0; n < 5; n++) await turn()
  expect([texts(path), syncs.length]).toEqual([['a'], 1])
  syncs[0]?.()
  expect(await first).toBe(true)
  while (syncs.length < 2) await turn()
  expect(texts(path)).toEqual(['a', 'b', 'c'])
  syncs[1]?.()
  expect([await Promise.all(later), syncs.length]).toEqual([[true, true], 2])
  await writer.close()
})

test('a file that was deleted is made anew, and the lines that went into the old one are written again', async () => {
  const path = place()
  const { writer } = writerOn(path)
  await writer.write(record('a'))
  rmSync(path)
  expect(await writer.write(record('b'))).toBe(true)
  expect(texts(path)).toEqual(['b'])
  await writer.close()
})

test('a file that was moved is written to until it is opened anew', async () => {
  const path = place()
  const { writer } = writerOn(path)
  await writer.write(record('a'))
  renameSync(path, `${path}.1`)
  await writer.write(record('b'))
  expect(texts(`${path}.1`)).toEqual(['a', 'b'])
  await writer.close()
})

describe.each(['write', 'fdatasync'] as const)('opening anew (%s)', (durability) => {
  test('keeps the order of lines and their chain, with a boundary on either side', async () => {
    const path = place()
    const { writer } = writerOn(path, durability)
    await writer.write(record('a'))
    renameSync(path, `${path}.1`)
    const before = writer.write(record('b'))
    const reopened = [writer.reopen(boundary), writer.reopen(boundary)]
    const after = Array.from({ length: 50 }, (_, line) => writer.write(record(`c${line}`)))
    expect(await Promise.all([before, ...after])).toEqual(Array(51).fill(true))
    expect(await Promise.all(reopened)).toEqual([true, false])
    const [old, fresh] = [texts(`${path}.1`), texts(path)]
    expect([old[0], old.at(-1), fresh[0]]).toEqual(['a', 'closed', 'opened'])
    const lines = [...old, ...fresh].filter((text) => !['closed', 'opened'].includes(text))
    expect(lines).toEqual(['a', 'b', ...Array.from({ length: 50 }, (_, line) => `c${line}`)])
    const chain = [`${path}.1`, path].flatMap((file) => linesOf(readFileSync(file, 'utf8')))
    expect(chain.map(({ chain: { sequence } }) => sequence)).toEqual(chain.map((_, index) => index + 1))
    await writer.close()
  })

  test('does nothing while the path names the open file, or no file was opened', async () => {
    const path = place()
    const { writer } = writerOn(path, durability)
    expect(await writer.reopen(boundary)).toBe(false)
    expect(existsSync(path)).toBe(false)
    await writer.write(record('a'))
    expect(await writer.reopen(boundary)).toBe(false)
    expect(texts(path)).toEqual(['a'])
    await writer.close()
  })

  test.each([
    ['a directory in its place', (path: string) => mkdirSync(path), 'EISDIR'],
    ['a full disk', (path: string) => symlinkSync('/dev/full', path), 'ENOSPC'],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path]), 'ENXIO'],
  ])('of %s is refused, and the old file goes on', async (_what, make, code) => {
    const path = place()
    const { writer } = writerOn(path, durability)
    await writer.write(record('a'))
    renameSync(path, `${path}.1`)
    make(path)
    await expect(writer.reopen(boundary)).rejects.toMatchObject({ code })
    expect(await writer.write(record('b'))).toBe(true)
    expect(texts(`${path}.1`).filter((text) => text !== 'closed')).toEqual(['a', 'b'])
    rmSync(path, { recursive: true })
    expect(await writer.reopen(boundary)).toBe(true)
    expect(await writer.write(record('c'))).toBe(true)
    expect(texts(path)).toEqual(['opened', 'c'])
    await writer.close()
  })
})

test('a writer that is closed while it opens its file anew leaves no file open', async () => {
  const path = place()
  const { writer } = writerOn(path, 'fdatasync')
  await writer.write(record('a'))
  renameSync(path, `${path}.1`)
  const reopened = writer.reopen(boundary)
  await writer.close()
  expect(await reopened).toBe(true)
  const open = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  expect(open.filter((target) => target.startsWith(path))).toEqual([])
})

test('without its directory nothing is written and nothing is created, until it is back', async () => {
  const path = place()
  const { writer, logged } = writerOn(path)
  await writer.write(record('a'))
  rmSync(join(path, '..'), { recursive: true })
  expect(await writer.write(record('b'))).toBe(false)
  expect(await writer.write(record('c'))).toBe(false)
  expect(writer.fault).toMatchObject({ code: 'ENOENT' })
  mkdirSync(join(path, '..'))
  expect(await writer.write(record('d'))).toBe(true)
  expect(linesOf(readFileSync(path, 'utf8'))).toMatchObject([{ text: 'd', chain: { sequence: 4 } }])
  expect(logged.map(({ msg, level }) => [level, msg])).toEqual([
    [50, 'an audit device cannot be written'],
    [40, 'an audit device can be written again'],
  ])
  await writer.close()
})

test.each([
  ['a full disk', (path: string) => symlinkSync('/dev/full', path), 'ENOSPC'],
  ['a directory in its place', (path: string) => mkdirSync(path), 'EISDIR'],
  ['a pipe that nobody reads', (path: string) => execFileSync('mkfifo', [path]), 'ENXIO'],
])('%s takes no line', async (_what, make, code) => {
  const path = place()
  make(path)
  const { writer } = writerOn(path)
  expect(await Promise.all([writer.write(record('a')), writer.write(record('b'))])).toEqual([false, false])
  expect(writer.fault).toMatchObject({ code })
  expect(writer.head.sequence).toBe(0)
  await writer.close()
})

test('a line whose fdatasync fails is not written, however often it is tried, and lines are again on a disk that syncs', async () => {
  const path = place()
  // The kernel takes every byte for the null device, and no sync of it succeeds.
  symlinkSync('/dev/null', path)
  const { writer, logged } = writerOn(path, 'fdatasync')
  for (const text of ['a', 'b']) expect(await writer.write(record(text))).toBe(false)
  expect(await Promise.all([writer.write(record('c')), writer.write(record('d'))])).toEqual([false, false])
  expect(writer.fault).toMatchObject({ code: 'EINVAL', syscall: 'fdatasync' })
  rmSync(path)
  expect(await writer.write(record('e'))).toBe(true)
  expect(writer.fault).toBeUndefined()
  expect(linesOf(readFileSync(path, 'utf8'))).toMatchObject([{ text: 'e', chain: { sequence: 5 } }])
  expect(logged.map(({ msg }) => msg)).toEqual([
    'an audit device cannot be written',
    'an audit device can be written again',
  ])
  await writer.close()
})

test('a disk that fills up within a write: whole lines count, the piece stands alone, the chain goes on', async () => {
  const path = place()
  const { writer } = writerOn(path)
  const limited = new (class extends AppendFile {
    room = Number.POSITIVE_INFINITY
    override append(bytes: Uint8Array): number {
      const fits = bytes.subarray(0, Math.min(bytes.length, this.room))
      appendFileSync(path, fits)
      return fits.length
    }
  })(path, 0o600)
  const full = new Writer({
    ...{ names, file: limited, prefix: '', durability: 'write' as const },
    log: pino({ level: 'silent' }),
    register: async () => {},
  })
  await full.write(record('a'))
  limited.room = readFileSync(path).length + 20
  expect(await Promise.all([full.write(record('b')), full.write(record('c'))])).toEqual([true, false])
  limited.room = Number.POSITIVE_INFINITY
  expect(await full.write(record('d'))).toBe(true)
  const lines = readFileSync(path, 'utf8').split('\n')
  expect(lines).toHaveLength(5)
  const torn = lines.splice(2, 1)
  expect(() => JSON.parse(torn.join())).toThrow()
  expect(linesOf(lines.join('\n'))).toMatchObject([
    { text: 'a', chain: { sequence: 1 } },
    { text: 'b', chain: { sequence: 2 } },
    { text: 'd', chain: { sequence: 4 } },
  ])
  await writer.close()
})

test('two processes that append to one file never mix their lines', async () => {
  const path = place()
  const script = `import { AppendFile } from ${JSON.stringify(new URL('../../src/audit/file.ts', import.meta.url).href)}
    const file = new AppendFile(process.argv[1], 0o600)
    for (let i = 0; i < 200; i++) file.append(Buffer.from(process.argv[2].repeat(50_000) + '\\n'))`
  const run = (letter: string) =>
    new Promise((resolve) =>
      spawn(process.execPath, ['--input-type=module', '-e', script, path, letter]).once('close', resolve),
    )
  expect(await Promise.all([run('a'), run('b')])).toEqual([0, 0])
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  expect(lines).toHaveLength(400)
  for (const line of lines) expect(line).toBe(line.charAt(0).repeat(50_000))
})

test('the mode of a file that is there already is set, unless 0 says to leave it', () => {
  const path = place()
  writeFileSync(path, '', { mode: 0o644 })
  const mode = () => Number.parseInt(execFileSync('stat', ['-c', '%a', path]).toString(), 8)
  const left = new AppendFile(path, 0)
  left.append(Buffer.from('a\n'))
  left.close()
  expect(mode()).toBe(0o644)
  const set = new AppendFile(path, 0o600)
  set.append(Buffer.from('b\n'))
  set.close()
  expect(mode()).toBe(0o600)
})
