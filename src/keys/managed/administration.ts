import { badRequest } from '../../errors.ts'
import type { Transaction } from '../../store/reader.ts'
import type { ManagedHsms } from './hsms.ts'
import type { ManagedKeys } from './managedkeys.ts'
import type { Pins } from './pins.ts'
import type { Entry, Registry } from './registry.ts'
import { settle, type Wanted } from './settings.ts'

/** Stands for a PIN in answers; written back, it changes nothing. */
export const redacted = 'redacted'

/** Operators' changes of managed keys: a new PIN is tried on the token, once, before it is stored. */
export class ManagedAdministration {
  readonly #registry: Registry
  readonly #hsms: ManagedHsms
  readonly #pins: Pins
  readonly #keys: ManagedKeys

  constructor(options: { registry: Registry; hsms: ManagedHsms; pins: Pins; keys: ManagedKeys }) {
    this.#registry = options.registry
    this.#hsms = options.hsms
    this.#pins = options.pins
    this.#keys = options.keys
  }

  /**
   * Creates a managed key, or changes the fields that the request names.
   * @throws ApiError 400 naming the field, the rule, or the token's refusal; 503 when the token does not answer
   */
  async write(name: string, wanted: Wanted, createdBy: string): Promise<void> {
    for (let done = false; !done; ) {
      const before = await this.#registry.named(name)
      const settings = settle(before?.row, wanted)
      this.#hsms.library(settings.library)
      const pin = wanted.pin === redacted ? undefined : wanted.pin || undefined
      if (pin === undefined && before === undefined) throw badRequest('pin is required')
      // A stored PIN is never used for another token than the one it was given for.
      if (pin === undefined && before !== undefined && addressOf(before.row) !== addressOf(settings)) {
        throw badRequest('library, slot and token_label are changed together with pin')
      }
      if (pin !== undefined) await this.#admit(name, before, settings, pin)
      const draft = pin === undefined ? undefined : await this.#pins.seal(pin, createdBy)
      done = await this.#registry.write(name, before?.row, settings, draft)
    }
  }

  read(name: string): Promise<Entry | undefined> {
    return this.#registry.named(name)
  }

  names(): Promise<string[]> {
    return this.#registry.names()
  }

  remove(name: string, check: (tx: Transaction, id: string) => Promise<void>): Promise<void> {
    return this.#registry.remove(name, check)
  }

  /** @throws ApiError 400 when the key does not sign as it should */
  test(entry: Entry, hashName: string): Promise<void> {
    return this.#keys.test(entry, hashName)
  }

  async #admit(
    name: string,
    before: Entry | undefined,
    settings: ReturnType<typeof settle>,
    pin: string,
  ): Promise<void> {
    const stored = before?.row.pinRefused === true && addressOf(before.row) === addressOf(settings)
    if (stored && before !== undefined && (await this.#pins.open(before.pin)) === pin) {
      throw badRequest('the token refused this PIN before; nothing was tried')
    }
    await this.#keys.admit({ ...settings, name }, pin)
  }
}

const addressOf = ({
  library,
  slot,
  tokenLabel,
}: {
  library: string
  slot: number | null
  tokenLabel: string | null
}) => JSON.stringify([library, slot, tokenLabel])
