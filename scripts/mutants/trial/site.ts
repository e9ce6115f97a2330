import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { type MariaDb, startMariaDb } from '../../embedded/mariadb.ts'
import { type FileResult, type Run, runFiles } from './run.ts'

export const project = join(import.meta.dirname, '..', '..', '..')

/** Left out of a copy of the project: packages are linked, the rest belongs to the checkout alone. */
const left: ReadonlySet<string> = new Set(['node_modules', '.git', '.data', 'coverage'])

/**
 * A private copy of the project with a private MariaDB, where mutants are written and tests run one after the other.
 */
export class Site implements AsyncDisposable {
  /** The copy. */
  readonly root: string
  readonly #directory: string
  readonly #signal: AbortSignal
  readonly #contract: Buffer
  #mariadb: MariaDb

  private constructor(directory: string, mariadb: MariaDb, signal: AbortSignal) {
    this.root = join(directory, 'project')
    this.#directory = directory
    this.#mariadb = mariadb
    this.#signal = signal
    this.#contract = execFileSync(process.execPath, [join(this.root, 'test', 'support', 'contract.ts')])
  }

  /** In a directory with a short name, because sockets lie in it. @param signal ends runs */
  static async make(signal: AbortSignal): Promise<Site> {
    const directory = mkdtempSync(join(tmpdir(), 'sr-'))
    try {
      const root = join(directory, 'project')
      mkdirSync(root)
      for (const name of readdirSync(project))
        if (!left.has(name))
          cpSync(join(project, name), join(root, name), { recursive: true, preserveTimestamps: true })
      symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'))
      return new Site(directory, await startDatabase(directory), signal)
    } catch (error) {
      rmSync(directory, { recursive: true, force: true })
      throw error
    }
  }

  /** Puts a text in place of a file's own. */
  write(path: string, text: string): void {
    writeFileSync(join(this.root, path), text)
  }

  /**
   * Runs test files as test/support/global.ts would have it, but with one database for all runs.
   * @param witness directory that learns which functions each file runs
   * @throws the reason of the signal
   */
  async run(options: Pick<Run, 'files' | 'bail' | 'limitSeconds'>, witness?: string): Promise<FileResult[]> {
    this.#signal.throwIfAborted()
    const directory = mkdtempSync(join(this.#directory, 'r'))
    try {
      await this.#clearDatabase()
      writeFileSync(join(directory, 'contract.json'), this.#contract)
      const environment = {
        ...process.env,
        ...{ STRONGROOM_TEST_DIRECTORY: directory, TMPDIR: directory, STRONGROOM_TEST_SOCKET: this.#mariadb.socket },
        ...{ STRONGROOM_GALERA_DIRECTORY: join(directory, 'g'), STRONGROOM_MYSQL_DIRECTORY: join(directory, 'm') },
        // V8 counts coarsely in code that it had compiled before.
        ...(witness === undefined
          ? { NODE_COMPILE_CACHE: join(this.#directory, 'compiled') }
          : { STRONGROOM_MUTANTS_WITNESS: witness, NODE_DISABLE_COMPILE_CACHE: '1' }),
      }
      const setup = witness === undefined ? '' : join(this.root, 'scripts', 'mutants', 'trial', 'witness.ts')
      const results = await runFiles({
        ...{ ...options, root: this.root, environment, setup, signal: this.#signal },
        graceSeconds: witness === undefined ? 0 : 2,
      })
      this.#signal.throwIfAborted()
      return results
    } finally {
      // Processes that were just killed may still write there.
      rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  }

  /** Drops the schemas of tests that were killed; the last statement of one may still run. */
  async #clearDatabase(): Promise<void> {
    const { exitCode, signalCode } = this.#mariadb.process
    if (exitCode !== null || signalCode !== null) this.#mariadb = await startDatabase(this.#directory)
    const connection = await createConnection({ uri: this.#mariadb.url, rowsAsArray: true })
    try {
      const [rows] = await connection.query("SHOW DATABASES LIKE 't\\_%'")
      for (const [name] of rows as [string][]) await connection.query(`DROP DATABASE IF EXISTS \`${name}\``)
    } finally {
      await connection.end()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#mariadb[Symbol.asyncDispose]()
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

const startDatabase = (directory: string): Promise<MariaDb> =>
  startMariaDb({ directory: join(directory, 'db'), schema: 'first', durable: false })
