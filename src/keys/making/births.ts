import type { Hsm } from '../../hsm/hsm.ts'

const application = 'strongroom birth'

/**
 * Marks in the token for keys that are made there and not stored yet: a private data object each, created before the
 * key and removed before the making is acknowledged. So edited or restored rows alone never make a stored key look like
 * one that was not.
 */
export class Births {
  readonly #hsm: Hsm
  readonly #cluster: string

  constructor(hsm: Hsm, cluster: string) {
    this.#hsm = hsm
    this.#cluster = cluster
  }

  async begin(material: string): Promise<void> {
    const label = this.#labelOf(material)
    await this.#hsm.create({ class: 'data', application, label, token: true, value: Buffer.from(material), usages: [] })
  }

  async has(material: string): Promise<boolean> {
    return (await this.#find(material)).length > 0
  }

  async end(material: string): Promise<void> {
    for (const mark of await this.#find(material)) await this.#hsm.destroy(mark)
  }

  /** The keys of this cluster that have a mark, by uuid. */
  async list(): Promise<string[]> {
    const marks = await this.#hsm.find({ class: 'data', application, token: true })
    const labels = await Promise.all(marks.map(async (mark) => (await this.#hsm.attributes(mark, ['label'])).label))
    const prefix = this.#labelOf('')
    return labels.flatMap((label) => (label?.startsWith(prefix) ? label.slice(prefix.length) : []))
  }

  #labelOf(material: string): string {
    return `${this.#cluster}/${material}`
  }

  #find(material: string) {
    return this.#hsm.find({ class: 'data', application, label: this.#labelOf(material), token: true })
  }
}
