import type { LoneKey } from '../ceremony/lonekeys.ts'
import type { KekStatus } from '../keys/cluster/rotation.ts'

/** The information about KEKs that an operator must keep for an emergency. */
export interface Status {
  /** Check value of the key that seals rows. */
  readonly rowKey: string
  readonly keks: readonly KekStatus[]
  /** Keys that exist only in a token. */
  readonly lone: readonly LoneKey[]
}

/** As lines: every KEK, the keys in one token alone, and the KEKs whose keys would be lost with the token. */
export function statusLines({ rowKey, keks, lone }: Status): string[] {
  return [
    `row key  check value ${rowKey}, keep it with the components: kek adopt asks for it`,
    ...keks.flatMap(kekLines),
    ...lone.map(({ name, here }) => `${here ? 'only in this token' : 'not in this token'}: ${name}`),
    ...warning(keks),
  ]
}

function warning(keks: readonly KekStatus[]): string[] {
  const alone = keks.filter(({ origin, state, keys }) => origin !== 'components' && (state === 'active' || keys > 0))
  if (alone.length === 0) return []
  const names = alone.map(({ state, purpose }) => `${state} ${purpose}`).join(', ')
  return [
    `These KEKs have no components: ${names}. The keys under them are lost with the token.`,
    'Keep a copy of the token, or replace them: strongroom kek rotate --components',
  ]
}

/** One KEK, with the workers that a pending one waits for. */
export function kekLines({
  id,
  purpose,
  state,
  origin,
  checkValue,
  here,
  keys,
  unproven,
  lacking,
}: KekStatus): string[] {
  const from = origin === 'components' ? 'from components' : 'generated in a token'
  const where = here ? 'in this token' : 'not in this token'
  const value = checkValue || 'none yet'
  const waits = `        waits for: ${unproven.join(', ') || 'no worker'}`
  const weak = `        its token does not enforce ${lacking.join(', ')} on the keys that it unwraps: kek rotate replaces it`
  return [
    `${purpose.padEnd(7)} ${state.padEnd(9)} ${id}  check value ${value}, ${from}, ${where}, ${keys} keys`,
    ...(state === 'pending' ? [waits] : []),
    ...(lacking.length > 0 ? [weak] : []),
  ]
}
