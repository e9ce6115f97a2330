import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Trial, trialStatus } from './trial.ts'

/** The outcome of a login; `hung`: the token did not answer in time. */
export type Tried = keyof typeof trialStatus | 'hung'

const deadlineMilliseconds = 10_000

/**
 * Logs in to a token once, in a child that is killed when the token does not answer: a hanging token then does not
 * affect this process, and the PIN is checked even where this process is logged in already, when C_Login accepts any.
 * @param environment added to the child's
 */
export async function tryLogin(trial: Trial, environment: Readonly<Record<string, string>> = {}): Promise<Tried> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./trial.ts', import.meta.url))], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'ignore', 'ignore'],
    timeout: deadlineMilliseconds,
    killSignal: 'SIGKILL',
  })
  child.stdin.on('error', () => {}) // It ended before it read: its exit status says why.
  child.stdin.end(`${JSON.stringify(trial)}\n`)
  const [status, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (...ending) => resolve(ending))
  })
  if (signal !== null) return 'hung'
  const [tried] = Object.entries(trialStatus).find(([, number]) => number === status) ?? []
  return (tried as keyof typeof trialStatus | undefined) ?? 'failed'
}
