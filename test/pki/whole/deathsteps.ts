import type { Doomed } from '../../attack/deaths/doomed.ts'
import type { Client } from '../../support/client.ts'
import type { WholeCa } from './ca.ts'

/** A step of some work on a CA's certificates or lists: the COMMIT of one of its transactions. */
export interface Step {
  readonly when: 'before' | 'after'
  /** The action of the transaction. */
  readonly name: string
  /** Text of its statements or values. */
  readonly mark: string
  /** Which transaction of the CA with this mark, from 1. */
  readonly nth?: number
}

export const titleOf = (steps: readonly Step[]): string => steps.map(({ when, name }) => `${when} ${name}`).join(', ')

/** Work at which a node is to die. */
export interface Work {
  readonly ca: WholeCa
  readonly step: Step
  begin(doomed: Client): Promise<unknown>
}

/**
 * Has the second node do each work up to its step, and kills it at the last. Steps whose transaction holds up others
 * come last: those before a COMMIT, and those that change a manifest.
 */
export async function dieOf(world: Doomed, works: readonly Work[]): Promise<void> {
  for (const [index, { ca, step, begin }] of works.entries()) {
    const [names, marks] = [await namesOf(world, ca), [step.mark, hex(step.mark)]]
    const has = (transaction: string, some: readonly string[]) => some.some((text) => transaction.includes(text))
    const halt = index < works.length - 1 ? world.stop : world.die
    await halt(step.when, begin, step.nth, (transaction) => has(transaction, names) && has(transaction, marks))
  }
}

/** The names of a CA in statements, as text, in hexadecimal or as bytes: its mount, and the digest of its issuer. */
async function namesOf({ sql }: Doomed, { path }: WholeCa): Promise<readonly string[]> {
  const { mount, issuer } = await sql.row(`${ofCa('mount, LOWER(HEX(crl_issuer)) AS issuer')} LIMIT 1`, [`${path}/`])
  const [id, digest] = [String(mount), String(issuer)]
  return [id, hex(id), digest, Buffer.from(digest, 'hex').toString('latin1')]
}

/** The number of entries in the segments from which the lists of a CA are made. */
export async function entriesOf({ sql }: Doomed, { path }: WholeCa): Promise<number> {
  const text = `SELECT segments FROM pki_manifests WHERE crl_issuer IN (${ofCa('crl_issuer')})`
  const { segments } = await sql.row(text, [`${path}/`])
  const sites: Record<string, readonly { readonly count: number }[]> = JSON.parse(String(segments))
  return Object.values(sites)
    .flat()
    .reduce((sum, { count }) => sum + count, 0)
}

const ofCa = (columns: string): string =>
  `SELECT ${columns} FROM pki_crls WHERE mount = (SELECT id FROM mounts WHERE path = ?)`

const hex = (text: string): string => Buffer.from(text).toString('hex')
