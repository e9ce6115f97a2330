const headerBytes = 4
const [query, prepare, execute] = [0x03, 0x16, 0x17]

/**
 * The prepared statements of one connection: by their number (MySQL client/server protocol: COM_STMT_PREPARE,
 * COM_STMT_EXECUTE), or by their name in a text (SQL: PREPARE, EXECUTE).
 */
export interface Prepared {
  /** @returns the text of the statements that these bytes of the client run by their number or name */
  run(bytes: Buffer): string
  /** Reads the number of a new statement from bytes of the server. */
  answer(bytes: Buffer): void
}

export function preparedStatements(): Prepared {
  const texts = new Map<number, string>()
  const named = new Map<string, string>()
  let made: string | undefined

  /** The texts of the statements that a text runs by their name. */
  function runByName(text: string): string {
    for (const [, name = '', hex = ''] of text.matchAll(/PREPARE (\w+) FROM _utf8mb4 x'([0-9a-f]*)'/g))
      named.set(name, Buffer.from(hex, 'hex').toString('latin1'))
    return [...text.matchAll(/EXECUTE (\w+)/g)].map(([, name = '']) => named.get(name) ?? '').join('; ')
  }

  return {
    run(bytes) {
      let found = ''
      for (let at = 0; at + headerBytes < bytes.length; at += headerBytes + bytes.readUIntLE(at, 3)) {
        const command = bytes[at + 3] === 0 ? bytes[at + headerBytes] : undefined
        const rest = bytes.subarray(at + headerBytes + 1, at + headerBytes + bytes.readUIntLE(at, 3))
        if (command === query) found += runByName(rest.toString('latin1'))
        else if (command === prepare) made = rest.toString('latin1')
        else if (command === execute) found += texts.get(rest.readUInt32LE(0)) ?? ''
      }
      return found
    },
    answer(bytes) {
      const isMade = bytes[headerBytes] === 0
      if (made !== undefined && isMade) texts.set(bytes.readUInt32LE(headerBytes + 1), made)
      made = undefined
    },
  }
}
