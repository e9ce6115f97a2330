import { matchesGlob } from '../glob.ts'
import { toAscii } from './hostname.ts'

/** Folds ASCII letters only: no other letter can become one of them. */
export const foldCase = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** The allowed domains of a role, prepared for fast comparison with very many names. */
export class Domains {
  readonly #folded: ReadonlySet<string>
  readonly #asWritten: ReadonlySet<string>
  readonly #globs: readonly string[]
  readonly #longest: number

  constructor(domains: readonly string[]) {
    const all = domains.flatMap((domain) => {
      const converted = toAscii(domain)
      return converted === undefined || converted === domain ? [domain] : [domain, converted]
    })
    this.#asWritten = new Set(all)
    this.#folded = new Set(all.map(foldCase))
    this.#globs = all.filter((domain) => domain.includes('*'))
    this.#longest = all.reduce((longest, { length }) => Math.max(longest, length), 0)
  }

  /** Whether a name is an allowed domain, in any case. */
  holds(name: string): boolean {
    return this.#folded.has(foldCase(name))
  }

  /** Whether a name is a subdomain of an allowed domain; case counts, as in the reference. */
  holdAbove(name: string): boolean {
    const shortest = Math.max(0, name.length - this.#longest - 1)
    for (let dot = name.indexOf('.', shortest); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      if (this.#asWritten.has(name.slice(dot + 1))) return true
    }
    return false
  }

  /** Whether a name matches an allowed domain that contains `*`. */
  match(name: string): boolean {
    return this.#globs.some((glob) => matchesGlob(glob, name))
  }
}

const compiled = new WeakMap<readonly string[], Domains>()

/** Domains compiled once for each list of a role. */
export function domainsOf(list: readonly string[]): Domains {
  const known = compiled.get(list)
  if (known) return known
  const domains = new Domains(list)
  compiled.set(list, domains)
  return domains
}
