import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { alive, fetchAlone, TestNode, until } from './node.ts'

/** Asks for something that kills the worker, which then does not answer. */
const provoke = (node: TestNode, path: string) => node.ask(path).catch(() => undefined)

/** Kills a worker, and waits until another was told of its end. @returns the pid of the killed */
async function killFirst(node: TestNode): Promise<number> {
  const dead = node.starts[0] ?? 0
  process.kill(dead, 'SIGKILL')
  await until('a worker was told', async () => {
    const heard = await node.askAll('/ended', 2)
    return [...heard.values()].flat().includes(`incarnation-${dead}`)
  })
  return dead
}

describe('a node', () => {
  test('says once that it is ready, when every worker serves, and nothing else on standard output', async () => {
    await using node = new TestNode({ workers: 3 })
    expect(await node.ready).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(node.starts).toHaveLength(3)
    expect((await node.askAll('/', 3)).size).toBe(3)
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    expect(node.output).toHaveLength(1)
  })

  test('drains on SIGTERM: what was asked is answered, then every process is gone', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    const slow = node.ask('/slow')
    await new Promise((resolve) => setTimeout(resolve, 300))
    node.process.kill('SIGTERM')
    expect((await slow).status).toBe(200)
    expect(await node.ended).toBe(0)
    expect(node.starts.filter(alive)).toEqual([])
  })

  test('kills at the deadline what does not drain, and still ends with 0', async () => {
    await using node = new TestNode({ timing: { drainMilliseconds: 1000 } })
    await node.ready
    void provoke(node, '/hang')
    await new Promise((resolve) => setTimeout(resolve, 300))
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    expect(node.starts.filter(alive)).toEqual([])
  })

  test('that is killed leaves no worker behind, even one whose thread hangs inside its token', async () => {
    await using node = new TestNode()
    await node.ready
    await node.ask('/hangthread')
    node.process.kill('SIGKILL')
    await until('the worker is gone', () => !node.starts.some(alive))
  })

  test.each(['SIGHUP', 'SIGUSR2', 'SIGINT', 'SIGTERM'] as const)('whose worker gets %s serves on', async (signal) => {
    await using node = new TestNode()
    await node.ready
    const [worker = 0] = node.starts
    process.kill(worker, signal)
    // A signal whose default action is to end the process would do so before a second answer.
    await node.ask('/')
    expect((await node.ask('/')).pid).toBe(worker)
  })

  test('gives a connection that a worker never took to the next one', async () => {
    await using node = new TestNode({ workers: 2, timing: { silenceMilliseconds: 2000 } })
    await node.ready
    const hung = await node.ask('/hang')
    // One of two goes to the hung worker.
    const answers = await Promise.all([node.ask('/'), node.ask('/')])
    expect(answers.map(({ status, pid }) => [status, pid === hung.pid])).toEqual([
      [200, false],
      [200, false],
    ])
    expect(alive(hung.pid)).toBe(false)
  })

  test('leaves nobody behind when the supervisor is killed', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    node.process.kill('SIGKILL')
    await node.ended
    await until('every worker is gone', () => node.starts.every((pid) => !alive(pid)), 3000)
  })

  test('gives secrets to its workers and shows them in no environment, argument or log line', async () => {
    await using node = new TestNode()
    await node.ready
    expect((await node.ask('/secrets')).answer).toEqual([
      { pin: 'geheim-7391', databasePassword: 'geheim-db' },
      '"[secrets]"',
    ])
    const pid = node.starts[0] ?? 0
    for (const one of [pid, node.process.pid]) {
      expect(readFileSync(`/proc/${one}/environ`, 'utf8')).not.toContain('geheim')
      expect(readFileSync(`/proc/${one}/cmdline`, 'utf8')).not.toContain('geheim')
    }
    await provoke(node, '/fatal')
    await until('another worker started', () => node.starts.length === 2)
    expect(JSON.stringify(node.log)).not.toContain('geheim')
  })
})

