import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Config, Secrets } from '../config.ts'

export interface TrialOptions {
  readonly config: Config
  readonly secrets: Secrets
  /** Try although the token refused this PIN before or stands at its last try. */
  readonly force: boolean
  readonly script?: URL
  readonly deadlineMilliseconds?: number
}

/** The trial's exit codes, explained to the operator. */
const meanings: Readonly<Record<number, string>> = {
  3: 'the token refused the PIN; it is not tried again until the PIN changes (or with --force)',
  4: 'the token has locked its PIN or would at one more wrong one; nothing was tried (--force tries)',
  5: 'the token is not there',
}

/**
 * Logs in to the token once, in a child of its own that is killed when the token does not answer, so that a wrong PIN
 * meets the token once however many workers there are, and this process never loads the module.
 * @throws Error with the reason why no worker may start
 */
export async function tryPin({ config, secrets, force, ...options }: TrialOptions): Promise<void> {
  const { library, libraryParameters, token, environment } = config.pkcs11
  const script = options.script ?? new URL('../hsm/trial/trial.ts', import.meta.url)
  const deadlineMilliseconds = options.deadlineMilliseconds ?? 10_000
  const loading = new URL('./loading.ts', import.meta.url)
  const child = spawn(process.execPath, ['--import', loading.href, fileURLToPath(script)], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', process.stderr, process.stderr],
    timeout: deadlineMilliseconds,
    killSignal: 'SIGKILL',
  })
  child.stdin.on('error', () => {}) // It ended before it read: its exit code tells the reason.
  const order = {
    library,
    libraryParameters,
    token,
    pin: secrets.reveal().pin,
    force,
    stateDirectory: config.stateDirectory,
  }
  child.stdin.end(`${JSON.stringify(order)}\n`)
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (...ending) => resolve(ending))
  })
  if (code === 0) return
  if (signal) throw new Error(`the token did not answer in ${deadlineMilliseconds / 1000} s`)
  throw new Error(meanings[code ?? 1] ?? 'the token cannot be used; the reason stands above')
}
