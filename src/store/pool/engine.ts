/**
 * Engines that speak MySQL's protocol but break a rule of the store (docs/databases.md): a word of their description,
 * and how they break it.
 */
const unsound: readonly (readonly [name: string, rule: string])[] = [
  ['TiDB', 'a transaction reads as of its beginning, not as of the lock that it has waited for'],
  ['Vitess', 'a transaction may be committed on one shard and lost on another'],
]

/** Whether the server is a MariaDB that knows `INSERT … RETURNING` and `SET STATEMENT`: 10.5. @param version its variable */
export function isMariaDb(version: string | undefined): boolean {
  const [, major, minor] = /(\d+)\.(\d+)\.\d+-MariaDB/.exec(version ?? '') ?? []
  return 100 * Number(major) + Number(minor) >= 1005
}

/** MariaDB's default; MySQL's is more. */
export const leastPacketBytes = 2 ** 24

/**
 * @param value of the server's variable `max_allowed_packet`
 * @returns bytes @throws Error for less than the store needs
 */
export function requirePacket(value: string | undefined): number {
  const bytes = Number(value)
  if (bytes >= leastPacketBytes) return bytes
  throw new Error(`max_allowed_packet of the database server is ${value}: set it to ${leastPacketBytes} at least`)
}

/**
 * @param description the server's variables `version` and `version_comment`, which its operator can change, and the
 *   names of variables that only one engine has
 * @throws Error naming the rule, for an engine on which acknowledged changes could be lost or undone
 */
export function requireSoundEngine(description: string): void {
  const found = unsound.find(([name]) => description.toLowerCase().includes(name.toLowerCase()))
  if (found) throw new Error(`${found[0]} is not supported: ${found[1]}`)
}