describe('a worker that is lost', () => {
  test.each([
    ['exits', '/die', 'exit code 7'],
    ['meets a bug', '/throw', 'a bug'],
    ['reports that it cannot go on', '/fatal', 'the token is lost'],
  ])('because it %s is replaced, and the log says why', async (_, path, reason) => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    const [first = 0, second = 0] = node.starts
    await provoke(node, path)
    await until('a third worker serves', async () => (await node.askAll('/', 2)).has(node.starts[2] ?? -1))
    expect([first, second].filter(alive)).toHaveLength(1)
    expect(node.log).toContainEqual(expect.objectContaining({ msg: 'process is lost', reason }))
  })

  test('because its event loop is silent is killed and replaced', async () => {
    await using node = new TestNode({ timing: { silenceMilliseconds: 1500 } })
    await node.ready
    const [hung = 0] = node.starts
    void provoke(node, '/hang')
    await until('the hung worker is gone', () => !alive(hung), 5000)
    await until('another serves', async () => (await provoke(node, '/'))?.status === 200)
    expect(node.log).toContainEqual(expect.objectContaining({ reason: 'silent while ready' }))
  })

  test('because it was stopped by SIGSTOP is killed and replaced', async () => {
    await using node = new TestNode({ workers: 2, timing: { silenceMilliseconds: 1500 } })
    await node.ready
    const [stopped = 0] = node.starts
    process.kill(stopped, 'SIGSTOP')
    await until('it is gone and replaced', () => !alive(stopped) && node.starts.length === 3, 5000)
  })

  test('is not suspected when it was the supervisor that slept', async () => {
    await using node = new TestNode({ timing: { silenceMilliseconds: 1500, tickMilliseconds: 250 } })
    await node.ready
    node.process.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 2500))
    node.process.kill('SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(node.starts).toHaveLength(1)
    expect((await node.ask('/')).status).toBe(200)
  })

  test('leaves 503 in its place on the same address until another serves', async () => {
    await using node = new TestNode()
    const address = await node.ready
    node.order('fail')
    await provoke(node, '/die')
    const health = () => fetchAlone(`${address}/v1/sys/health`).catch(() => undefined)
    await until('the stand-in answers', async () => (await health())?.status === 503)
    const { text } = (await health()) ?? {}
    expect(JSON.parse(text ?? '')).toEqual({ errors: [expect.stringContaining('no worker')] })
    node.order('serve')
    await until('a worker serves again', async () => (await health())?.status === 200)
    expect(node.process.exitCode).toBe(null)
  })
})

describe('connections handed to a worker that is killed', () => {
  test("are another worker's, not left open for ever", async () => {
    await using node = new TestNode({ workers: 2 })
    const address = await node.ready
    const [stopped = 0] = node.starts
    process.kill(stopped, 'SIGSTOP')
    // Every second request goes to the stopped worker, which takes none of them.
    const asked = Array.from({ length: 4 }, () =>
      fetchAlone(`${address}/`).then(
        (reply) => reply.status,
        () => 'broken',
      ),
    )
    await new Promise((resolve) => setTimeout(resolve, 500))
    process.kill(stopped, 'SIGKILL')
    expect(await Promise.all(asked)).toEqual([200, 200, 200, 200])
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
  })
})

describe('a first start', () => {
  test('that fails with a reason ends the server with it, after one try', async () => {
    await using node = new TestNode({ workers: 8, order: 'fail' })
    expect(await node.ended).toBe(1)
    expect(node.starts).toHaveLength(1)
    expect(node.log).toContainEqual(
      expect.objectContaining({ msg: 'the server cannot start', reason: 'the schema cannot be read' }),
    )
    expect(node.output).toEqual([])
  })

  test('that meets a refused PIN tries it once, with eight workers', async () => {
    await using node = new TestNode({ workers: 8, order: 'pin' })
    expect(await node.ended).toBe(1)
    expect(node.starts).toHaveLength(1)
  })

  test('that dies without a word is tried three times', async () => {
    await using node = new TestNode({ workers: 8, order: 'die' })
    expect(await node.ended).toBe(1)
    expect(node.starts).toHaveLength(3)
  })

  test('that hangs is given up', async () => {
    await using node = new TestNode({ order: 'hang', timing: { startMilliseconds: 700, tickMilliseconds: 100 } })
    expect(await node.ended).toBe(1)
    expect(node.starts.filter(alive)).toEqual([])
  })
})

describe('a PIN that is refused while the node serves', () => {
  test('is not tried again until the configuration is read again', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    node.order('pin')
    await provoke(node, '/die')
    await until('the replacement was refused', () => node.starts.length === 3)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    expect(node.starts).toHaveLength(3)
    expect((await node.ask('/')).status).toBe(200)
    node.order('serve')
    node.process.kill('SIGHUP')
    await until('two new workers serve', async () => {
      const serving = new Set((await node.askAll('/', 2)).keys())
      return serving.size === 2 && node.starts.slice(0, 3).every((pid) => !serving.has(pid))
    })
  })
})

