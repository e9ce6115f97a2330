import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** The shell's environment without STRONGROOM_*, so that the tests' own variables stay out. */
const clean = (): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('STRONGROOM_')))

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `strongroom …` to its end. */
export async function strongroom(args: readonly string[], environment: Record<string, string> = {}): Promise<Ran> {
  const running = start(args, environment)
  const code = await running.ended
  return { code, stdout: running.stdout(), stderr: running.stderr() }
}

export interface Running extends AsyncDisposable {
  readonly process: ChildProcess
  readonly ended: Promise<number | null>
  stdout(): string
  stderr(): string
  /** The address of its ready line. @throws Error with its log when it ends or says something else */
  ready(): Promise<string>
}

/** Starts `strongroom …`; disposing kills it. @param script of another checkout */
export function start(
  args: readonly string[],
  environment: Record<string, string> = {},
  script: string = main,
): Running {
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...clean(), ...environment },
    // Through the channel a server notices when the tests are killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  return {
    process: child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    async ready() {
      const first = new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()))
      if (stdout === '') await Promise.race([first, ended])
      const address = /^ready (\S+)\n$/.exec(stdout)?.[1]
      if (address === undefined) throw new Error(`not ready: ${stdout}${stderr}`)
      return address
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** A question on a terminal and the line that is typed at it, which may come later. */
export type Answer = readonly [question: string, line: string | (() => Promise<string>)]

/** Runs `strongroom …` on a terminal of its own and answers its questions in turn; everything the terminal showed. */
export function onTerminal(
  args: readonly string[],
  answers: readonly Answer[],
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const command = [process.execPath, main, ...args].join(' ')
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: clean(), stdio: ['pipe', 'pipe', 'pipe'] })
  const left = [...answers]
  let shown = ''
  return new Promise((resolve, reject) => {
    child.once('close', (code) => resolve({ code, shown }))
    child.stdout.setEncoding('utf8').on('data', (text) => {
      shown += text
      const [question, line] = left[0] ?? []
      if (question === undefined || line === undefined || !shown.includes(question)) return
      left.shift()
      const typed = typeof line === 'string' ? Promise.resolve(line) : line()
      typed
        .then((whole) => child.stdin.write(`${whole}\r`))
        .catch((error) => {
          child.kill()
          reject(error)
        })
    })
  })
}
