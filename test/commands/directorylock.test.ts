import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeMarker, markerIn } from '../../src/turns/marker.ts'
import { until } from '../supervisor/node.ts'
import { runDirectory } from '../support/directory.ts'

/** Processes that want to be the only supervisor of one state directory. */

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(runDirectory(), 'lock-'))
})
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})

const started: ChildProcess[] = []
const program = new URL('../../src/commands/directorylock.ts', import.meta.url)

/** Says `has` or the reason, and goes on until its standard input ends. */
const script = `
  const { lockDirectory } = await import(${JSON.stringify(program.href)})
  await new Promise((resolve) => process.stdin.once('data', resolve))
  try { lockDirectory(process.argv[1], { error: (_, text) => console.log(text) }); console.log('has') } catch (error) { console.log(error.message) }
  process.stdin.once('end', () => process.exit())
`

interface Contender {
  readonly child: ChildProcess
  /** Tries now. @returns `has` or the refusal */
  tries(): Promise<string>
}

function contender(): Contender {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  started.push(child)
  return {
    child,
    async tries() {
      const said = once(child.stdout, 'data')
      child.stdin.write('now\n')
      return String((await said)[0]).trim()
    },
  }
}

const refusal = (pid: number | undefined) =>
  `the server with process id ${pid} runs with the state directory ${directory} already`

test.each(['nobody has had it', 'a process that died had it'])(
  'of twenty at once one gets it, when %s',
  async (before) => {
    if (before !== 'nobody has had it') makeMarker(join(directory, 'supervisor.lock'), `${process.pid}:1`)
    const all = Array.from({ length: 20 }, contender)
    const said = await Promise.all(all.map((one) => one.tries()))
    const winner = all[said.indexOf('has')]?.child.pid
    expect(said.filter((text) => text !== 'has')).toEqual(Array.from({ length: 19 }, () => refusal(winner)))
    expect(readdirSync(directory)).toEqual(['supervisor.lock'])
  },
  60_000,
)

/** Tries to lock one directory after the other, each at a moment of its own, and says which it has. */
const race = `
  const { lockDirectory } = await import(${JSON.stringify(program.href)})
  process.setMaxListeners(0)
  const [directory, rounds, begin] = process.argv.slice(1)
  const has = []
  const clock = new Int32Array(new SharedArrayBuffer(4))
  for (let round = 0; round < rounds; round++) {
    const moment = Number(begin) + 4 * round
    Atomics.wait(clock, 0, 0, Math.max(0, moment - Date.now() - 2))
    while (Date.now() < moment);
    try { lockDirectory(directory + '/' + round, console); has.push(round) } catch {}
  }
  console.log(JSON.stringify(has))
  process.stdin.once('end', () => process.exit()).resume()
`

test('of six that find the lock of a dead process at the same moment one gets it, each of a thousand times', async () => {
  const rounds = Array.from({ length: 1000 }, (_, round) => round)
  for (const round of rounds) {
    mkdirSync(join(directory, `${round}`))
    makeMarker(join(directory, `${round}`, 'supervisor.lock'), `${process.pid}:1`)
  }
  const words = ['--input-type=module', '--eval', race, directory, `${rounds.length}`, `${Date.now() + 1500}`]
  const has = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] })
      started.push(child)
      return JSON.parse(String((await once(child.stdout, 'data'))[0])) as number[]
    }),
  )
  expect(has.flat().toSorted((a, b) => a - b)).toEqual(rounds)
}, 60_000)

test('it is kept by a process that was stopped, and free once that was killed', async () => {
  const [first, second, third] = [contender(), contender(), contender()]
  expect(await first.tries()).toBe('has')
  first.child.kill('SIGSTOP')
  expect(await second.tries()).toBe(refusal(first.child.pid))
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  expect(await third.tries()).toBe('has')
})

test('a process that ends takes its lock away, and no other one', async () => {
  const first = contender()
  expect(await first.tries()).toBe('has')
  first.child.stdin?.end()
  await once(first.child, 'exit')
  expect(readdirSync(directory)).toEqual([])
  const second = contender()
  expect(await second.tries()).toBe('has')
  rmSync(join(directory, 'supervisor.lock'))
  const third = contender()
  expect(await third.tries()).toBe('has')
  second.child.stdin?.end()
  await once(second.child, 'exit')
  expect(markerIn(join(directory, 'supervisor.lock'))).toMatch(new RegExp(`^${third.child.pid}:\\d+$`))
})

test('a process that is dead and not reaped has it no longer', async () => {
  // The shell becomes a program that waits for none of its children.
  const words = [
    '-c',
    `exec 3<&0; "$0" "$@" <&3 & exec sleep 60`,
    process.execPath,
    '--input-type=module',
    '--eval',
    script,
    directory,
  ]
  const parent = spawn('sh', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  started.push(parent)
  const taken = once(parent.stdout, 'data')
  parent.stdin.write('now\n')
  expect(String((await taken)[0]).trim()).toBe('has')
  const pid = Number(markerIn(join(directory, 'supervisor.lock'))?.split(':')[0])
  process.kill(pid, 'SIGKILL')
  const next = contender()
  await until('it is dead', () => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), 10_000)
  expect(await next.tries()).toBe('has')
})

test('a directory in which no lock can be made is served without one, which is said', async () => {
  mkdirSync(join(directory, 'supervisor.lock'))
  const only = contender()
  expect(await only.tries()).toMatch(/^the state directory cannot be locked: /)
})

test('nobody takes a lock away while another process is at it', async () => {
  makeMarker(join(directory, 'supervisor.lock'), `${process.pid}:1`)
  makeMarker(join(directory, 'supervisor.taking'), String(process.pid))
  expect(await contender().tries()).toMatch(/^the state directory cannot be locked: /)
  expect(markerIn(join(directory, 'supervisor.lock'))).toBe(`${process.pid}:1`)
}, 30_000)
