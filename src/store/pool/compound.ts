import { literal, type Parameterised, textOf } from './literal.ts'

/** A transaction as texts for one round trip. */
export interface Script {
  readonly texts: readonly string[]
  /** How many come before the first statement that is asked for. */
  readonly preliminary: number
  /** How many come before the COMMIT. */
  readonly uncommitted: number
  /** Whether each answer is that of a text; otherwise those without rows are, and rows come in between. */
  readonly answersAll: boolean
  /** To be called when the preliminary texts have been answered. */
  readonly prepared?: () => void
}

interface Transaction {
  /** The statements that open it. */
  readonly opening: readonly string[]
  readonly statements: readonly (string | Parameterised)[]
  /** Statements that follow the COMMIT. */
  readonly after: readonly string[]
}

/** Each statement by itself: an answer for each of them, so that a failure shows which of them it was. */
export function oneByOne({ opening, statements, after }: Transaction): Script {
  const texts = [...opening, ...statements.map(textOf)]
  return {
    texts: [...texts, 'COMMIT', ...after],
    preliminary: opening.length,
    uncommitted: texts.length,
    answersAll: true,
  }
}

/** The most statements that a session prepares here: each costs the server some 50 kB. */
const mostPrepared = 64

/** A statement under the name that a session gives it. */
interface Prepared {
  readonly name: string
  readonly sql: string
  /** Whether the session has it. */
  ready: boolean
}

/** The most characters of a compound statement. */
const longestCompound = 2 ** 16

/**
 * Transactions as compound statements of MariaDB. One has a single answer, besides the rows that it gives, where each statement would have one
 * that wakes both ends; and in it, a statement that recurs with other values is one that the session has prepared
 * (EXECUTE), whose text the server does not read again. A failure does not show which statement failed.
 */
export class Compounds {
  readonly #known = new Map<string, Prepared>()

  /** @returns undefined for a transaction that is better sent one by one */
  script({ opening, statements, after }: Transaction): Script | undefined {
    const unknown = new Set<Prepared>()
    const texts = statements.map((one) => (typeof one === 'string' ? one : this.#execute(one, unknown)))
    const compound = `BEGIN NOT ATOMIC ${[...opening, ...texts].join('; ')}; END`
    if (compound.length > longestCompound) return undefined
    const following = after.map((sql) => this.#execute({ sql, literals: [] }, unknown))
    const preparing = [...unknown].map(({ name, sql }) => `PREPARE ${name} FROM ${literal(sql)}`)
    return {
      texts: [...preparing, compound, 'COMMIT', ...following],
      preliminary: preparing.length,
      uncommitted: preparing.length + 1,
      answersAll: false,
      prepared: () => {
        for (const one of unknown) one.ready = true
      },
    }
  }

  /** The text that runs a statement. @param unknown takes it if the session has yet to prepare it */
  #execute(statement: Parameterised, unknown: Set<Prepared>): string {
    const { sql, literals } = statement
    const prepared = this.#known.get(sql) ?? this.#name(sql)
    if (prepared === undefined) return textOf(statement)
    if (!prepared.ready) unknown.add(prepared)
    return `EXECUTE ${prepared.name}${literals.length > 0 ? ` USING ${literals.join(', ')}` : ''}`
  }

  #name(sql: string): Prepared | undefined {
    if (this.#known.size >= mostPrepared) return undefined
    const prepared = { name: `strongroom_${this.#known.size}`, sql, ready: false }
    this.#known.set(sql, prepared)
    return prepared
  }
}
