import { realpathSync } from 'node:fs'
import { type Cryptoki, loadLibrary } from './binding.ts'
import { CKF, CKR } from './constants.ts'
import { ckrOf } from './faults.ts'

/** A user with sessions in a module, told when another user's C_Finalize has ended them. */
export interface ModuleUser {
  /** Whether calls are under way in other threads. */
  readonly busy: boolean
  invalidated(): void
}

/** Variables that a module reads while it is loaded and initialised. */
export type Environment = Readonly<Record<string, string>>

const modules = new Map<string, Module>()

/**
 * A PKCS#11 module in this process: loaded and initialised once for all its users, since C_Initialize and C_Finalize
 * act on the whole process.
 */
export class Module {
  readonly lib: Cryptoki
  /** Grows at every C_Initialize; sessions and objects of an earlier generation are void. */
  generation = 0
  readonly #parameters: string | undefined
  readonly #environment: Environment
  readonly #users = new Set<ModuleUser>()

  private constructor(lib: Cryptoki, parameters: string | undefined, environment: Environment) {
    this.lib = lib
    this.#parameters = parameters
    this.#environment = environment
  }

  /**
   * The process's one Module for a library, initialised. `release` it when done.
   * @throws Error when the library cannot be loaded or initialised
   */
  static acquire(
    library: string,
    parameters: string | undefined,
    user: ModuleUser,
    environment: Environment = {},
  ): Module {
    const name = canonical(library)
    let module = modules.get(name)
    if (module === undefined) {
      module = new Module(
        within(environment, () => loadLibrary(library)),
        parameters,
        environment,
      )
      modules.set(name, module)
    }
    if (module.#parameters !== parameters) throw new Error(`${library} is in use with other library parameters`)
    if (module.#users.size === 0) module.#initialise()
    module.#users.add(user)
    return module
  }

  /** Calls C_Finalize with the last user; the library stays loaded, because modules often cannot be unloaded safely. */
  release(user: ModuleUser): void {
    if (!this.#users.delete(user) || this.#users.size > 0) return
    this.#finalise()
  }

  /** Whether no other user would lose its sessions by a `renew`. */
  isAlone(user: ModuleUser): boolean {
    return this.#users.size === 1 && this.#users.has(user)
  }

  /**
   * C_Finalize and C_Initialize, the only way back to some tokens that were away. Ends the sessions of every user.
   * @returns false, and does nothing, while any of them has calls under way
   * @throws what pkcs11js throws when C_Initialize fails
   */
  renew(user: ModuleUser): boolean {
    for (const one of this.#users) if (one.busy) return false
    this.#finalise()
    for (const one of this.#users) if (one !== user) one.invalidated()
    this.#initialise()
    return true
  }

  #initialise(): void {
    // pkcs11js 2.1.7 drops the last character of libraryParameters (C_Initialize in its pkcs11.cpp); so a space is
    // appended.
    const parameters = this.#parameters === undefined ? {} : { libraryParameters: `${this.#parameters} ` }
    try {
      within(this.#environment, () => this.lib.C_Initialize({ flags: CKF.OS_LOCKING_OK, ...parameters }))
    } catch (error) {
      if (ckrOf(error) !== CKR.CRYPTOKI_ALREADY_INITIALIZED) throw error
    }
    this.generation++
  }

  #finalise(): void {
    try {
      this.lib.C_Finalize()
    } catch {
      // C_Finalize may fail if the token is gone; C_Initialize decides.
    }
  }
}

/** Two copies of one module may read the same variable: each sees its own value, and the old one is restored. */
function within<T>(environment: Environment, work: () => T): T {
  const before = Object.keys(environment).map((name) => [name, process.env[name]] as const)
  Object.assign(process.env, environment)
  try {
    return work()
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}

/** Two names of one file are one module; a bare name is left to the dynamic linker. */
function canonical(library: string): string {
  try {
    return realpathSync(library)
  } catch {
    return library
  }
}
