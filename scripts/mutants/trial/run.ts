import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { Message } from './vitest.ts'

/** The result of one test file. */
export interface FileResult {
  readonly file: string
  readonly seconds: number
  readonly verdict: 'passed' | 'failed' | 'late'
  /** The first test that failed; empty when the file itself did. */
  readonly test: string
  readonly reason: string
}

export interface Run {
  /** The copy of the project. */
  readonly root: string
  readonly environment: NodeJS.ProcessEnv
  /** Run before each file; empty for none. */
  readonly setup: string
  readonly files: readonly string[]
  /** Whether the first failure ends the run. */
  readonly bail: boolean
  /** The time that processes left behind by a test have to end by themselves. */
  readonly graceSeconds: number
  /** A file that takes longer is late, which ends the run. */
  readonly limitSeconds: (file: string) => number
  /** Ends the run at once; its result is then meaningless. */
  readonly signal: AbortSignal
}

const program = join(import.meta.dirname, 'vitest.ts')

/** The longest that vitest takes to end when all files have run. */
const longestEndSeconds = 10

/** Runs test files in order. @returns results of those that ran, up to the one that ended the run */
export function runFiles(run: Run): Promise<FileResult[]> {
  const { root, environment, setup, files, bail, graceSeconds, limitSeconds, signal } = run
  const { promise, resolve, reject } = Promise.withResolvers<FileResult[]>()
  const results: FileResult[] = []
  let began = performance.now()
  let failure: { readonly test: string; readonly reason: string } | undefined
  let timer: NodeJS.Timeout | undefined
  let over = false
  const child = fork(program, [root, setup, ...files], {
    ...{ cwd: root, env: environment, detached: true, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  })
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000)
  })

  const record = (file: string, verdict: FileResult['verdict'], { test = '', reason = '' } = {}): void => {
    const now = performance.now()
    results.push({ file, seconds: (now - began) / 1000, verdict, test, reason })
    began = now
    failure = undefined
  }
  const end = (file: string, verdict: FileResult['verdict'], why = {}): void => {
    record(file, verdict, why)
    over = true
    killGroup(child)
  }
  const watch = (): void => {
    clearTimeout(timer)
    const next = files[results.length]
    const late = (): void => (next === undefined ? killGroup(child) : end(next, 'late'))
    timer = setTimeout(late, 1000 * (next === undefined ? longestEndSeconds : limitSeconds(next)))
  }

  child.on('message', (message: Message) => {
    if (over) return
    if (message.kind === 'failed') {
      failure ??= message
      if (bail) end(message.file, 'failed', message)
    } else if (message.kind === 'ended') {
      record(message.file, failure ? 'failed' : 'passed', failure)
      watch()
    } else {
      over = true
      const last = results.at(-1)
      // An error that belongs to no test: the run of these files would be red.
      if (last?.verdict === 'passed' && message.errors.length > 0)
        results[results.length - 1] = { ...last, verdict: 'failed', reason: message.errors.join('\n') }
    }
  })
  const abort = (): void => killGroup(child)
  signal.addEventListener('abort', abort)
  child.once('error', reject)
  child.once('exit', () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    const next = files[results.length]
    if (!over && next !== undefined) record(next, 'failed', { reason: `the test runner ended: ${errors}` })
    setTimeout(() => {
      killGroup(child)
      resolve(results)
    }, 1000 * graceSeconds)
  })
  watch()
  return promise
}

/** The child and all it started, except processes with a group of their own: these end with their parent. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
