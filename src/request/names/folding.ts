import type { Engine, Fold } from '../../engine.ts'
import type { Mount } from '../../route.ts'

/** A place in an engine's paths where names are folded: `policies/acl/:name*`. */
interface Place {
  /** The text before its first capture: compared in every request. */
  readonly head: string
  /** The name is the last one, or with `*` all that follows. */
  readonly segments: readonly string[]
  readonly fold: Fold
}

/** A place, in a mount. */
interface MountedPlace extends Pick<Place, 'segments' | 'fold'> {
  readonly path: string
}

type FoldedEngine = Pick<Engine, 'type' | 'routes' | 'folds'>

/**
 * The names in paths that have several spellings. Paths are folded before anything else uses them, so that another
 * spelling of the same name cannot bypass a policy's rule.
 */
export class Foldings {
  readonly #places: ReadonlyMap<string, readonly Place[]>
  /** Of the mounts of one moment, of which there may be thousands. */
  readonly #mounted = new WeakMap<readonly Mount[], readonly MountedPlace[]>()

  /** @throws {Error} at start, when a place is not the beginning of a route */
  constructor(engines: Iterable<FoldedEngine>) {
    this.#places = new Map([...engines].map((engine) => [engine.type, placesOf(engine)]))
  }

  /** A canonical path with its names folded. A path without such names costs one comparison for each place. */
  path(path: string, mount: Mount | undefined): string {
    const places = mount && this.#places.get(mount.type)
    if (mount === undefined || places === undefined) return path
    for (const { head, segments, fold } of places) {
      if (!path.startsWith(head, mount.path.length)) continue
      const sent = path.slice(mount.path.length).split('/')
      const folded = foldedAt(segments, sent, fold)
      if (folded !== undefined) return mount.path + folded
    }
    return path
  }

  /** The path of a policy's rule, including `+` and `*`, with the names in it folded. */
  rule(rule: string, mounts: readonly Mount[]): string {
    const [fixed = ''] = rule.split('+', 1)
    for (const { path, segments, fold } of this.#placesIn(mounts)) {
      if (!path.startsWith(fixed) && !fixed.startsWith(path)) continue
      const place = [...path.split('/').slice(0, -1), ...segments]
      const folded = foldedAt(place, rule.split('/'), (name) => foldPattern(name, fold))
      if (folded !== undefined) return folded
    }
    return rule
  }

  #placesIn(mounts: readonly Mount[]): readonly MountedPlace[] {
    const known = this.#mounted.get(mounts)
    if (known !== undefined) return known
    const found = mounts.flatMap(({ path, type }) =>
      (this.#places.get(type) ?? []).map(({ segments, fold }) => ({ path, segments, fold })),
    )
    this.#mounted.set(mounts, found)
    return found
  }
}

function placesOf({ type, routes, folds = {} }: FoldedEngine): Place[] {
  return Object.entries(folds).map(([path, fold]) => {
    if (!routes.some((route) => `${route.path}/`.startsWith(`${path}/`))) {
      throw new Error(`${type} folds names at ${path}, which is not in any route`)
    }
    return { head: path.slice(0, path.indexOf(':')), segments: path.split('/'), fold }
  })
}

/**
 * Undefined if the path does not lead to the place, or its name is already folded. A name is never folded to nothing.
 */
function foldedAt(place: readonly string[], path: readonly string[], fold: Fold): string | undefined {
  const last = place.length - 1
  const leads = place.every((segment, index) => segment.startsWith(':') || isSame(path[index], segment))
  if (!leads || path[last] === undefined) return undefined
  const end = place[last]?.endsWith('*') ? path.length : place.length
  const name = path.slice(last, end).join('/')
  const folded = fold(name) || name
  return folded === name ? undefined : [...path.slice(0, last), folded, ...path.slice(end)].join('/')
}

const isSame = (given: string | undefined, segment: string): boolean => given === segment || given === '+'

/** A closing `*` stands for the rest of the name, so blanks before it are inside the name. */
const foldPattern = (name: string, fold: Fold): string =>
  name.endsWith('*') ? `${fold(`${name.slice(0, -1)}x`).slice(0, -1)}*` : fold(name)
