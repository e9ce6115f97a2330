import { join } from 'node:path'
import { API, type Project, type Snapshot } from 'typescript/unstable/sync'
import type { Reach } from './reach.ts'

/** TypeScript's type check, kept open: a changed file costs milliseconds. */
export class TypeCheck implements Disposable {
  readonly #root: string
  readonly #reach: Reach
  readonly #changed = new Map<string, string>()
  readonly #api: API
  #snapshot: Snapshot

  constructor(root: string, reach: Reach) {
    this.#root = root
    this.#reach = reach
    this.#api = new API({ cwd: root, fs: { readFile: (name) => this.#changed.get(name) } })
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [this.#config] })
  }

  get #config(): string {
    return join(this.#root, 'tsconfig.json')
  }

  /** Whether a file with this text, and every file that imports it, has no type error. */
  passes(path: string, text: string): boolean {
    const name = join(this.#root, path)
    const before = [...this.#changed.keys()]
    this.#changed.clear()
    this.#changed.set(name, text)
    const { program } = this.#update([...before, name])
    return [path, ...this.#reach.importers(path)]
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(this.#root, file))
      .every(
        (file) =>
          program.getSyntacticDiagnostics(file).length === 0 && program.getSemanticDiagnostics(file).length === 0,
      )
  }

  #update(changed: string[]): Project {
    const old = this.#snapshot
    this.#snapshot = this.#api.updateSnapshot({ fileChanges: { changed } })
    old.dispose()
    const project = this.#snapshot.getProject(this.#config)
    if (project === undefined) throw new Error(`TypeScript does not open ${this.#config}`)
    return project
  }

  [Symbol.dispose](): void {
    this.#api.close()
  }
}