describe('a replacement', () => {
  test('on SIGHUP takes over the new configuration without one refused or failed request', async () => {
    await using node = new TestNode()
    await node.ready
    const before = node.starts[0] ?? 0
    node.configure({ workers: 2 })
    node.process.kill('SIGHUP')
    const statuses = new Set<number>()
    await until('two new workers serve and the old one is gone', async () => {
      for (let round = 0; round < 5; round++) statuses.add((await node.ask('/')).status)
      return !alive(before) && (await node.askAll('/', 2)).size === 2
    })
    expect([...statuses]).toEqual([200])
  })

  test('of a worker above its memory limit comes up before the old one is drained', async () => {
    const timing = { rssLimitBytes: 300 << 20, settleMilliseconds: 0, tickMilliseconds: 100 }
    await using node = new TestNode({ timing })
    await node.ready
    const before = node.starts[0] ?? 0
    void provoke(node, '/grow')
    const statuses = new Set<number>()
    await until('another worker serves alone', async () => {
      statuses.add((await node.ask('/')).status)
      return !alive(before)
    })
    expect([...statuses]).toEqual([200])
    expect(node.starts).toHaveLength(2)
  })
})

describe('the shared log', () => {
  test('has what one worker appends for every other, each of which appends in a place of its own', async () => {
    await using node = new TestNode({ workers: 3 })
    await node.ready
    expect([...(await node.askAll('/slot', 3)).values()].toSorted()).toEqual([0, 1, 2])
    const { pid } = await node.ask('/append?leaf=5')
    const news = [...(await node.askAll('/news', 3))].map(([worker, leaves]) => [worker === pid, leaves])
    expect(news.toSorted()).toEqual([
      [false, [[5, 1]]],
      [false, [[5, 1]]],
      [true, []],
    ])
  })

  test('gives the place of an ended process to its successor, which goes on where that one stopped', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    for (let leaf = 1; leaf <= 4; leaf++) await node.ask(`/append?leaf=${leaf}`)
    const before = await node.askAll('/slot', 2)
    await killFirst(node)
    await until('two serve again', async () => (await node.askAll('/slot', 2)).size === 2)
    const after = await node.askAll('/slot', 2)
    expect([...after.values()].toSorted()).toEqual([0, 1])
    const successor = [...after.keys()].find((pid) => !before.has(pid))
    while ((await node.ask('/append?leaf=9')).pid !== successor);
    const heard = (await node.askAll('/news', 2)).get([...before.keys()].find((pid) => after.has(pid)) ?? 0)
    expect((heard as unknown[]).at(-1)).toEqual([9, 1])
  })
})

describe('messages', () => {
  test('name the incarnation of an ended process to one that lives', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    await killFirst(node)
  })

  test('seal although the end of a process cannot be told to the database', async () => {
    await using node = new TestNode({ workers: 2, order: 'forgetful' })
    await node.ready
    const dead = await killFirst(node)
    expect((await node.ask('/seal?to=true')).answer).toBe(true)
    const told = [...(await node.askAll('/ended', 2)).values()].flat()
    expect(told.filter((id) => id === `incarnation-${dead}`)).toHaveLength(1)
  })

  test('seal every worker before the answer, and their replacements too, until the node is unsealed', async () => {
    await using node = new TestNode({ workers: 3 })
    await node.ready
    expect((await node.ask('/seal?to=true')).answer).toBe(true)
    expect([...(await node.askAll('/sealed', 3)).values()]).toEqual([true, true, true])
    expect(existsSync(`${node.directory}/sealed`)).toBe(true)
    process.kill(node.starts[0] ?? 0, 'SIGKILL')
    await until('a fourth worker serves', async () => (await node.askAll('/', 3)).has(node.starts[3] ?? -1))
    expect([...(await node.askAll('/sealed', 3)).values()]).toEqual([true, true, true])
    expect((await node.ask('/seal?to=false')).answer).toBe(false)
    expect([...(await node.askAll('/sealed', 3)).values()]).toEqual([false, false, false])
    expect(existsSync(`${node.directory}/sealed`)).toBe(false)
  })

  test('unseal no further worker once the token refused the PIN, and the node stays sealed', async () => {
    await using node = new TestNode({ workers: 3, order: 'stuck' })
    await node.ready
    await node.ask('/seal?to=true')
    await provoke(node, '/seal?to=false')
    await until('the node is sealed again', () => existsSync(`${node.directory}/sealed`))
    expect([...(await node.askAll('/sealed', 2)).values()]).toEqual([true, true])
    expect(node.starts.filter(alive)).toHaveLength(2)
  })
})

test('the supervisor maps no PKCS#11 module into its memory', async () => {
  await using node = new TestNode()
  await node.ready
  const maps = readFileSync(`/proc/${node.process.pid}/maps`, 'utf8')
  expect(maps).not.toMatch(/softhsm|pkcs11/)
  const listening = spawnSync('sh', ['-c', `ls -l /proc/${node.process.pid}/fd`], { encoding: 'utf8' })
  expect(listening.stdout).toContain('socket')
})
